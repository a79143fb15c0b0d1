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
    rng = Random(f"{seed} swarm")
    size = draw_size(rng)
    detection = rng.choice([20, 50, 100, 500, 500, 5_000]) * MS
    safety = between(rng, 3 * detection, 40 * detection)
    slow = between(rng, detection, 120 * detection)
    joins = draw_joins(rng, size, detection, safety)
    frame = Frame(
        rng,
        size,
        detection,
        slow,
        safety,
        roles=rng.random() < 0.5,
        joins=joins,
        instants=tuple(rng.randrange(safety) for _ in range(rng.choice([1, 1, 2, 4]))),
    )
    faults = draw_faults(frame)
    packet = rng.choice([16, 64, 200, 1000])
    return Scenario(
        seed=seed,
        size=size,
        witness=size > 1 and rng.random() < 0.4,
        keeps=Random(f"{seed} keeps").random() < 0.5,
        stack=draw_stack(rng, packet),
        hosts=draw_hosts(rng, size),
        delays=draw_delays(rng, detection),
        beat_loss=rng.choice([0.0, 0.0, 0.05, 0.3]),
        detection=detection,
        slow=slow,
        piece=rng.choice([1, 2, 8, 1000]),
        rejoins=rng.random() < 0.7,
        resets=rng.random() < 0.5,
        safety=safety,
        events=(
            *(Event("join", when, str(number)) for number, when in joins.items()),
            *draw_casts(frame, packet, faults),
            *faults,
        ),
    )


def draw_size(rng: Random) -> int:
    """How many processes: few mostly."""
    if rng.random() < 0.03:
        return rng.randint(10, 32)
    return rng.choice([1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7, 8, 9])


def draw_delays(rng: Random, detection: int) -> Delays:
    """Delays from nothing up to a good part of D; now and then one of several D."""
    return Delays(
        least=between(rng, 1, detection / 16),
        mean=between(rng, 1, detection / 16),
        connect=between(rng, 1, detection / 4),
        heavy=between(rng, detection / 4, 8 * detection) if rng.random() < 0.5 else 0,
        timeout=between(rng, detection / 10, 25 * detection),
    )


def draw_hosts(rng: Random, size: int) -> tuple[int, ...]:
    """All on hosts of their own, all on one, or on two or three."""
    hosts = rng.choice([0, 1, 1, 2, 3])
    return tuple(rng.randrange(hosts) for _ in range(size)) if hosts else ()


def draw_stack(rng: Random, packet: int) -> str:
    """A stack with small windows, now and then without PACK, and with a layer that delays."""
    total = rng.choice(["TOTAL", "TOTAL(packets=4)", "TOTAL(packets=8)", "TOTAL(bytes=300)"])
    pack = rng.choice([f"PACK(size={packet}):", f"PACK(size={packet}):", ""])
    delay = rng.choice([f"DROP(delay={rng.randint(1, 50)}):", "", "", ""])
    # Not below MBRSHIP: what COM gives up with a link must not come after the word of that.
    return f"{pack}XFER:{total}:{delay}MBRSHIP:COM:sim"


def draw_joins(rng: Random, size: int, detection: int, safety: int) -> dict[int, int]:
    """When all but the first join: mostly before the first fault."""
    late = rng.choice([0.0, 0.0, 0.3, 0.3, 1.0])
    together = rng.random() < 0.3
    early = rng.randrange(detection // 4)
    joins = {}
    for number in range(1, size):
        when = early if together else rng.randrange(detection // 4)
        joins[number] = rng.randrange(safety) if rng.random() < late else when
    return joins


def draw_casts(frame: Frame, packet: int, faults: list[Event]) -> Iterator[Event]:
    """Casts of some degrees, at any time, and many about the times of faults."""
    rng = frame.rng
    degrees = draw_degrees(rng, frame.size)
    sizes = rng.choice([(8,), (0, 12, 3 * packet), (12, packet, 2 * packet)])
    times = [fault.at for fault in faults if not fault.mark] or [0]
    spread = rng.choice([frame.detection // 1000, frame.detection // 50, frame.detection])
    for _ in range(rng.choice([3, 10, 30, 60, 120])):
        near = max(0, rng.choice(times) + int(rng.gauss(0, spread)))
        when = near if rng.random() < 0.5 else frame.when
        yield Event(
            "cast",
            min(when, frame.safety - 1),
            frame.one,
            count=rng.choice([1, 1, 1, 2, 10]),
            size=rng.choice(sizes),
            degree=rng.choice(degrees),
        )


def draw_degrees(rng: Random, size: int) -> tuple[int, ...]:
    """The degrees that casts have: none, one, some, most, all, or mixed."""
    some = rng.randint(1, max(1, size - 1))
    return rng.choice(
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
