"""The processes of one run, and what is done to them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

DEADLINE = 60.0
"""Seconds that anything may take; past that the run is stuck."""


class Stuck(Exception):
    """What must happen did not."""


@dataclass
class Settings:
    """What all members are started with."""

    degree: int = 0
    interval: float = 0.0
    objects: int = 2
    failpoints: str = ""
    """`ORCALIKE_FAIL` of the first member."""


@dataclass
class Member:
    """One process, and what it has said."""

    number: int
    process: subprocess.Popen[str]
    incarnation: str = ""
    address: str = ""
    view: tuple[int, ...] = ()
    members: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    stopped: bool = False
    """It writes no more."""

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self.process.poll() is None

    def tell(self, word: str) -> None:
        """One word to its stdin; a process that is gone hears nothing."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process is still there."""
        if self.runs:
            self.process.send_signal(number)


class Processes:
    """Starts members, hears them, and ends them all in the end."""

    def __init__(self, folder: Path, settings: Settings, seed: int) -> None:
        self.folder = folder
        self.settings = settings
        self.seed = seed
        self.members: list[Member] = []
        self._heard = threading.Condition()

    def start(self) -> Member:
        """One more member: the first makes the group, the others join those that are in it."""
        number = len(self.members)
        environment = os.environ | {
            "ORCALIKE_HISTORY": str(self.folder / "history"),
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(ROOT),
        }
        environment.pop("ORCALIKE_FAIL", None)
        seeds = [member.address for member in self.inside()]
        if number == 0:
            way = ["--listen", f"unix:{self.folder}/0"]
            if self.settings.failpoints:
                environment["ORCALIKE_FAIL"] = self.settings.failpoints
        else:
            way = ["--seeds", *seeds]
        options = {
            "--r": self.settings.degree,
            "--interval": self.settings.interval,
            "--objects": self.settings.objects,
            "--seed": self.seed * 1000 + number,
        }
        told = [str(part) for option in options.items() for part in option]
        command = [sys.executable, "-m", "tests.campaign.member_program", *way, *told]
        with (self.folder / f"stderr{number}").open("w") as errors:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        member = Member(number, process)
        self.members.append(member)
        threading.Thread(target=self._hear, args=(member,), daemon=True).start()
        return member

    def _hear(self, member: Member) -> None:
        assert member.process.stdout
        for line in member.process.stdout:
            facts: dict[str, Any] = json.loads(line)
            with self._heard:
                if "joined" in facts:
                    member.incarnation, member.address = facts["joined"], facts["address"]
                elif "view" in facts:
                    member.view, member.members = tuple(facts["view"]), facts["members"]
                elif "trouble" in facts:
                    member.trouble.append(f"{facts['trouble']}: {facts['text']}")
                member.stopped |= "stopped" in facts
                self._heard.notify_all()
        member.process.wait()
        with self._heard:
            self._heard.notify_all()

    def until(self, holds: Callable[[], object], what: str, timeout: float = DEADLINE) -> None:
        """Wait until something holds; raises Stuck if it never does."""
        end = time.monotonic() + timeout
        with self._heard:
            while not holds():
                rest = end - time.monotonic()
                if rest <= 0:
                    self._show_stacks()
                    raise Stuck(f"never: {what}")
                self._heard.wait(min(rest, 0.5))

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

    def finish(self) -> None:
        """No more writes; then all leave, the youngest first."""
        inside = list(reversed(self.by_age()))
        for member in inside:
            member.tell("stop")
        for member in inside:
            self._await(member, "stop", lambda each: each.stopped)
        for member in inside:
            member.tell("leave")
            self._await(member, "leave", lambda each: not each.runs)

    def _await(self, member: Member, word: str, done: Callable[[Member], bool]) -> None:
        self.until(lambda: done(member) or not member.runs, f"member {member.number}: {word}")

    def end(self) -> None:
        """Kill what still runs."""
        for member in self.members:
            member.signal(signal.SIGCONT)
            member.signal(signal.SIGKILL)
            member.process.wait()
            for stream in (member.process.stdin, member.process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
