"""What `orcalike status` shows: the processes of a run, and how its groups stand at each of them.

The question is `{"do": "status"}`, with `"objects": true` for the objects too. The launcher asks each
process for its groups by a line (`Describe`), and answers when all have answered, or after a second:
what a process does not say then is null. So it needs no sequencer, and no primary view.
docs/command-line.md has the fields of the answer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from orcalike.launch_protocol.control_lines import Describe, Described, Role
from orcalike.launch_protocol.descriptions import Description, plain
from orcalike.launcher.child import Child, Exit
from orcalike.launcher.control_socket import Answer
from orcalike.launcher.group_status import Group, Place, name_of
from orcalike.launcher.outcome import exit_code, signal_name
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.timers import Timers

#: How long the processes have to answer.
WITHIN = 1.0
#: How long a process is not asked again that has not answered, if nothing else comes of it.
ASK_AGAIN_SECONDS = 30.0
#: Questions that may be open at a time; more are answered with what is known without asking.
QUESTIONS_MAX = 16

Answers = dict[tuple[Role, str], Description]


@dataclass(slots=True)
class Question:
    """One question, until it is answered."""

    reply: Callable[[Answers], None]
    #: Of which process and group an answer is still to come.
    open: set[tuple[Role, str]]
    answers: Answers = field(default_factory=dict)


class Status:
    """Answers how a run stands."""

    def __init__(self, table: ProcessTable, timers: Timers) -> None:
        self._table = table
        self._timers = timers
        self._began = time.monotonic()
        self._questions: dict[int, Question] = {}
        self._number = 0
        self._silent: dict[Role, tuple[Child, float]] = {}
        """The processes that have not answered the last question in time, and when that was over. A question that is
        not read stays in their line, which has little room."""
        table.groups.on_described = self._receive

    def ask(self, reply: Callable[[Answer], None], *, objects: bool = False) -> None:
        """Ask all processes; `reply` is called with how the run stands, in a second at the most."""
        self.collect(lambda answers: reply(self._describe_run(answers)), objects=objects)

    def collect(self, reply: Callable[[Answers], None], *, objects: bool = False) -> None:
        """The same; `reply` is called with what they have answered themselves."""
        self._number += 1
        asked = {
            role: child for role, child in self._table.children() if self._answers(role, child)
        }
        places = {
            (role, name)
            for name, group in self._table.groups.by_name.items()
            for role in group.places
            if role in asked
        }
        if not places or len(self._questions) >= QUESTIONS_MAX:
            reply({})
            return
        self._questions[self._number] = Question(reply, places)
        for role in {role for role, _ in places}:
            asked[role].send(Describe(self._number, objects))
        self._timers.at(f"status {self._number}", WITHIN, partial(self._answer, self._number))

    def _answers(self, role: Role, child: Child) -> bool:
        """Whether a process is asked: it has answered what was asked before, or that is long ago."""
        silent, since = self._silent.get(role, (None, 0.0))
        return silent is not child or time.monotonic() >= since + ASK_AGAIN_SECONDS

    def _receive(self, role: Role, described: Described) -> None:
        self._silent.pop(role, None)
        question = self._questions.get(described.number)
        place = (role, described.group)
        if question is None or place not in question.open:
            return
        question.open.discard(place)
        question.answers[place] = described.description
        if not question.open:
            self._answer(described.number)

    def _answer(self, number: int) -> None:
        question = self._questions.pop(number)
        self._timers.cancel(f"status {number}")
        # One that has answered for a group reads its line.
        answered = {role for role, _ in question.answers}
        for role, _ in question.open:
            if role not in answered and (child := self._table.find(role)) is not None:
                self._silent[role] = child, time.monotonic()
        question.reply(question.answers)

    def _describe_run(self, answers: Answers) -> Answer:
        job, table = self._table.job, self._table
        processes = [_running(role, child, answers) for role, child in table.children()]
        there = {process["role"] for process in processes}
        for role in sorted(table.exits, key=_order):
            if _role(role) not in there:
                processes.append(_left(role, *table.exits[role], self._is_over(role)))
        return {
            "job": job.identity,
            "program": job.options.program,
            "nprocs": job.options.nprocs,
            "up_seconds": round(time.monotonic() - self._began, 1),
            "hosts": sorted({child.host for _, child in table.children()}),
            "processes": processes,
            "groups": [
                _group(
                    name, group, {role: one for (role, of), one in answers.items() if of == name}
                )
                for name, group in sorted(table.groups.by_name.items(), key=_default_first)
                if not group.is_left
            ],
        }

    def _is_over(self, role: Role) -> bool:
        """Whether a process that has ended is not started again."""
        return role is None or role in self._table.ended


def _default_first(item: tuple[str, Group]) -> tuple[bool, str]:
    return item[0] != "default", item[0]


def _running(role: Role, child: Child, answers: Answers) -> dict[str, Any]:
    used = child.usage
    own = [answer for (of, _), answer in answers.items() if of == role]
    return _process(
        role,
        host=child.host,
        pid=child.pid,
        state="running",
        restarts=child.restarts,
        cpu_seconds=used.cpu,
        age_seconds=used.age,
        rss=used.memory,
        # Each group of a process names the waits of its threads: they are the process's.
        waits=[plain(wait) for wait in max((each.waits for each in own), key=len, default=())],
        forked=[plain(each) for one in own for each in one.forked],
    )


def _left(role: Role, child: Child, end: Exit, is_over: bool) -> dict[str, Any]:
    return _process(
        role,
        host=child.host,
        pid=child.pid,
        state="left" if is_over else "restarting",
        restarts=child.restarts,
        exit_code=None if end.lost else exit_code(end.returncode),
        signal=signal_name(-end.returncode) if end.returncode < 0 and not end.lost else None,
        lost=end.lost or None,
    )


def _process(role: Role, **known: Any) -> dict[str, Any]:
    """All fields of a process, in their order; what is not known is null."""
    names = ("host", "pid", "state", "restarts", "cpu_seconds", "age_seconds", "rss")
    empty = dict.fromkeys((*names, "exit_code", "signal", "lost"))
    return {"role": _role(role)} | empty | {"waits": [], "forked": []} | known


def _group(name: str, group: Group, answers: dict[Role, Description]) -> dict[str, Any]:
    furthest = max((each.next for each in answers.values()), default=0)
    members = [
        _member(role, group.places[role], answers.get(role), furthest)
        for role in sorted(group.places, key=_order)
    ]
    views = [each.view for each in answers.values()]
    degrees = [each.resilience for each in answers.values() if each.resilience is not None]
    listing = max(
        answers.values(),
        key=lambda each: (bool(each.shared), each.primary, each.next),
        default=None,
    )
    return {
        "name": name,
        "view": max(views, default=None),
        "primary": any(each.primary for each in answers.values()) if answers else None,
        "order": "shared memory" if group.shares_memory else "sequencer",
        "sequencer": _role(group.sequencer) if group.ordered else None,
        "resilience": degrees[0] if degrees else None,
        "missing": _missing(*group.places.values()),
        "rules": list(dict.fromkeys(filter(None, (member["rule"] for member in members)))),
        "members": members,
        "objects": _objects(answers.values(), listing),
    }


def _objects(answers: Iterable[Description], listing: Description | None) -> list[dict[str, Any]]:
    """The objects, as the member has them that is furthest; reads wait at each member for themselves."""
    shared = listing.shared if listing is not None else ()
    reads = Counter({each.name: 0 for each in shared})
    for answer in answers:
        reads.update({each.name: each.reads for each in answer.shared})
    return [
        {
            "name": each.name,
            "class": each.cls,
            "resilience": each.resilience,
            "replicas": listing.size if listing is not None else 0,
            "blocked": each.blocked + reads[each.name],
            "queued": each.queued,
        }
        for each in shared
    ]


def _member(role: Role, place: Place, found: Description | None, furthest: int) -> dict[str, Any]:
    return {
        "role": _role(role),
        "state": "syncing" if found is not None and found.syncing else _STATES[place.state],
        "answers": found is not None,
        "waits_for": _missing(place),
        "rule": place.rule,
        "view": found and found.view,
        "size": found and found.size,
        "primary": found and found.primary,
        "next": found and found.next,
        "lag": found and furthest - found.next,
        "objects": found and found.objects,
        "sent": found and found.sent,
        "guarded": found and found.guarded,
    }


def _missing(*places: Place) -> list[str]:
    """The names of the members that these miss, in the order of their ranks."""
    roles = {role for place in places for _, role in place.missing}
    return [name_of(role) for role in sorted(roles, key=_order)]


_STATES = {
    "in": "member",
    "joining": "joining",
    "blocked": "blocked",
    "lacking": "waits",
    "leaving": "leaving",
}


def _role(role: Role) -> int | str:
    return "witness" if role is None else role


def _order(role: Role) -> tuple[bool, int]:
    return role is None, role or 0
