"""What each member of a group runs in A51 to A62, D23 and D24; `groups.start` starts it.

    orcalike run -n 3 bench/papers/member.py [--resilience=R]

Each rank is a member of two groups: one of messages, in which a thread receives all the time, and
one of objects. Rank 0 answers each line of its input, `KIND COUNT`, with the seconds of one
operation, or of all together divided by their number. The kinds:

    send:SIZE             rank 0 sends messages of SIZE bytes, one after the other (A51)
    write[:SIZE]          rank 0 writes (SIZE bytes) to a shared object with r = 0, and waits each time (D23)
    sure[:SIZE]           the same with the group's degree (A61, A62)
    sends:SIZE:SENDERS    the first SENDERS ranks send (A56)
    writes:SENDERS        they write, and wait each time (D24)
    posts:SENDERS         they write, and do not wait
"""

from __future__ import annotations

import sys
import threading
import time
from functools import partial
from itertools import count as numbers
from itertools import repeat

import orcalike as orca
from orcalike.bench.member import Desk, answer, join, next_order
from orcalike.messages import (
    Data,
    MessageGroup,
    join_group,
    leave_group,
    receive_from_group,
    send_to_group,
)


@orca.shared(resilience=0)
class Null:
    """An object whose operation does nothing: all that it costs is orcalike's."""

    @orca.write
    def nothing(self) -> None:
        """The papers' null update."""

    @orca.write
    def take(self, data: bytes) -> None:
        """The same, with an argument."""


@orca.shared
class Sure:
    """The same, with the degree of the group."""

    @orca.write
    def nothing(self) -> None:
        """The papers' null update."""

    @orca.write
    def take(self, data: bytes) -> None:
        """The same, with an argument."""


class Inbox:
    """Messages, which a thread of their own receives as in the original: it counts them."""

    def __init__(self) -> None:
        self.group: MessageGroup = join_group("papers")
        self.received = 0
        self.wanted = 0
        self.complete = threading.Event()
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        while True:
            try:
                event = receive_from_group(self.group)
            except orca.OrcalikeError:
                return  # it was left
            if isinstance(event, Data):
                self.received += 1
                if self.received == self.wanted:
                    self.complete.set()

    def expect(self, count: int) -> None:
        """From here on so many messages come, of all members; none has sent any yet."""
        self.complete.clear()
        self.wanted = self.received + count

    def send(self, size: int, count: int) -> float:
        """Messages one after the other; the seconds of them all."""
        group, data = self.group, bytes(size)
        began = time.monotonic()
        for _ in repeat(None, count):
            send_to_group(group, data)
        return time.monotonic() - began


class Worker:
    """What one rank does."""

    def __init__(self, group: orca.Group) -> None:
        self.group = group
        self.desk = group.share(Desk, "desk")
        self.null = group.share(Null, "null")
        self.sure = group.share(Sure, "sure")
        self.inbox = Inbox()

    def alone(self, kind: str, count: int) -> float | None:
        """What rank 0 does alone: the seconds of one; None if others have a part in it."""
        name, *numbers = kind.split(":")
        if name == "hello":
            return 0.0
        if name == "send":
            return self.inbox.send(int(numbers[0]), count) / count
        if name in ("write", "sure"):
            null = self.null if name == "write" else self.sure
            return self.write(null, count, *map(int, numbers)) / count
        return None

    @staticmethod
    def write(null: Null | Sure, count: int, size: int = 0) -> float:
        """Writes one after the other; the seconds of them all."""
        write = partial(null.take, bytes(size)) if size else null.nothing
        began = time.monotonic()
        for _ in repeat(None, count):
            write()
        return time.monotonic() - began

    def together(self, kind: str, count: int) -> tuple[float, float]:
        """This rank's part of what several do at once: when it began, when it was over."""
        name, *numbers = kind.split(":")
        senders = int(numbers[-1])
        if name == "sends":
            self.inbox.expect(count * senders)
        self.group.barrier()
        began = time.monotonic()
        if self.group.rank is not None and self.group.rank < senders:
            if name == "sends":
                self.inbox.send(int(numbers[0]), count)
            elif name == "writes":
                self.write(self.null, count)
            else:
                for _ in repeat(None, count):
                    self.null.nothing.nowait()
        if name == "sends":
            self.inbox.complete.wait()
        else:
            self.group.barrier()
        return began, time.monotonic()

    def direct(self) -> None:
        """Rank 0: have rounds alone until one comes that is for all, and order that."""
        while True:
            kind, count = next_order(sys.stdin.readline())
            seconds = self.alone(kind, count)
            if seconds is None:
                self.desk.give(kind, count)
                return
            answer(seconds)

    def run(self) -> None:
        """Until the input ends."""
        for number in numbers():
            if self.group.rank == 0:
                self.direct()
            kind, count = self.desk.order(number)
            if kind == "end":
                break
            self.desk.report(number, *self.together(kind, count))
            if self.group.rank == 0:
                seconds = self.desk.seconds(number, self.group.size)
                answer(seconds / (count * int(kind.rpartition(":")[2])))
        leave_group(self.inbox.group)


if __name__ == "__main__":
    with join() as group:
        Worker(group).run()
