"""What a seed stands for: a group, its stack, and what happens to it.

Each seed leaves features out as well as putting them in (Groce and others, "Swarm testing"), and
makes limits tiny: what only shows without joins, or with a window of four packets, shows sooner so.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from orcalike.simulator.checkers.facts import ALL, MAJORITY
from orcalike.simulator.fault_families import Frame, between, draw_faults
from orcalike.simulator.scenario import MS, Event, Scenario
from orcalike.transport.drivers.sim import Delays


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    dice = Random(f"{seed} swarm")
    size = draw_size(dice)
    detection = dice.choice([20, 50, 100, 500, 500, 5_000]) * MS
    safety = between(dice, 3 * detection, 40 * detection)
    slow = between(dice, detection, 120 * detection)
    joins = draw_joins(dice, size, detection, safety)
    frame = Frame(
        dice,
        size,
        detection,
        slow,
        safety,
        roles=dice.random() < 0.5,
        joins=joins,
        instants=tuple(dice.randrange(safety) for _ in range(dice.choice([1, 1, 2, 4]))),
    )
    faults = draw_faults(frame)
    packet = dice.choice([16, 64, 200, 1000])
    return Scenario(
        seed=seed,
        size=size,
        witness=size > 1 and dice.random() < 0.4,
        stack=draw_stack(dice, packet),
        hosts=draw_hosts(dice, size),
        delays=draw_delays(dice, detection),
        beat_loss=dice.choice([0.0, 0.0, 0.05, 0.3]),
        detection=detection,
        slow=slow,
        piece=dice.choice([1, 2, 8, 1000]),
        rejoins=dice.random() < 0.7,
        resets=dice.random() < 0.5,
        safety=safety,
        events=(
            *(Event("join", when, str(number)) for number, when in joins.items()),
            *draw_casts(frame, packet, faults),
            *faults,
        ),
    )


def draw_size(dice: Random) -> int:
    """How many processes: few mostly."""
    if dice.random() < 0.03:
        return dice.randint(10, 32)
    return dice.choice([1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7, 8, 9])


def draw_delays(dice: Random, detection: int) -> Delays:
    """Delays from nothing up to a good part of D; now and then one of several D."""
    return Delays(
        least=between(dice, 1, detection / 16),
        mean=between(dice, 1, detection / 16),
        connect=between(dice, 1, detection / 4),
        heavy=between(dice, detection / 4, 8 * detection) if dice.random() < 0.5 else 0,
        timeout=between(dice, detection / 10, 25 * detection),
    )


def draw_hosts(dice: Random, size: int) -> tuple[int, ...]:
    """All on hosts of their own, all on one, or mixed."""
    kind = dice.choice(["own", "one", "one", "mixed"])
    if kind == "own":
        return ()
    return tuple(0 if kind == "one" else dice.randrange(3) for _ in range(size))


def draw_stack(dice: Random, packet: int) -> str:
    """A stack with small windows, now and then without PACK, and with a layer that delays."""
    total = dice.choice(["TOTAL", "TOTAL(packets=4)", "TOTAL(packets=8)", "TOTAL(bytes=300)"])
    pack = dice.choice([f"PACK(size={packet}):", f"PACK(size={packet}):", ""])
    delay = dice.choice([f"DROP(delay={dice.randint(1, 50)}):", "", "", ""])
    # Not below MBRSHIP: what COM gives up with a link must not come after the word of that.
    return f"{pack}XFER:{total}:{delay}MBRSHIP:COM:sim"


def draw_joins(dice: Random, size: int, detection: int, safety: int) -> dict[int, int]:
    """When all but the first join: mostly before the first fault."""
    late = dice.choice([0.0, 0.0, 0.3, 0.3, 1.0])
    together = dice.random() < 0.3
    early = dice.randrange(detection // 4)
    joins = {}
    for number in range(1, size):
        when = early if together else dice.randrange(detection // 4)
        joins[number] = dice.randrange(safety) if dice.random() < late else when
    return joins


def draw_casts(frame: Frame, packet: int, faults: list[Event]) -> Iterator[Event]:
    """Casts of some degrees, at any time, and many about the times of faults."""
    dice = frame.dice
    degrees = draw_degrees(dice, frame.size)
    sizes = dice.choice([(8,), (0, 12, 3 * packet), (12, packet, 2 * packet)])
    times = [fault.at for fault in faults if not fault.mark] or [0]
    spread = dice.choice([frame.detection // 1000, frame.detection // 50, frame.detection])
    for _ in range(dice.choice([3, 10, 30, 60, 120])):
        near = max(0, dice.choice(times) + int(dice.gauss(0, spread)))
        when = near if dice.random() < 0.5 else frame.when
        yield Event(
            "cast",
            min(when, frame.safety - 1),
            frame.one,
            count=dice.choice([1, 1, 1, 2, 10]),
            size=dice.choice(sizes),
            degree=dice.choice(degrees),
        )


def draw_degrees(dice: Random, size: int) -> tuple[int, ...]:
    """The degrees that casts have: none, one, some, most, all, or mixed."""
    some = dice.randint(1, max(1, size - 1))
    return dice.choice(
        [
            (0,),
            (0,),
            (1,),
            (1,),
            (some,),
            (0, 1),
            (0, some),
            (1, some),
            (MAJORITY,),
            (0, MAJORITY),
            (ALL,),
        ]
    )
