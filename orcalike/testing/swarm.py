"""What a seed stands for: a group, its stack, and what happens to it (RELIABILITY 5c, 5d).

Each seed leaves features out as well as putting them in (Groce and others, "Swarm testing"), and
makes limits tiny: what only shows without joins, or with a window of four packets, shows sooner so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from orcalike.testing.history import ALL, MAJORITY
from orcalike.testing.scenario import MS, Event, Scenario
from orcalike.transport.drivers.sim import Delays

STEPS = (
    *("W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9", "W10", "W11", "W12"),
    *("V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "J1", "J2", "L1"),
)
"""The steps of RELIABILITY 3a at which faults are aimed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the families of faults need to know of a group that is being drawn."""

    dice: Random
    size: int
    hosts: tuple[int, ...]
    detection: int
    safety: int
    roles: bool
    """Faults are aimed at whoever has a role then (the adversary)."""

    @property
    def when(self) -> int:
        """Some time."""
        return self.dice.randrange(self.safety)

    @property
    def who(self) -> str:
        """Some process."""
        if self.roles and self.dice.random() < 0.8:
            return self.dice.choice(["sequencer", "sequencer", "next", "least", "youngest"])
        return str(self.dice.randrange(self.size))

    @property
    def one(self) -> str:
        """Some process, by number."""
        return str(self.dice.randrange(self.size))

    @property
    def span(self) -> int:
        """How long a fault lasts: much less than D, about D, or much more."""
        return int(self.detection * self.dice.choice([0.05, 0.3, 0.5, 0.9, 1.0, 1.1, 1.5, 3, 10]))

    @property
    def count(self) -> int:
        """How many faults of a family."""
        return self.dice.choice([1, 1, 1, 2, 2, 4])


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    dice = Random(f"{seed} swarm")
    size = draw_size(dice)
    detection = dice.choice([20, 50, 100, 500, 500, 5_000]) * MS
    safety = int(detection * dice.choice([3, 6, 12, 30]))
    delays = draw_delays(dice, detection)
    hosts = draw_hosts(dice, size)
    frame = Frame(dice, size, hosts, detection, safety, dice.random() < 0.3)
    faults = draw_faults(frame)
    packet = dice.choice([16, 64, 200, 1000])
    return Scenario(
        seed=seed,
        size=size,
        witness=size > 1 and dice.random() < 0.4,
        stack=draw_stack(dice, packet),
        hosts=hosts,
        delays=delays,
        beat_loss=dice.choice([0.0, 0.0, 0.05, 0.3]),
        detection=detection,
        slow=int(detection * dice.choice([5, 30, 120])),
        piece=dice.choice([1, 2, 8, 1000]),
        rejoins=dice.random() < 0.7,
        resets=dice.random() < 0.5,
        safety=safety,
        events=(*draw_joins(frame), *draw_casts(frame, packet, faults), *faults),
    )


def draw_size(dice: Random) -> int:
    """How many processes: few mostly."""
    if dice.random() < 0.05:
        return dice.randint(16, 32)
    return dice.choice([1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7, 8, 9])


def draw_delays(dice: Random, detection: int) -> Delays:
    """Delays that are short beside D, but for the rare one."""
    unit = detection // 200
    return Delays(
        least=max(1, int(unit * dice.choice([0.001, 0.05, 0.5]))),
        mean=max(1, int(unit * dice.choice([0.001, 0.1, 1]))),
        connect=max(1, int(unit * dice.choice([0.01, 1]))),
        heavy=int(detection * dice.choice([0, 0, 0.5, 3])),
        timeout=int(detection * dice.choice([0.1, 1])),
    )


def draw_hosts(dice: Random, size: int) -> tuple[int, ...]:
    """All on hosts of their own, all on one, or mixed."""
    kind = dice.choice(["own", "one", "mixed"])
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


def draw_joins(frame: Frame) -> Iterator[Event]:
    """All but the first join: mostly before the first fault."""
    late = frame.dice.choice([0.0, 0.0, 0.3, 1.0])
    together = frame.dice.random() < 0.3
    early = frame.dice.randrange(frame.detection // 4)
    for number in range(1, frame.size):
        when = early if together else frame.dice.randrange(frame.detection // 4)
        yield Event("join", frame.when if frame.dice.random() < late else when, str(number))


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


def draw_faults(frame: Frame) -> list[Event]:
    """Each family of faults with a probability of a half, in the order of their times."""
    events: list[Event] = []
    for family in FAMILIES:
        if frame.size > 1 and frame.dice.random() < (0.5 if family is not marked else 0.3):
            events += family(frame)
    return sorted(events, key=lambda event: event.at)


def crashes(frame: Frame) -> Iterator[Event]:
    """Processes are killed, now and then together, and some are started again."""
    dice = frame.dice
    most = max(1, (frame.size - 1) // 2) if dice.random() < 0.7 else frame.size
    when, together = frame.when, dice.random() < 0.3
    for _ in range(dice.randint(1, most)):
        when = when if together else frame.when
        who = frame.who
        keep = dice.choice([-1, -1, 0, 1, 2])
        yield Event("crash", when, who, keep=keep, way=dice.choice(["", "", "", "machine"]))
        if who.isdigit() and dice.random() < 0.4:
            yield Event("restart", when + frame.span, who)


def marked(frame: Frame) -> Iterator[Event]:
    """Something goes wrong just when a step of the protocol is passed."""
    dice = frame.dice
    for _ in range(frame.count):
        kind = dice.choice(["crash", "crash", "pause", "isolate"])
        yield Event(
            kind,
            frame.when if dice.random() < 0.5 else 0,
            frame.who if dice.random() < 0.5 else "",
            span=0 if kind == "crash" else frame.span,
            keep=dice.randrange(4) if kind == "crash" else -1,
            mark=dice.choice(STEPS),
            nth=dice.choice([1, 1, 2, 3, 10]),
        )


def pauses(frame: Frame) -> Iterator[Event]:
    """Processes stop for a while."""
    for _ in range(frame.count):
        yield Event("pause", frame.when, frame.who, span=frame.span)


def hangs(frame: Frame) -> Iterator[Event]:
    """Programs do not answer, and their processes beat."""
    for _ in range(frame.count):
        yield Event("hang", frame.when, frame.who, span=frame.span)


def slowness(frame: Frame) -> Iterator[Event]:
    """Processes take long for each input, or do not apply what they get."""
    for _ in range(frame.count):
        cost = frame.detection // frame.dice.choice([20, 200, 2000])
        yield Event("slow", frame.when, frame.who, span=frame.span, count=cost)
        yield Event("hold", frame.when, frame.who, span=frame.span)


def partitions(frame: Frame) -> Iterator[Event]:
    """The processes are cut into two sides; both ways, or one."""
    dice = frame.dice
    for _ in range(frame.count):
        names = [str(number) for number in range(frame.size)]
        dice.shuffle(names)
        middle = dice.randint(1, max(1, frame.size - 1))
        one, other = names[:middle], names[middle:]
        when, span, asymmetric = frame.when, frame.span, dice.random() < 0.3
        for here in one:
            for there in other:
                yield Event("cut", when, here, there, span)
                if not asymmetric:
                    yield Event("cut", when, there, here, span)


def isolations(frame: Frame) -> Iterator[Event]:
    """One process hears nobody, is heard by nobody, or both."""
    for _ in range(frame.count):
        way = frame.dice.choice(["in", "out", "", ""])
        yield Event("isolate", frame.when, frame.who, span=frame.span, way=way)


def bridges(frame: Frame) -> Iterator[Event]:
    """Some pairs cannot reach each other, though all others can."""
    for _ in range(frame.count * 2):
        one, other = frame.one, frame.one
        if one != other:
            when, span = frame.when, frame.span
            yield Event("cut", when, one, other, span)
            if frame.dice.random() < 0.6:
                yield Event("cut", when, other, one, span)


def broken(frame: Frame) -> Iterator[Event]:
    """Links break, at both ends or at one."""
    for _ in range(frame.count):
        one, other = frame.who, frame.one
        if one != other:
            yield Event(frame.dice.choice(["break", "half"]), frame.when, one, other)


def swizzle(frame: Frame) -> Iterator[Event]:
    """Some are clogged one after the other, and come free in another order."""
    dice = frame.dice
    start = frame.when
    for _ in range(frame.count * 2):
        one, other = frame.one, frame.one
        if one != other:
            yield Event("clog", start + dice.randrange(frame.detection), one, other, frame.span)


def lags(frame: Frame) -> Iterator[Event]:
    """PCT: each path has a priority, which changes at a few points; the last is much slower."""
    dice = frame.dice
    unit = max(1, frame.detection // dice.choice([20, 100, 1000]) // frame.size)
    pairs = [
        (str(one), str(other))
        for one in range(frame.size)
        for other in range(frame.size)
        if one != other
    ]
    for one, other in pairs:
        yield Event("lag", 0, one, other, unit * dice.randrange(frame.size))
    for _ in range(dice.choice([2, 3, 5])):
        one, other = dice.choice(pairs)
        yield Event("lag", frame.when, one, other, unit * 2 * frame.size)


def leaves(frame: Frame) -> Iterator[Event]:
    """Members leave; some come back."""
    for _ in range(frame.count):
        when, who = frame.when, frame.who
        yield Event("leave", when, who)
        if who.isdigit() and frame.dice.random() < 0.5:
            yield Event("restart", when + frame.span, who)


FAMILIES = (
    crashes,
    marked,
    pauses,
    hangs,
    slowness,
    partitions,
    isolations,
    bridges,
    broken,
    swizzle,
    lags,
    leaves,
)
"""The families of faults: what a shrinker takes out first."""
