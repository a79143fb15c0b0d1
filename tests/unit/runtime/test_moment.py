"""The group's clock and its random numbers (`orcalike.now`, `orcalike.random`)."""

from __future__ import annotations

import time

import pytest

import orcalike as orca
from tests.lib.shared_classes import Journal

DEADLINE = 60.0


@orca.shared
class Leases:
    """Names that are held for a time."""

    def __init__(self) -> None:
        self.until: dict[str, float] = {}
        self.written = 0.0

    @orca.write
    def take(self, name: str, seconds: float) -> float:
        self.written = orca.now()
        self.until[name] = self.written + seconds
        return self.written

    @orca.read
    def held(self, name: str) -> bool:
        return self.until.get(name, 0.0) > orca.now()

    @orca.read
    def held_since(self, moment: float) -> float:
        return orca.now()

    @held_since.when
    def _(self, moment: float) -> bool:
        return self.written >= moment

    @orca.read
    def clock(self) -> float:
        return orca.now()

    @orca.read
    def rng(self) -> float:
        return orca.random().random()

    @orca.write
    def roll(self) -> float:
        return orca.random().random()

    @orca.write
    def roll_when(self, least: int) -> float:
        return orca.random().random()

    @roll_when.when
    def _(self, least: int) -> bool:
        return orca.random().random() >= 0 and len(self.until) >= least


def until_passed(moment: float) -> None:
    """Wait until the wall clock is past a moment."""
    end = time.monotonic() + DEADLINE
    while time.time() <= moment:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_read_sees_the_time_pass_though_nothing_is_written(group: orca.Group) -> None:
    """A lease that is over is over for each read, not with the next write only."""
    leases = group.share(Leases, "leases")
    written = leases.take("a", 0.05)
    assert leases.held("b") is False
    until_passed(written + 0.1)
    assert leases.held("a") is False
    assert leases.held.nowait("a").result() is False


def test_a_read_is_never_before_a_write_that_it_shows(group: orca.Group) -> None:
    leases = group.share(Leases, "leases")
    last = 0.0
    for _ in range(200):
        written = leases.take("a", 1.0)
        seen = leases.clock()
        assert last <= written <= seen
        assert leases.clock() >= seen
        last = seen


def test_a_read_that_waits_for_its_guard_has_the_clock(group: orca.Group) -> None:
    leases = group.share(Leases, "leases")
    waiting = leases.held_since.nowait(1.0)
    written = leases.take("a", 1.0)
    assert waiting.result(DEADLINE) >= written
    assert leases.held_since(1.0) >= written


def rolls(group: orca.Group) -> tuple[object, ...]:
    journal = group.share(Journal, "journal")
    leases = group.share(Leases, "leases")
    rolled = [journal.roll()[1:] for _ in range(3)]
    return (*rolled, leases.roll(), leases.rng(), leases.rng())


def test_each_group_has_random_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORCALIKE_SEED", raising=False)
    runs = set()
    for _ in range(3):
        with orca.join() as group:
            runs.add(rolls(group))
    assert len(runs) == 3


def test_a_seed_fixes_the_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for seed, name in (("1", "a"), ("1", "a"), ("2", "a"), ("1", "b")):
        monkeypatch.setenv("ORCALIKE_SEED", seed)
        with orca.join(name) as group:
            runs.append(rolls(group))
    assert runs[0] == runs[1]
    assert len(set(runs)) == 3


def test_reads_do_not_change_the_random_numbers_of_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process reads as often as it likes."""
    monkeypatch.setenv("ORCALIKE_SEED", "1")
    rolled = []
    for reads in (0, 5):
        with orca.join() as group:
            leases = group.share(Leases, "leases")
            waiting = leases.roll_when.nowait(1)
            for _ in range(reads):
                leases.rng()
            leases.take("a", 1.0)
            rolled.append((leases.roll(), waiting.result(DEADLINE)))
    assert rolled[0] == rolled[1]


def test_a_guard_that_was_tried_more_often_draws_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that came later has tried it less often."""
    monkeypatch.setenv("ORCALIKE_SEED", "1")
    rolled = set()
    for names in (["a", "b"], ["a", "a", "a", "b"]):
        with orca.join() as group:
            leases = group.share(Leases, "leases")
            waiting = leases.roll_when.nowait(2)
            for name in names:
                leases.take(name, 1.0)
            rolled.add(waiting.result(DEADLINE))
    assert len(rolled) == 1
