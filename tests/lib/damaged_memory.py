"""Groups whose order in shared memory is damaged while they run: one word, at any time.

`python -m tests.lib.damaged_memory SEED ...` runs some.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Sized
from dataclasses import replace
from random import Random
from typing import Any

from orcalike.simulator.application import Application
from orcalike.simulator.scenario import MS, Scenario
from orcalike.simulator.simulation import Run
from orcalike.transport.drivers.descriptors import ORDER
from orcalike.transport.drivers.sim import Delays
from orcalike.transport.errors import DamagedMemory
from tests.lib.command_lines import ask_seeds
from tests.lib.ring_scenarios import draw_over_ring

WORDS = {"applied": 0, "state": 64, "holder": 72, "begun": 80, "alone": 88, "left_out": 96,
         "interest": 104}  # fmt: skip
"""Where each word of a row is."""
ROW, ROWS, MARKS = 128, 64, 1024
DETECTION = 1000 * MS


def place_of(memory: Sized, slots: int, number: int, word: str) -> tuple[int, int]:
    """Where a word of a row is in the order, or a slot, and how many bytes it has."""
    first = len(memory) - 8 * slots
    if word == "slot":
        return first + 8 * number, 8
    return first - 8 * MARKS - ROW * (ROWS - number) + WORDS[word], 4 if word == "state" else 8


def changed(rng: Random) -> Callable[[int], int]:
    """Another bit, any value, or one nearby."""
    return rng.choice(
        (
            lambda found: found ^ 1 << rng.randrange(64),
            lambda found: rng.getrandbits(64),
            lambda found: found + rng.randrange(-64, 64) & (1 << 64) - 1,
            lambda found: rng.randrange(4096),
        )
    )


def sound(seed: int) -> Scenario:
    """What a seed stands for, without its faults: members come, cast and leave, and none that runs may be put out."""
    drawn = draw_over_ring(seed)
    return replace(
        drawn,
        size=max(drawn.size, 3),
        hosts=(0,) * max(drawn.size, 3),
        events=tuple(each for each in drawn.events if each.do in ("join", "cast", "leave")),
        delays=Delays(),
        beat_loss=0.0,
        detection=DETECTION,
        slow=60 * DETECTION,
        safety=min(drawn.safety, 20 * DETECTION),
        witness=False,
        keeps=False,
        rejoins=False,
        settled=1,
    )


class DamagedRun(Run):
    """A run in which a word is overwritten; a member that finds that ends, as its program does by such an error."""

    def __init__(self, seed: int, words: tuple[str, ...] = (*WORDS, "slot")) -> None:
        self.errors: list[str] = []
        """By which members have ended."""
        self.damaged = ""
        """What was overwritten."""
        rng = self.changes = Random(f"{seed} damage")
        self.word = rng.choice(words)
        super().__init__(sound(seed))
        self.world.at(rng.randrange(self.scenario.safety), self.damage)

    def start(self, name: str) -> Application:
        application = super().start(name)
        node: Any = application.node
        give = node.give

        def guarded(input_: Callable[..., None], *args: Any) -> None:
            try:
                give(input_, *args)
            except DamagedMemory as error:
                self.errors.append(str(error))
                self.world.stop(node)

        node.give = guarded
        return application

    def damage(self) -> None:
        """Overwrite the word, by a member of two or more that are attached; later if there are fewer."""
        rng = self.changes
        attached = [
            each.order_in_memory
            for each in self.current.values()
            if each.node.alive and each.order_in_memory.dump()["attached"]
        ]
        if len(attached) < 2:
            self.world.at(self.world.now + DETECTION // 10, self.damage)
            return
        layer = rng.choice(attached)
        status = layer.dump()
        order = self.world.descriptors.open(layer.me.incarnation, (ORDER, 0), os.O_RDWR)
        with mmap.mmap(order, 0) as memory:
            os.close(order)
            if self.word == "slot":
                number = (status["slot"] + rng.randrange(-3, 6)) % status["slots"]
            else:
                number = rng.choice((status["row"], rng.randrange(len(attached) + 1)))
            at, size = place_of(memory, status["slots"], number, self.word)
            found = int.from_bytes(memory[at : at + size], "little")
            value = changed(rng)(found) & (1 << 8 * size) - 1
            memory[at : at + size] = value.to_bytes(size, "little")
        self.damaged = (
            f"{self.word} {number}, {found:#x} -> {value:#x}, at {self.world.now / MS:.3f} ms"
        )


if __name__ == "__main__":
    for seed in ask_seeds("tests.lib.damaged_memory", __doc__):
        run = DamagedRun(seed)
        try:
            steps = run.run().steps
        finally:
            print(f"seed {seed}: {run.damaged}: {run.errors}")
