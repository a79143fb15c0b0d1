"""What `orcalike status` shows: the processes of a run, and how its groups stand at each of them.

The question is `{"do": "status"}`. The launcher asks each process for its groups by a line (`Describe`),
and answers when all have answered, or after a second: what a process does not say then is null. So it
needs no sequencer, and no primary view.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from orcalike.launch_protocol.control_lines import Describe, Described, Role
from orcalike.launcher.child import Child
from orcalike.launcher.control_socket import Answer
from orcalike.launcher.group_status import Group, Place, name_of
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.timers import Timers

#: How long the processes have to answer.
WITHIN = 1.0


@dataclass(slots=True)
class Question:
    """One question, until it is answered."""

    reply: Callable[[Answer], None]
    #: Of which process and group an answer is still to come.
    open: set[tuple[Role, str]]
    described: dict[tuple[Role, str], Described] = field(default_factory=dict)


class Status:
    """Answers how a run stands."""

    def __init__(self, table: ProcessTable, timers: Timers) -> None:
        self._table = table
        self._timers = timers
        self._began = time.monotonic()
        self._questions: dict[int, Question] = {}
        self._number = 0
        table.groups.on_described = self._receive

    def ask(self, reply: Callable[[Answer], None]) -> None:
        """Ask all processes; `reply` is called with the answer, in a second at the most."""
        self._number += 1
        places = {
            (role, name)
            for name, group in self._table.groups.by_name.items()
            for role, place in group.places.items()
            if place.state != "joining"
        }
        self._questions[self._number] = Question(reply, places)
        for _, child in self._table.children():
            child.send(Describe(self._number))
        self._timers.at(f"status {self._number}", WITHIN, partial(self._answer, self._number))
        if not places:
            self._answer(self._number)

    def _receive(self, role: Role, described: Described) -> None:
        question = self._questions.get(described.number)
        place = (role, described.group)
        if question is None or place not in question.open:
            return
        question.open.discard(place)
        question.described[place] = described
        if not question.open:
            self._answer(described.number)

    def _answer(self, number: int) -> None:
        question = self._questions.pop(number)
        self._timers.cancel(f"status {number}")
        question.reply(self._describe_run(question.described))

    def _describe_run(self, described: dict[tuple[Role, str], Described]) -> Answer:
        job = self._table.job
        return {
            "job": job.identity,
            "program": job.options.program,
            "nprocs": job.options.nprocs,
            "up_seconds": round(time.monotonic() - self._began, 1),
            "processes": [_process(role, child) for role, child in self._table.children()],
            "ended": list(self._table.ended),
            "groups": [
                _group(
                    name, group, {role: one for (role, of), one in described.items() if of == name}
                )
                for name, group in sorted(self._table.groups.by_name.items())
            ],
        }


def _process(role: Role, child: Child) -> dict[str, Any]:
    usage = child.usage
    return {
        "role": _role(role),
        "host": child.host,
        "pid": child.pid,
        "restarts": child.restarts,
        "cpu_seconds": usage.cpu,
        "rss": usage.memory,
    }


def _group(name: str, group: Group, described: dict[Role, Described]) -> dict[str, Any]:
    furthest = max((each.next for each in described.values()), default=0)
    members = [
        _member(role, group.places[role], described.get(role), furthest)
        for role in sorted(group.places, key=lambda role: (role is None, role or 0))
    ]
    sequencer = _role(group.sequencer) if group.ordered else None
    return {"name": name, "sequencer": sequencer, "members": members}


def _member(role: Role, place: Place, found: Described | None, furthest: int) -> dict[str, Any]:
    return {
        "role": _role(role),
        "state": place.state,
        "waits_for": [name_of(missing) for _, missing in place.missing],
        "rule": place.rule,
        "view": found and found.view,
        "size": found and found.size,
        "next": found and found.next,
        "lag": found and furthest - found.next,
        "objects": found and found.objects,
        "sent": found and found.sent,
        "waiting": found and found.waiting,
    }


def _role(role: Role) -> int | str:
    return "witness" if role is None else role
