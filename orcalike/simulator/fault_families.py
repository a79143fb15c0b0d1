"""The families of faults that a swarm draws from.

Each family is on in half of the seeds, and comes in one to three rounds. Times and rates are drawn
log-uniform over several orders of magnitude about the detection time D, since what breaks a
protocol is mostly near one of its limits: a pause near D, a break of less than D/2, a death within
D of something else. Faults gather about a few instants, so that several meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from orcalike.session.failpoints import STEPS
from orcalike.simulator.scenario import Event

DECISIONS = ("V5", "V6", "V7", "V8", "V9")
"""The steps between a proposal and the view that it makes."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the families of faults need to know of a group that is being drawn."""

    rng: Random
    size: int
    detection: int
    slow: int
    """`slow_timeout`, ns."""
    safety: int
    roles: bool
    """Faults are aimed at members with a role at that time (the adversary)."""
    joins: dict[int, int]
    """When each process joins."""
    instants: tuple[int, ...]
    """Faults gather there."""

    @property
    def when(self) -> int:
        """Some time, mostly soon after one of the instants."""
        if self.rng.random() < 0.6:
            return min(self.rng.choice(self.instants) + self.span(0.01, 2), self.safety - 1)
        return self.rng.randrange(self.safety)

    @property
    def process(self) -> str:
        """Some process."""
        if self.roles and self.rng.random() < 0.8:
            return self.rng.choice(["sequencer", "sequencer", "next", "least", "youngest"])
        return str(self.rng.randrange(self.size))

    @property
    def one(self) -> str:
        """Some process, by number."""
        return str(self.rng.randrange(self.size))

    @property
    def pair(self) -> tuple[str, str]:
        """Two processes, the first by number or by role."""
        one, other = self.process, self.one
        return one, other if other != one else str((int(other) + 1) % self.size)

    def span(self, least: float = 0.05, most: float = 10) -> int:
        """How long something lasts, log-uniform, in units of D."""
        return between(self.rng, least * self.detection, most * self.detection)

    @property
    def count(self) -> int:
        """How many faults of a family in a round."""
        return self.rng.choice([1, 1, 1, 2, 2, 4])

    @property
    def rounds(self) -> int:
        """How often a family comes."""
        return self.rng.choice([1, 1, 2, 3])


def between(rng: Random, least: float, most: float) -> int:
    """A log-uniform number."""
    return max(1, int(least * (most / least) ** rng.random()))


def draw_faults(frame: Frame) -> list[Event]:
    """Each family with a probability of a half, or just a few of them; in the order of their times."""
    rng = frame.rng
    if frame.size == 1:
        return []
    few = rng.choice([0, 0, 1, 2, 3])
    families = rng.sample(FAMILIES, few) if few else [f for f in FAMILIES if rng.random() < 0.5]
    events = [event for family in families for _ in range(frame.rounds) for event in family(frame)]
    return sorted(events, key=lambda event: event.at)


# Processes that end.


def crashes(frame: Frame) -> Iterator[Event]:
    """Processes are killed, now and then together, and some are started again."""
    rng = frame.rng
    most = max(1, (frame.size - 1) // 2) if rng.random() < 0.8 else frame.size
    when, together = frame.when, rng.random() < 0.3
    for _ in range(rng.randint(1, most)):
        when = when if together else frame.when
        process = frame.process
        yield crash(frame, when, process, keep=rng.choice([-1, -1, 0, 1, 2]))
        yield from restart(frame, when, process)


def crash(frame: Frame, when: int, process: str, keep: int = -1) -> Event:
    """A process is killed; those of its host see it at once, after what it sent, or not at all.

    Or a launcher tells them, and those of other hosts too, which only suspect it for that.
    """
    way = frame.rng.choice(["", "", "soon", "word", "machine"])
    return Event("crash", when, process, keep=keep, way=way)


def restart(frame: Frame, when: int, process: str) -> Iterator[Event]:
    """Mostly a process that is dead or out then is started again: that one, or another."""
    if frame.rng.random() < 0.7:
        again = process if process.isdigit() else frame.one
        yield Event("restart", when + frame.span(0.01, 10), again)


def bounces(frame: Frame) -> Iterator[Event]:
    """One process is killed and started again within D, a few times."""
    when, process = frame.when, frame.one
    for _ in range(frame.rng.choice([1, 2, 3])):
        yield crash(frame, when, process)
        when += frame.span(0.01, 1)
        yield Event("restart", when, process)
        when += frame.span(0.05, 3)


def marked(frame: Frame) -> Iterator[Event]:
    """Something goes wrong just when a step of the protocol is passed."""
    rng = frame.rng
    for _ in range(frame.count):
        kind = rng.choice(["crash", "crash", "pause", "isolate"])
        yield Event(
            kind,
            frame.when if rng.random() < 0.5 else 0,
            frame.process if rng.random() < 0.5 else "",
            span=0 if kind == "crash" else frame.span(),
            keep=rng.randrange(4) if kind == "crash" else -1,
            mark=rng.choice(tuple(STEPS)),
            nth=rng.choice([1, 1, 2, 3, 10]),
        )


def half_sent(frame: Frame) -> Iterator[Event]:
    """A member dies when a view is proposed, accepted or decided, when some of its messages have left."""
    rng = frame.rng
    yield Event(
        "crash",
        frame.when if rng.random() < 0.7 else 0,
        rng.choice(["", "sequencer", "next", "C"]),
        keep=rng.randint(0, frame.size),
        way=rng.choice(["", "soon", "word", "machine"]),
        mark=rng.choice(DECISIONS),
        nth=rng.choice([1, 1, 2, 3]),
    )
    for _ in range(2):
        yield from restart(frame, frame.when, frame.one)


def last_words(frame: Frame) -> Iterator[Event]:
    """Two lose each other for less than D/2, by a link or the way, and then one of them dies."""
    rng = frame.rng
    one, other = frame.pair
    when = frame.when
    if rng.random() < 0.5:
        span = frame.span(0.01, 0.5)
        yield Event("cut", when, one, other, span)
        yield Event("cut", when, other, one, span)
    yield Event(rng.choice(["break", "half"]), when, one, other)
    for process in rng.choice([(one,), (other,), (one, other)]):
        when += frame.span(0.001, 2)
        yield crash(frame, when, process, keep=rng.choice([-1, 0, 1]))
        yield from restart(frame, when, process)


def third_parties(frame: Frame) -> Iterator[Event]:
    """A launcher says that a process is gone, when it is, or when only its own line to it broke.

    Mostly one end of a link breaks too, or the ways to it are cut, and others go on without it.
    """
    rng = frame.rng
    one, other = frame.pair
    when = frame.when
    if rng.random() < 0.7:
        yield Event("half", when, *rng.choice([(one, other), (other, one)]))
    if rng.random() < 0.5:
        yield Event(
            "isolate", when, one, span=frame.span(0.1, 3), way=rng.choice(["in", "out", ""])
        )
    when += frame.span(0.001, 2)
    if rng.random() < 0.8:
        yield Event("gone", when, one)
        when += frame.span(0.001, 2)
    if rng.random() < 0.6:
        yield Event("crash", when, one, way="word")
        yield from restart(frame, when, one)


def expelled(frame: Frame) -> Iterator[Event]:
    """A member does not answer for `slow_timeout`, and those that went on without it die."""
    rng = frame.rng
    one, other = frame.pair
    when = frame.when
    until = when + int(frame.slow * rng.uniform(0.8, 2))
    yield Event("hang", when, one, span=until - when + frame.span(0.01, 3))
    yield Event("break", when + frame.span(0.001, 0.5), one, other)
    for process in rng.choice([(other,), (one,), (other, frame.process)]):
        when = until + frame.span(0.001, 2)
        yield crash(frame, when, process, keep=rng.choice([-1, 0, 1]))
        yield from restart(frame, when, process)


def leaves(frame: Frame) -> Iterator[Event]:
    """Members leave; some come back."""
    for _ in range(frame.count):
        when, process = frame.when, frame.process
        yield Event("leave", when, process)
        yield from restart(frame, when, process)


def resets(frame: Frame) -> Iterator[Event]:
    """The program says to go on with so many members, at any time."""
    for _ in range(frame.count):
        yield Event("reset", frame.when, frame.one, count=frame.rng.randint(1, frame.size))


# Processes that do not run, or not well.


def pauses(frame: Frame) -> Iterator[Event]:
    """Processes stop for a while."""
    for _ in range(frame.count):
        yield Event("pause", frame.when, frame.process, span=frame.span())


def hangs(frame: Frame) -> Iterator[Event]:
    """Programs do not answer, and their processes beat."""
    for _ in range(frame.count):
        yield Event("hang", frame.when, frame.process, span=frame.span())


def slowness(frame: Frame) -> Iterator[Event]:
    """Processes take long for each input, or do not apply what they get."""
    for _ in range(frame.count):
        cost = frame.span(0.0005, 0.05)
        yield Event("slow", frame.when, frame.process, span=frame.span(), count=cost)
        yield Event("hold", frame.when, frame.process, span=frame.span())


def starves(frame: Frame) -> Iterator[Event]:
    """Processes live and get no processor: beats come late, and inputs take ten times as long."""
    for _ in range(frame.count):
        cost = frame.span(0.0005, 0.05)
        yield Event("starve", frame.when, frame.process, span=frame.span(0.1, 5), count=cost)


# Ways and links that fail.


def partitions(frame: Frame) -> Iterator[Event]:
    """The processes are cut into two sides; both ways, or one."""
    rng = frame.rng
    for _ in range(frame.count):
        names = [str(number) for number in range(frame.size)]
        rng.shuffle(names)
        middle = rng.randint(1, max(1, frame.size - 1))
        one, other = names[:middle], names[middle:]
        when, span, asymmetric = frame.when, frame.span(), rng.random() < 0.3
        for here in one:
            for there in other:
                yield Event("cut", when, here, there, span)
                if not asymmetric:
                    yield Event("cut", when, there, here, span)


def isolations(frame: Frame) -> Iterator[Event]:
    """One process receives from no other, is received by no other, or both."""
    for _ in range(frame.count):
        way = frame.rng.choice(["in", "out", "", ""])
        yield Event("isolate", frame.when, frame.process, span=frame.span(), way=way)


def flaps(frame: Frame) -> Iterator[Event]:
    """One process is cut off and comes back, again and again."""
    rng = frame.rng
    when, process, way = frame.when, frame.one, rng.choice(["in", "out", "", ""])
    for _ in range(rng.choice([2, 3, 5, 8])):
        span = frame.span(0.05, 2)
        yield Event("isolate", when, process, span=span, way=way)
        when += span + frame.span(0.05, 2)


def bridges(frame: Frame) -> Iterator[Event]:
    """Some pairs cannot reach each other, though all others can."""
    for _ in range(frame.count * 2):
        one, other = frame.one, frame.one
        if one != other:
            when, span = frame.when, frame.span()
            yield Event("cut", when, one, other, span)
            if frame.rng.random() < 0.6:
                yield Event("cut", when, other, one, span)


def broken(frame: Frame) -> Iterator[Event]:
    """Links break, at both ends or at one."""
    for _ in range(frame.count):
        one, other = frame.pair
        yield Event(frame.rng.choice(["break", "half"]), frame.when, one, other)


def swizzle(frame: Frame) -> Iterator[Event]:
    """Some are clogged one after the other, and come free in another order."""
    start = frame.when
    for _ in range(frame.count * 2):
        one, other = frame.one, frame.one
        if one != other:
            yield Event("clog", start + frame.span(0.01, 1), one, other, frame.span())


def lags(frame: Frame) -> Iterator[Event]:
    """PCT: each path has a priority, which changes at a few points; the last is much slower."""
    rng = frame.rng
    unit = max(1, frame.span(0.001, 0.5) // frame.size)
    pairs = [
        (str(one), str(other))
        for one in range(frame.size)
        for other in range(frame.size)
        if one != other
    ]
    for one, other in pairs:
        yield Event("lag", 0, one, other, unit * rng.randrange(frame.size))
    for _ in range(rng.choice([2, 3, 5])):
        one, other = rng.choice(pairs)
        yield Event("lag", frame.when, one, other, unit * 2 * frame.size)


def jams(frame: Frame) -> Iterator[Event]:
    """All that goes to a process and comes from it takes long, up to about D."""
    for _ in range(frame.count):
        way, mean = frame.rng.choice(["in", "out", ""]), frame.span(0.01, 1)
        yield Event("jam", frame.when, frame.process, span=frame.span(0.1, 10), count=mean, way=way)


def stale_joins(frame: Frame) -> Iterator[Event]:
    """Just when a process joins, it stands still, or what is sent to it comes late or not at all."""
    rng = frame.rng
    name = rng.randrange(1, frame.size)
    joiner, role = str(name), rng.choice(["sequencer", "next", "youngest"])
    start = frame.joins[name]
    if rng.random() < 0.5:
        start = frame.when
        yield crash(frame, start, joiner)
        start += frame.span(0.05, 3)
        yield Event("restart", start, joiner)
    when = start + frame.span(0.001, 1)
    troubles = [
        Event("clog", 0, role, joiner, frame.span(0.1, 20)),
        Event("half", 0, role, joiner),
        Event("half", 0, joiner, role),
        Event("pause", 0, joiner, span=frame.span(0.1, 20)),
        Event("isolate", 0, joiner, span=frame.span(0.1, 20)),
        Event("jam", 0, joiner, span=frame.span(0.1, 10), count=frame.span(0.01, 1)),
        crash(frame, 0, role, keep=rng.choice([-1, 0, 1])),
    ]
    for trouble in rng.sample(troubles, 2):
        yield replace(trouble, at=when)
        when += frame.span(0.001, 1)


Family = Callable[[Frame], Iterator[Event]]
"""Draws the events of one round."""

FAMILIES: tuple[Family, ...] = (
    crashes,
    bounces,
    marked,
    half_sent,
    last_words,
    third_parties,
    expelled,
    leaves,
    resets,
    pauses,
    hangs,
    slowness,
    starves,
    partitions,
    isolations,
    flaps,
    bridges,
    broken,
    swizzle,
    lags,
    jams,
    stale_joins,
)
"""All of them: a seed leaves out about half."""
