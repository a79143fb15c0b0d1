"""What the programs of simulated members do: they invoke something at random, without waiting."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

import orcalike as orca
from orcalike.runtime.codes import Code
from orcalike.runtime.dispatch import Runtime
from orcalike.session.group_calls import Drop, Find, Share, Whole
from tests.lib.shared_classes import Counter, Journal, transfer, transfer_undone, transfer_when


class Member(Protocol):
    """What a program knows of the member that runs it."""

    number: int
    runtime: Runtime
    invocations: list[orca.Invocation[Any]]

    def keep(self, name: str, invocation: orca.Invocation[Any]) -> None:
        """The object of that name is on its way."""

    def object_of(self, name: str) -> Any:
        """The object of that name, or None if this member has not got it."""


Action = Callable[[Member, Random], object]
"""It may return an invocation."""


@orca.shared
class Late:
    """A class that some members' programs know from a later moment on only."""

    def __init__(self, start: int) -> None:
        self.total = start
        self.events: list[str] = []

    @orca.write
    def add(self, by: int) -> int:
        self.total += by
        self.events.append(f"add {by} at {orca.now()}")
        return self.total

    @orca.write
    def take(self, by: int) -> int:
        self.total -= by
        self.events.append(f"take {by} {orca.random().random()}")
        return self.total

    @take.when
    def _(self, by: int) -> bool:
        return self.total >= by

    @orca.write(popup=True)
    def add_slowly(self, by: int) -> int:
        return self.add(by)

    def member_joined(self, member: orca.Member) -> None:
        self.events.append(f"joined {member.rank}")

    def member_left(self, member: orca.Member) -> None:
        self.events.append(f"left {member.rank}")
        self.total += 1


def on(name: str, act: Callable[[Any, Random], object]) -> Action:
    """An action on the object of that name, if the member has it."""

    def action(member: Member, rng: Random) -> object:
        shared = member.object_of(name)
        return None if shared is None else act(shared, rng)

    return action


def on_two(act: Callable[[Any, Any, int], object]) -> Action:
    """An action on two counters."""

    def action(member: Member, rng: Random) -> object:
        names = rng.sample(["counter", "alice", "bob"], 2)
        source, target = map(member.object_of, names)
        if source is None or target is None:
            return None
        return act(source, target, rng.randint(0, 6))

    return action


def refer(member: Member, rng: Random) -> object:
    journal = member.object_of("journal")
    names = rng.sample(["counter", "alice", "temporary", "journal"], 2)
    others = [member.object_of(name) for name in names]
    return None if journal is None else journal.refer_to.nowait([*others, {"now": others}])


def share_temporary(member: Member, rng: Random) -> None:
    cls: Any = rng.choice([Counter, Counter, Journal])
    member.keep("temporary", Share(member.runtime).nowait(cls, "temporary", rng.randint(1, 3)))


def drop_temporary(member: Member, rng: Random) -> object:
    shared = member.object_of("temporary")
    return None if shared is None else Drop(member.runtime).nowait(shared)


def cancel(member: Member, rng: Random) -> None:
    pending = [invocation for invocation in member.invocations if not invocation.done()]
    if pending:
        rng.choice(pending).cancel()


def note(member: Member, rng: Random) -> object:
    journal = member.object_of("journal")
    if journal is None:
        return None
    return journal.note.nowait(f"{member.number}.{len(member.invocations)}")


ACTIONS: list[Action] = [
    on("counter", lambda c, rng: c.add.nowait(rng.randint(1, 3))),
    on("counter", lambda c, rng: c.take.nowait(rng.randint(-1, 9))),
    on("counter", lambda c, rng: c.take_nested.nowait(rng.randint(0, 5))),
    on("counter", lambda c, rng: c.fail.nowait("failed")),
    on("alice", lambda c, rng: c.fail_undone.nowait("undone")),
    on("bob", lambda c, rng: c.add_all.nowait(1, rng.randint(0, 3), twice=True, extra=-4)),
    on("alice", lambda c, rng: c.add_twice.nowait(1)),
    on("alice", lambda c, rng: c.take.nowait(rng.randint(0, 20))),
    on("journal", lambda j, rng: j.put.nowait(f"item {rng.random()}")),
    on("journal", lambda j, rng: j.put.nowait(f"item {rng.random()}")),
    on("journal", lambda j, rng: j.get.nowait("one")),
    on("journal", lambda j, rng: j.get.nowait(reader="another")),
    on("journal", lambda j, rng: j.roll.nowait()),
    on("journal", lambda j, rng: j.note_slowly.nowait(f"slow {rng.random()}")),
    on("temporary", lambda t, rng: t.add.nowait(1) if isinstance(t, Counter) else None),
    on("late", lambda late, rng: late.add.nowait(rng.randint(0, 4))),
    on("late", lambda late, rng: late.take.nowait(rng.randint(0, 9))),
    on("late", lambda late, rng: late.add_slowly.nowait(rng.randint(0, 4))),
    on_two(lambda source, target, n: transfer.nowait(source, target, n)),
    on_two(lambda source, target, n: transfer_undone.nowait(source, target, n)),
    on_two(lambda source, target, n: transfer_when.nowait(source, target, amount=n)),
    on_two(lambda source, target, n: transfer_when.nowait(source, target, amount=n)),
    lambda member, rng: Whole(member.runtime, Code.FENCE).nowait(),
    lambda member, rng: (
        Whole(member.runtime, Code.BARRIER).nowait() if rng.random() < 0.1 else None
    ),
    lambda member, rng: Find(member.runtime).nowait(Counter, "temporary"),
    note,
    note,
    refer,
    share_temporary,
    drop_temporary,
    cancel,
]
