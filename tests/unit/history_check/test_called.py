"""Calls that their callers have written down: what is read back, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.history_check.blackbox import NEVER
from orcalike.history_check.models import Refused
from tests.campaign.models import READS, model_of
from tests.campaign.objects import Bank, Chain, Counter, Queue, Slot, draw
from tests.lib.called import LAST, Called, CallLog, check_calls, load_calls

Step = tuple[str, str, tuple[object, ...], object]
"""Caller, operation, arguments and result."""

COUNTER = "counter 0"
RIGHT: list[Step] = [
    ("1.0", "add", (2,), 2),
    ("2.0", "get", (), 2),
    ("2.0", "add", (3,), 5),
    ("1.1", "reached", (5,), 5),
    (f"1.{LAST}", "get", (), 5),
    (f"2.{LAST}", "get", (), 5),
]


def written(folder: Path, steps: list[Step]) -> dict[str, list[Called]]:
    """Calls of a counter, each of which is over before the next one."""
    logs = {caller: CallLog(folder, caller) for caller in {caller for caller, *_ in steps}}
    for caller, operation, args, value in steps:
        number = logs[caller].begin(COUNTER, operation, *args)
        logs[caller].end(number, lambda value=value: value)  # type: ignore[misc]
    return load_calls(folder)


def refused(calls: dict[str, list[Called]], *, fresh: bool = True) -> set[str]:
    found = check_calls(calls, model_of, READS, lambda read: fresh or read.is_last)
    return {each.invariant for each in found}


def test_what_is_right_is_not_refused(tmp_path: Path) -> None:
    calls = written(tmp_path, RIGHT)
    assert [each.process for each in calls[COUNTER]] == ["1", "2", "2", "1", "1", "2"]
    assert [each.is_last for each in calls[COUNTER]] == [*[False] * 4, True, True]
    assert refused(calls) == refused(calls, fresh=False) == set()


@pytest.mark.parametrize(
    ("at", "step", "over_a_sequencer"),
    [
        pytest.param(1, ("2.0", "get", (), 0), set(), id="a late read"),
        pytest.param(2, ("2.0", "add", (3,), 3), {"I20"}, id="a write that was lost"),
        pytest.param(2, ("2.0", "add", (3,), 7), {"I20", "I22"}, id="a write that ran twice"),
        pytest.param(3, ("1.1", "reached", (6,), 5), set(), id="a guard that does not hold"),
        pytest.param(3, ("2.1", "get", (), 2), {"I22"}, id="an own write that is not seen"),
        pytest.param(5, (f"2.{LAST}", "get", (), 2), {"I20", "I22"}, id="replicas that differ"),
    ],
)
def test_what_is_wrong_is_refused(
    tmp_path: Path, at: int, step: Step, over_a_sequencer: set[str]
) -> None:
    """There a read may be late, but not behind what its process has seen, and not in the end."""
    calls = written(tmp_path, [*RIGHT[:at], step, *RIGHT[at + 1 :]])
    assert "I20" in refused(calls)
    assert refused(calls, fresh=False) == over_a_sequencer


def test_a_call_that_has_not_ended_may_have_run_or_not(tmp_path: Path) -> None:
    log = CallLog(tmp_path, "1.0")
    log.begin(COUNTER, "add", 4)
    log.begin(COUNTER, "add", 2)
    log.end(log.begin(COUNTER, "get"), lambda: 2)
    calls = load_calls(tmp_path)
    assert [each.call.returned == NEVER for each in calls[COUNTER]] == [True, True, False]
    assert refused(calls) == set()
    log.end(log.begin(COUNTER, "get"), lambda: 3)
    assert refused(load_calls(tmp_path)) == {"I20"}


def fails(error: Exception) -> Callable[[], object]:
    """An outcome that is this error."""

    def outcome() -> object:
        raise error

    return outcome


def test_what_was_withdrawn_has_not_run(tmp_path: Path) -> None:
    log = CallLog(tmp_path, "1.0")
    for outcome in ("withdrawn", "unknown"):
        late = orca.InvocationTimeout("late", outcome)
        assert log.end(log.begin(COUNTER, "add", 4), fails(late)) is None
    assert [each.call.returned for each in load_calls(tmp_path)[COUNTER]] == [NEVER]


def test_errors_of_operations_are_results_and_others_are_raised(tmp_path: Path) -> None:
    log = CallLog(tmp_path, "1.0")
    assert log.end(log.begin(COUNTER, "add", 4), fails(ValueError("no"))) == "ValueError: no"
    assert refused(load_calls(tmp_path)) == {"I20"}
    with pytest.raises(orca.Expelled):
        log.end(log.begin(COUNTER, "add", 4), fails(orca.Expelled("out")))


def test_a_line_that_a_kill_cut_short_is_left_out(tmp_path: Path) -> None:
    log = CallLog(tmp_path, "1.0")
    log.end(log.begin(COUNTER, "add", 4), lambda: 4)
    log.begin(COUNTER, "add", 5)
    path = tmp_path / "1.0.calls"
    content = path.read_bytes().rstrip(b"\0")
    for end in range(len(content) - 1, content.rindex(b"[2"), -1):
        path.write_bytes(content[:end] + b"\0" * 100)  # its newline is the last that is there
        assert [each.call.args for each in load_calls(tmp_path)[COUNTER]] == [(4,)]


def test_files_grow(tmp_path: Path) -> None:
    log = CallLog(tmp_path, "1.0")
    items = ["x" * 1_000_000 + str(number) for number in range(9)]
    for item in items:
        log.end(log.begin("slot 0", "put", item), lambda: None)
    assert [each.call.args for each in load_calls(tmp_path)["slot 0"]] == [
        (item,) for item in items
    ]


def nothing(rng: random.Random) -> tuple[object, ...]:
    """What operations without arguments get."""
    return ()


ARGUMENTS: dict[str, Callable[[random.Random], tuple[object, ...]]] = {
    "add": lambda rng: (rng.randrange(9),),
    "draw": lambda rng: (rng.randrange(9),),
    "move": lambda rng: (*rng.sample(range(4), 2), rng.randrange(9)),
    "put": lambda rng: (str(rng.random()),),
    "reached": lambda rng: (rng.randrange(99),),
}
"""Of operations that have some."""


def operations() -> list[tuple[str, str, Callable[..., object]]]:
    """All operations of new objects that are not shared, with the names by which the models know them."""
    left, right = Counter(), Counter()
    objects = {
        "chain 0": Chain(),
        COUNTER: Counter(),
        "slot 0": Slot(),
        "queue 0": Queue(),
        "bank 0 4 9": Bank(4, 9),
    }
    names = ["add", "all", "get", "length", "move", "put", "reached", "take", "total"]
    return [
        *[
            (name, operation, getattr(each, operation))
            for name, each in objects.items()
            for operation in names
            if hasattr(each, operation)
        ],
        ("pair 0", "add left", left.add),
        ("pair 0", "add right", right.add),
        ("pair 0", "get left", left.get),
        ("pair 0", "get right", right.get),
        ("pair 0", "draw", lambda amount: draw(left, right, amount)),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_models_do_what_the_objects_do(seed: int) -> None:
    """Also that a call would wait for its guard."""
    rng = random.Random(seed)
    all_of_them = operations()
    found = {name: model_of(name) for name, *_ in all_of_them}
    states = {name: known[1] for name, known in found.items() if known is not None}
    for _ in range(2_000):
        name, operation, call = rng.choice(all_of_them)
        known = found[name]
        assert known is not None
        args = ARGUMENTS.get(operation.partition(" ")[0], nothing)(rng)
        try:
            result = call(*args)
        except orca.GuardFalse:
            assert not known[0].ready(states[name], operation, args)
            continue
        except ValueError as error:
            result = Refused(f"ValueError: {error}")
        assert known[0].ready(states[name], operation, args)
        states[name], expected = known[0].step(states[name], operation, args)
        assert expected == (tuple(result) if isinstance(result, list) else result), operation
