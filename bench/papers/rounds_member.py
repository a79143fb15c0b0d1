"""What each member runs in H91 to H94: Horus's own test, on a stack of layers without objects above.

    orcalike run --sequencer rank -n 3 bench/papers/rounds_member.py STACK

Each line of the input, `KIND COUNT`, asks for so many rounds; the answer is the seconds of one:

    all:K:SIZE    in each round every member casts K messages of SIZE bytes, and waits for those
                  that the others cast
    one:K:SIZE    in each round one member casts, the next one in the next round; all others wait

What the rounds are goes through a second group, of objects.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from itertools import count as numbers
from itertools import repeat

import orcalike as orca
from orcalike.bench.member import Desk, answer, next_order
from orcalike.bench.papers.layers import make_known
from orcalike.session.deadline import Deadline
from orcalike.session.entering import Entering
from orcalike.session.options import make_options
from orcalike.session.session import Session
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

ENOUGH = 60.0
"""Seconds after which a round is given up."""


class Counter(Layer):
    """Stands on top of the stack, and counts what the others cast."""

    notice: Exception | None = None
    group_degree = 0

    available = False
    """Its degree is never lowered to what there is."""

    def __init__(self, stack: Stack, session: Session) -> None:
        super().__init__(stack)
        self.session = session
        self.me = stack.me.incarnation
        self.position = -1
        self.received = 0
        self.wanted = 0
        self.complete = threading.Event()
        self.failure: Exception | None = None
        stack.above = self

    def up_view(self, view: View, cut: bytes) -> None:
        """A member has joined, or left."""
        self.position = view.position(self.me)
        if self.position >= 0:
            self.session.viewed(view)

    def up_cast(self, message: Message) -> None:
        """One message; this member's own ones come back if there is an order."""
        if message.source != self.position:
            self.received += 1
            if self.received >= self.wanted:
                self.complete.set()

    def wait(self, count: int) -> None:
        """Until so many more are here than were waited for before."""
        self.wanted += count
        self.complete.clear()  # after that: a message may come in between
        if self.received < self.wanted and not self.complete.wait(ENOUGH):
            raise self.failure or TimeoutError(f"{self.received} messages, of {self.wanted}")

    def up_exit(self, why: str) -> None:
        """Out of the group."""
        self.session.exited(why)

    def load(self) -> tuple[int, int]:
        """It has no objects."""
        return 0, 0

    def too_few(self) -> None:
        """Nothing that it casts has a degree that the view has too few members for."""

    def say_too_few(self, degree: int) -> str:
        """No degree is ever too large."""
        return ""

    def rebind(self, stack: Stack) -> None:
        """It is measured in one group, and joins no other."""
        raise AssertionError("a member that is measured does not join again")

    def up_join_failed(self, why: str) -> None:
        """The address that was tried does not answer."""
        self.session.join_failed(why)

    def up_join_denied(self, why: str) -> None:
        """The group refused."""
        self.session.join_denied(why)

    def up_problem(self, member: object, why: str) -> None:
        """A member is suspected."""
        assert isinstance(member, Member)
        self.session.suspected(member, why)

    def up_give_state(self) -> Iterator[bytes]:
        """There is none."""
        return iter(())

    def up_take_state(self, piece: bytes) -> None:
        """There is none."""

    def fail_all(self, error: Exception) -> None:
        """No more comes."""
        self.failure = error
        self.complete.set()


class Rounds:
    """One member of the group that is measured."""

    def __init__(self, stack: str) -> None:
        options = make_options(
            "rounds",
            seeds=None,
            listen=None,
            size=None,
            resilience=0,
            blocked="wait",
            stack=stack,
            timeout=ENOUGH,
        )
        self.session = Session(options, self._make_counter, Counter)
        Entering(self.session).join(Deadline(options.timeout))

    def _make_counter(self, stack: Stack, session: Session) -> Counter:
        self.counter = Counter(stack, session)
        return self.counter

    def cast(self, count: int, size: int) -> None:
        """So many messages, in one input of the stack."""
        stack, data = self.session.stack, bytes(size)

        def all_of_them(now: int) -> None:
            for _ in repeat(None, count):
                stack.cast(Message(data), now)

        self.session.pump.call(all_of_them)

    def run(self, kind: str, rank: int, members: int, rounds: int) -> tuple[float, float]:
        """When this member began, and when its last round was over."""
        name, messages, size = kind.split(":")
        k, bytes_ = int(messages), int(size)
        began = time.monotonic()
        for number in range(rounds):
            if name == "all":
                self.cast(k, bytes_)
                self.counter.wait(k * (members - 1))
            elif number % members == rank:
                self.cast(k, bytes_)
            else:
                self.counter.wait(k)
        return began, time.monotonic()


def main() -> None:
    """Until the input ends."""
    with orca.join() as group:
        desk = group.share(Desk, "desk")
        rounds = Rounds(sys.argv[1])
        assert group.rank is not None
        group.barrier()
        for number in numbers():
            if group.rank == 0:
                desk.give(*next_order(sys.stdin.readline()))
            kind, count = desk.order(number)
            if kind == "end":
                break
            if kind == "hello":
                kind, count = "all:1:1", 1
            group.barrier()
            desk.report(number, *rounds.run(kind, group.rank, group.size, count))
            if group.rank == 0:
                answer(desk.seconds(number, group.size) / count)
        group.barrier()
        rounds.session.leave()


if __name__ == "__main__":
    make_known()
    main()
