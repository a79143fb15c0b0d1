"""The processes of one run, and what is done to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lib.lossy_switch import TapHost
from tests.lib.processes import Process, Stuck

ROOT = Path(__file__).parents[2]

PORT = 7471
"""Where the first member listens, if members are on hosts of their own."""

DEADLINE = 60.0
"""Seconds that anything may take; past that the run is stuck."""


@dataclass
class Settings:
    """What all members are started with."""

    degree: int = 0
    interval: float = 0.0
    read_interval: float = 0.002
    objects: int = 2
    failpoints: str = ""
    """`ORCALIKE_FAIL` of the first member."""
    stack: str = ""
    """Of all; without one the order of members on this host is in shared memory."""
    called: bool = False
    """Callers write down what they call, in the folder `calls`; else the product keeps its history, in `history`."""
    join_within: float = 30.0
    """Seconds in which a process must be in the group, each time that it joins."""


class Member(Process):
    """One process, and what it has reported."""

    def __init__(self, number: int, command: list[str], errors: Path, **options: Any) -> None:
        super().__init__(command, errors, stdin=subprocess.PIPE, **options)
        self.number = number
        self.incarnation = ""
        self.joined: list[int] = []
        """When it said so, in ns of the monotonic clock: once more after each expulsion."""
        self.address = ""
        self.view: tuple[int, ...] = ()
        self.members: list[str] = []
        self.trouble: list[str] = []
        self.stopped = False
        """It writes no more."""
        self.past_layers: int | None = None
        """Its writes that went past the layers: known when it has read all that there is in the end."""


class Processes:
    """Starts members, takes their reports, and ends them all in the end."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        seed: int,
        hosts: Sequence[TapHost] = (),
        key: Path | None = None,
    ) -> None:
        """With `hosts` each member is on the next one, reached by TCP under a key, and asks for the host's number as its rank."""
        self.hosts, self.key = hosts, key
        self.folder = folder
        self.settings = settings
        self.seed = seed
        self.members: list[Member] = []
        self._reported = threading.Condition()
        self._readers: list[threading.Thread] = []

    def start(self) -> Member:
        """One more member: the first makes the group, the others join those that are in it."""
        number = len(self.members)
        environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
        environment.pop("ORCALIKE_HISTORY", None)
        environment.pop("ORCALIKE_FAIL", None)
        seeds = [member.address for member in self.inside()]
        host = self.hosts[number % len(self.hosts)] if self.hosts else None
        if self.key is not None:
            environment["ORCALIKE_KEY_FILE"] = str(self.key)
        if number == 0:
            own = f"tcp:{host.address}:{PORT}" if host else f"unix:{self.folder}/0"
            way = ["--listen", own]
            if self.settings.failpoints:
                environment["ORCALIKE_FAIL"] = self.settings.failpoints
        else:
            way = ["--seeds", *seeds]
        program = "caller_program" if self.settings.called else "member_program"
        options: dict[str, object] = {
            "--r": self.settings.degree,
            "--interval": self.settings.interval,
            "--read-interval": self.settings.read_interval,
            "--objects": self.settings.objects,
            "--join-within": self.settings.join_within,
            "--seed": self.seed_of(number),
        }
        if self.settings.stack:
            options["--stack"] = self.settings.stack
        if self.settings.called:
            options["--calls"] = self.folder / "calls"
        else:
            environment["ORCALIKE_HISTORY"] = str(self.folder / "history")
        if host is not None:
            # The lowest that is free may be that of a member which was expelled, and could then never join again.
            options["--rank"] = number % len(self.hosts)
        arguments = [str(part) for option in options.items() for part in option]
        command = [sys.executable, "-m", f"tests.campaign.{program}", *way, *arguments]
        if host is not None:
            command = host.command(*command)
        errors = self.folder / f"stderr{number}"
        member = Member(number, command, errors, cwd=ROOT, env=environment)
        self.members.append(member)
        self._readers.append(threading.Thread(target=self._take, args=(member,), daemon=True))
        self._readers[-1].start()
        return member

    def seed_of(self, number: int) -> int:
        """What a member draws its random numbers from; its callers are named by it."""
        return self.seed * 1000 + number

    def _take(self, member: Member) -> None:
        assert member.process.stdout
        for line in member.process.stdout:
            facts: dict[str, Any] = json.loads(line)
            with self._reported:
                if "joined" in facts:
                    member.incarnation, member.address = facts["joined"], facts["address"]
                    member.joined.append(time.monotonic_ns())
                elif "view" in facts:
                    member.view, member.members = tuple(facts["view"]), facts["members"]
                elif "trouble" in facts:
                    member.trouble.append(f"{facts['trouble']}: {facts['text']}")
                elif "past_layers" in facts:
                    member.past_layers = facts["past_layers"]
                member.stopped |= "stopped" in facts
                self._reported.notify_all()
        member.process.wait()
        with self._reported:
            self._reported.notify_all()

    def until(self, holds: Callable[[], object], what: str, timeout: float = DEADLINE) -> None:
        """Wait until something holds; raises Stuck if it never does."""
        end = time.monotonic() + timeout
        with self._reported:
            while not holds():
                rest = end - time.monotonic()
                if rest <= 0:
                    self._show_stacks()
                    raise Stuck(f"never: {what}")
                self._reported.wait(min(rest, 0.5))

    def _show_stacks(self) -> None:
        """Have all say in their stderr files where they are."""
        for member in self.members:
            member.signal(signal.SIGUSR2)

    # Which member is what.

    def inside(self) -> list[Member]:
        """Those that have joined and run."""
        return [member for member in self.members if member.incarnation and member.runs]

    def by_age(self) -> list[Member]:
        """Those that run, oldest first, by the newest view that any of them has; the first orders."""
        inside = self.inside()
        newest = max(inside, key=lambda member: member.view, default=None)
        if newest is None:
            return []
        names = {member.incarnation: member for member in inside}
        return [names[name] for name in newest.members if name in names]

    def agreed(self) -> bool:
        """Whether all that run are in one view, with no other member."""
        inside = self.inside()
        present = {member.incarnation for member in inside}
        return all(
            member.view == inside[0].view and set(member.members) == present for member in inside
        )

    # The end.

    def finish(self, within: float = DEADLINE) -> None:
        """No more writes; then all leave, the youngest first; each of it may take so long."""
        inside = list(reversed(self.by_age()))
        for member in inside:
            member.write("stop")
        for member in inside:
            self._await(member, "stop", lambda each: each.stopped, within)
        if self.settings.called:
            for member in inside:
                member.write("read")
            for member in inside:
                self._await(member, "read", lambda each: each.past_layers is not None, within)
        for member in inside:
            member.write("leave")
            self._await(member, "leave", lambda each: not each.runs, within)

    def _await(
        self, member: Member, word: str, done: Callable[[Member], bool], within: float
    ) -> None:
        what = f"member {member.number}: {word}"
        self.until(lambda: done(member) or not member.runs, what, within)

    def end(self) -> None:
        """Kill what still runs; all that was reported has been taken then."""
        for member in self.members:
            member.signal(signal.SIGKILL)
        for reader in self._readers:
            reader.join()
        for member in self.members:
            member.kill()
