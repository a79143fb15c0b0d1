"""One member of a campaign: it writes and reads until a command stops it.

Commands come on stdin, one word a line: `cut` (its connections break), `stop` (no more writes), `leave`.
It says what happens as lines of JSON on stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import logging
import os
import random
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import orcalike as orca
from orcalike.session.joining import Joining
from orcalike.session.options import make_options
from tests.campaign.objects import Bank, Counter, Queue, Register

ACCOUNTS, EACH = 8, 100
BURST = 10
"""Writes that a pipelined writer has under way."""


def say(**facts: object) -> None:
    """One line for the supervisor."""
    os.write(1, (json.dumps(facts) + "\n").encode())


def say_joined(group: orca.Group) -> None:
    """Tell the identity of this member now."""
    say(joined=f"{group.me.incarnation:016x}", address=group.address, rank=group.rank)


@dataclass
class SharedObjects:
    """All shared objects of the campaign."""

    registers: list[Register]
    counters: list[Counter]
    queues: list[Queue]
    banks: list[Bank]

    @classmethod
    def share(cls, group: orca.Group, each: int) -> SharedObjects:
        """So many of each kind; the names tell the checkers their models."""
        numbers = range(each)
        return cls(
            [group.share(Register, f"register {number}") for number in numbers],
            [group.share(Counter, f"counter {number}") for number in numbers],
            [group.share(Queue, f"queue {number}") for number in numbers],
            [
                group.share(Bank, f"bank {number} {ACCOUNTS} {EACH}", ACCOUNTS, EACH)
                for number in numbers
            ],
        )


class Membership:
    """That of this process in a group, which it joins again if it was expelled."""

    def __init__(self, group: orca.Group, join_within: float) -> None:
        self.group, self.join_within = group, join_within
        self.incarnation = group.me.incarnation
        self.joining = threading.Lock()

    def rejoin(self, expelled: int) -> None:
        """The group has gone on without this member: join again, once for all threads."""
        with self.joining:
            if self.incarnation == expelled:
                self.group.rejoin(timeout=self.join_within)
                self.incarnation = self.group.me.incarnation
                say_joined(self.group)

    def without_expulsion(self, step: Callable[[], Any]) -> Any:
        """Do it as a member: as one that has joined again if need be, since it may be expelled at any time."""
        while True:
            incarnation = self.incarnation
            try:
                return step()
            except orca.Expelled:
                self.rejoin(incarnation)


class Work(Membership):
    """The shared objects, and the threads that write and read them."""

    def __init__(self, group: orca.Group, options: argparse.Namespace) -> None:
        super().__init__(group, options.join_within)
        self.shared: SharedObjects = self.without_expulsion(
            lambda: SharedObjects.share(group, options.objects)
        )
        seed = options.seed
        self.name = f"{seed}.{group.me.incarnation:x}"
        self.interval, self.read_interval = options.interval, options.read_interval
        self.stopped = threading.Event()
        kinds: list[Callable[[random.Random, str], None]] = [
            self.write,
            self.write_ahead,
            self.read,
        ]
        self.threads = [
            threading.Thread(target=self.repeat, args=(kind, random.Random(f"{seed}.{kind}")))
            for kind in kinds
        ]

    def repeat(self, step: Callable[[random.Random, str], None], rng: random.Random) -> None:
        """Do a step again and again; what it raises is printed."""
        number = 0
        due = time.monotonic()
        name = step.__name__
        try:
            while not self.stopped.is_set():
                incarnation = self.incarnation
                try:
                    step(rng, f"{self.name}.{name}.{number}")
                except orca.Expelled:
                    self.rejoin(incarnation)
                number += 1
                due += self.read_interval if name == "read" else self.interval * self.cost(name)
                wait = due - time.monotonic()
                if wait < 0:
                    due -= wait  # a pause is not made up for
                elif self.stopped.wait(wait):
                    break
        except orca.OrcalikeError as error:
            say(trouble=type(error).__name__, text=str(error))
            self.stopped.set()

    @staticmethod
    def cost(name: str) -> int:
        """How many writes a step makes."""
        return BURST if name == "write_ahead" else 1

    def write(self, rng: random.Random, unique: str) -> None:
        """One write, and wait for it."""
        match rng.randrange(4):
            case 0:
                rng.choice(self.shared.registers).swap(unique)
            case 1:
                rng.choice(self.shared.counters).add(rng.randrange(1, 10))
            case 2:
                queue = rng.choice(self.shared.queues)
                queue.put(unique)
                queue.take()  # no more is taken than was put: it never waits for good
            case _:
                try:
                    move(rng, self.shared.banks)()
                except ValueError:
                    pass  # too little on the account

    def write_ahead(self, rng: random.Random, unique: str) -> None:
        """Some writes at once, then wait for all."""
        under_way: list[orca.Invocation[Any]] = []
        for number in range(BURST):
            if rng.randrange(2):
                register = rng.choice(self.shared.registers)
                under_way.append(register.swap.nowait(f"{unique}.{number}"))
            else:
                under_way.append(rng.choice(self.shared.counters).add.nowait(1))
        for invocation in under_way:
            invocation.result()

    def read(self, rng: random.Random, unique: str) -> None:
        """One read of each kind of object."""
        rng.choice(self.shared.registers).get()
        rng.choice(self.shared.counters).get()
        rng.choice(self.shared.queues).length()
        rng.choice(self.shared.banks).total()


def move(rng: random.Random, banks: list[Bank]) -> Callable[[], int]:
    """A transfer between two accounts of some bank."""
    source, target = rng.sample(range(ACCOUNTS), 2)
    return partial(rng.choice(banks).move, source, target, rng.randrange(1, EACH // 2))


def cut_connections() -> int:
    """Break this process's stream connections, as a network does; returns how many."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.stat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.type == socket.SOCK_STREAM:
                    connection.getpeername()
                    connection.shutdown(socket.SHUT_RDWR)
                    count += 1
        except OSError:
            continue  # closed meanwhile, or a socket that listens
    return count


def tell_views(group: orca.Group) -> None:
    """Tell each view, the present one first."""
    views = group.views()
    tell_view(group.view)
    for view in views:
        tell_view(view)


def tell_view(view: orca.View) -> None:
    """Tell one view."""
    members = [f"{member.incarnation:016x}" for member in view.members]
    say(view=list(view.identity), members=members)


def parser_of_members(description: str | None) -> argparse.ArgumentParser:
    """What the supervisor passes to each member."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--listen", help="make the group, at this address")
    parser.add_argument("--seeds", nargs="*", default=[], help="join through these")
    parser.add_argument("--rank", type=int, help="ask for this one; else for any that is free")
    parser.add_argument("--join-within", type=float, default=30.0, help="seconds, each time")
    parser.add_argument("--r", type=int, default=0)
    parser.add_argument(
        "--interval", type=float, default=0.0, help="seconds between writes of a thread"
    )
    parser.add_argument("--read-interval", type=float, default=0.002, help="seconds between reads")
    parser.add_argument("--objects", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stack")
    return parser


def joining_of(options: argparse.Namespace) -> Joining:
    """What is to be entered to be a member; a signal shows where all threads are."""
    faulthandler.register(signal.SIGUSR2)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    asked = make_options(
        listen=options.listen,
        seeds=options.seeds or None,
        resilience=options.r,
        stack=options.stack,
        timeout=options.join_within,
    )
    return Joining(lambda: asked.replace(own_rank=options.rank))


def main() -> None:
    """What the supervisor starts."""
    options = parser_of_members(__doc__).parse_args()
    with joining_of(options) as group:
        say_joined(group)
        threading.Thread(target=tell_views, args=(group,), daemon=True).start()
        work = Work(group, options)
        for thread in work.threads:
            thread.start()
        for line in sys.stdin:
            match line.strip():
                case "cut":
                    say(cut=cut_connections())
                case "stop":
                    work.stopped.set()
                    for thread in work.threads:
                        thread.join()
                    work.without_expulsion(group.fence)
                    say(stopped=True)
                case "leave":
                    with contextlib.suppress(orca.Expelled):
                        group.digest()
                    sys.exit()  # in an orderly way the last ones would wait for more members


if __name__ == "__main__":
    main()
