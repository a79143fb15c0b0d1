"""Callers: what a thread or a coroutine of a campaign calls, step by step, and writes down (`tests/lib/called.py`).

A step of a thread is a coroutine, too, which never waits for an event loop.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import orcalike as orca
from tests.campaign.objects import Bank, Chain, Counter, Queue, Slot, draw
from tests.lib.called import CallLog

ACCOUNTS, EACH = 8, 100
BURST = 8
"""Writes of one caller that are under way at once."""

LIMITS = ("30s", "30s", "30s", "1ms")
MOMENT = "50ms"
"""How long one waits that helps others: if none of them waited, nothing may come."""

LINKS = 1 << 40


@dataclass
class Objects:
    """All shared objects, each with the name by which its model is found; a pair is two counters."""

    chains: list[tuple[str, Chain]]
    counters: list[tuple[str, Counter]]
    slots: list[tuple[str, Slot]]
    queues: list[tuple[str, Queue]]
    banks: list[tuple[str, Bank]]
    pairs: list[tuple[str, tuple[Counter, Counter]]]

    @classmethod
    def share(cls, group: orca.Group, each: int) -> Objects:
        """So many of each kind."""

        def named(cls: type[Any], kind: str, *args: object) -> list[tuple[str, Any]]:
            names = [f"{kind} {number}" for number in range(each)]
            names = [" ".join([name, *map(str, args)]) for name in names]
            return [(name, group.share(cls, name, *args)) for name in names]

        lefts, rights = named(Counter, "left"), named(Counter, "right")
        pairs = [
            (f"pair {number}", (left, right))
            for number, ((_, left), (_, right)) in enumerate(zip(lefts, rights, strict=True))
        ]
        return cls(
            named(Chain, "chain"),
            named(Counter, "counter"),
            named(Slot, "slot"),
            named(Queue, "queue"),
            named(Bank, "bank", ACCOUNTS, EACH),
            pairs,
        )


class Caller:
    """One thread or coroutine that calls."""

    def __init__(
        self, name: str, log: CallLog, objects: Objects, rng: random.Random, *, blocks: bool
    ) -> None:
        """`blocks`: it is a thread."""
        self.name, self.log, self.objects, self.rng, self.blocks = name, log, objects, rng, blocks
        self.number = 0
        self.kinds = [
            self.add,
            self.add_within,
            self.add_some,
            self.wait_for_own,
            self.hand_over,
            self.queue_up,
            self.move,
            self.draw,
            self.read,
            self.read,
        ]

    async def step(self) -> None:
        """One thing of those that there are, at random."""
        await self.rng.choice(self.kinds)()

    def unique(self) -> str:
        """What no other call has as its argument."""
        self.number += 1
        return f"{self.name}.{self.number}"

    # How to call, and what comes of it.

    async def call(
        self, what: tuple[str, str], operation: Any, *args: object, **named: object
    ) -> Any:
        """Call and wait. `what` is the name of the object and of the operation, as the model knows them."""
        number = self.log.begin(*what, *args, *named.values())
        if self.blocks:
            return self.log.end(number, lambda: operation(*args, **named))
        return await self.log.end_of(number, operation.aio(*args, **named))

    def begin(self, what: tuple[str, str], operation: Any, *args: object) -> tuple[int, Any]:
        """Call, and do not wait; returns what `outcome` takes."""
        number = self.log.begin(*what, *args)
        return number, operation.nowait(*args)

    async def outcome(self, under_way: tuple[int, Any]) -> Any:
        """What has come of it."""
        number, invocation = under_way
        if self.blocks:
            return self.log.end(number, invocation.result)
        return await self.log.end_of(number, invocation)

    # What is called.

    async def add(self) -> None:
        """A write whose result tells all writes before it."""
        name, chain = self.rng.choice(self.objects.chains)
        await self.call((name, "add"), chain.add, self.rng.randrange(LINKS))

    async def add_within(self) -> None:
        """A named argument, and a time limit that may pass."""
        name, counter = self.rng.choice(self.objects.counters)
        by, limit = self.rng.randrange(1, 10), self.rng.choice(LIMITS)
        if self.rng.randrange(4):
            await self.call((name, "add"), counter.add, by=by)
        else:
            await self.call((name, "add"), counter.add.options(timeout=limit), by)

    async def add_some(self) -> None:
        """Several that are under way at once, and a read in their midst."""
        under_way = []
        for _ in range(self.rng.randrange(2, BURST)):
            name, chain = self.rng.choice(self.objects.chains)
            link = self.rng.randrange(LINKS)
            under_way.append(self.begin((name, "add"), chain.add, link))
        await self.read()
        for each in under_way:
            await self.outcome(each)

    async def wait_for_own(self) -> None:
        """A read that waits for the caller's next write."""
        name, counter = self.rng.choice(self.objects.counters)
        value = await self.call((name, "get"), counter.get)
        waits = self.begin((name, "reached"), counter.reached, value + 1)
        await self.call((name, "add"), counter.add, 1)
        await self.outcome(waits)

    async def hand_over(self) -> None:
        """Give something, and take something: one of both may have to wait."""
        name, slot = self.rng.choice(self.objects.slots)
        gives = self.begin((name, "put"), slot.put, self.unique())
        await self.call((name, "take"), slot.take)
        await self.outcome(gives)

    async def queue_up(self) -> None:
        """Wait for an item, and put one."""
        name, queue = self.rng.choice(self.objects.queues)
        if self.rng.randrange(2):
            takes = self.begin((name, "take"), queue.take)
            await self.call((name, "put"), queue.put, self.unique())
            await self.outcome(takes)
        else:
            await self.call((name, "put"), queue.put, self.unique())
            await self.call((name, "take"), queue.take)

    async def move(self) -> None:
        """A write that raises if there is too little."""
        name, bank = self.rng.choice(self.objects.banks)
        source, target = self.rng.sample(range(ACCOUNTS), 2)
        amount = self.rng.randrange(1, EACH)
        await self.call((name, "move"), bank.move, source, target, amount=amount)

    async def draw(self) -> None:
        """A function of two objects at once."""
        name, (left, right) = self.rng.choice(self.objects.pairs)
        amount = self.rng.randrange(1, 10)
        draws = self.log.begin(name, "draw", amount)
        drawn = draw.nowait(left, right, amount)
        await self.call((name, "add left"), left.add, amount)
        await self.call((name, "add right"), right.add, by=1)
        await self.outcome((draws, drawn))

    async def read(self) -> None:
        """One read of each kind of object."""
        name, chain = self.rng.choice(self.objects.chains)
        await self.call((name, "get"), chain.get)
        name, counter = self.rng.choice(self.objects.counters)
        await self.call((name, "get"), counter.get)
        name, slot = self.rng.choice(self.objects.slots)
        await self.call((name, "get"), slot.get)
        name, queue = self.rng.choice(self.objects.queues)
        await self.call((name, "length"), queue.length)
        name, bank = self.rng.choice(self.objects.banks)
        await self.call((name, "total"), bank.total)
        name, (left, right) = self.rng.choice(self.objects.pairs)
        await self.call((name, "get left"), left.get)
        await self.call((name, "get right"), right.get)

    async def read_all(self) -> None:
        """All of all objects."""
        for name, chain in self.objects.chains:
            await self.call((name, "get"), chain.get)
        for name, counter in self.objects.counters:
            await self.call((name, "get"), counter.get)
        for name, slot in self.objects.slots:
            await self.call((name, "get"), slot.get)
        for name, queue in self.objects.queues:
            await self.call((name, "all"), queue.all)
        for name, bank in self.objects.banks:
            await self.call((name, "all"), bank.all)
        for name, (left, right) in self.objects.pairs:
            await self.call((name, "get left"), left.get)
            await self.call((name, "get right"), right.get)

    async def help_others(self) -> None:
        """Give those that wait for what a lost member had to do: an item, room for one, something to draw."""
        for name, queue in self.objects.queues:
            await self.call((name, "put"), queue.put, self.unique())
        for name, slot in self.objects.slots:
            if await self.call((name, "get"), slot.get):
                await self.call((name, "take"), slot.take.options(timeout=MOMENT))
            else:
                await self.call((name, "put"), slot.put.options(timeout=MOMENT), self.unique())
        for name, (left, _) in self.objects.pairs:
            await self.call((name, "add left"), left.add, EACH)
