"""Durations are seconds or texts, in each place that takes a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca
from orcalike.launch_protocol.environment import find_detection
from orcalike.runtime.durations import in_seconds, parse_duration, seconds_of
from tests.lib.shared_classes import Counter, transfer


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("2s", 2.0),
        (" 1.5 minutes ", 90.0),
        ("2H", 7200.0),
        (".5", 0.5),
        ("10", 10.0),
        ("0", 0.0),
    ],
)
def test_a_text_is_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "2x", "-1s", "1e3", "1 2", "nan", "inf"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 500ms, 10s, 10m or 2h"):
        parse_duration(text)


def test_a_number_is_in_seconds() -> None:
    assert seconds_of(None) is None
    assert seconds_of(3) == 3
    assert seconds_of(0.25) == 0.25
    for limit, remedy in ((-1, "from 0 on"), (float("nan"), "a number")):
        with pytest.raises(ValueError, match=f"a time limit of {limit} seconds: {remedy}, or None"):
            seconds_of(limit)
    wrong: Any
    for wrong in (True, [], b"2s"):
        with pytest.raises(TypeError, match='in seconds, or a text such as "500ms"'):
            seconds_of(wrong)
        with pytest.raises(TypeError, match='in seconds, or a text such as "500ms"'):
            in_seconds(wrong)


def test_a_limit_as_in_python_may_be_below_0() -> None:
    assert in_seconds(None) is None
    assert in_seconds(-1) == -1
    with pytest.raises(ValueError, match="a time limit of nan"):
        in_seconds(float("nan"))


def test_every_call_takes_both(group: orca.Group, counter: Counter) -> None:
    assert counter.add.options(timeout="10 s")(1) == counter.get()
    assert counter.add.nowait(1).result("10s") == counter.get()
    group.fence(timeout="1m")
    group.barrier(timeout="1m")
    assert group.find(Counter, "counter", timeout="1m") is counter
    with pytest.raises(ValueError, match="'soon' is not a duration"):
        counter.add.options(timeout="soon")
    with orca.join("other", timeout="1m"):
        pass


@pytest.mark.parametrize(
    ("limit", "error"), [("soon", ValueError), (-1, ValueError), ([], TypeError)]
)
def test_a_limit_is_looked_at_before_an_atomic_function_is_sent(
    group: orca.Group, limit: Any, error: type[Exception]
) -> None:
    source, target = group.share(Counter, "source", 9), group.share(Counter, "target", 0)

    async def await_it() -> None:
        await transfer.options(timeout=limit).aio(source, target, 4)

    calls: list[Callable[[], object]] = [
        lambda: transfer.options(timeout=limit)(source, target, 4),
        lambda: transfer.options(timeout=limit).nowait(source, target, 4),
        lambda: asyncio.run(await_it()),
        lambda: transfer.options(timeout=limit)(Counter(), Counter(), 4),
    ]
    for call in calls:
        with pytest.raises(error, match=r"soon|time limit"):
            call()
    group.fence()
    assert (source.get(), target.get()) == (9, 0)


def test_a_limit_is_looked_at_though_the_outcome_is_there(counter: Counter) -> None:
    done = counter.add.nowait(1)
    assert done.result() == 1
    with pytest.raises(ValueError, match="'soon' is not a duration"):
        done.result("soon")
    assert done.result(0) == 1


def test_coroutines_have_time_limits_too() -> None:
    async def main() -> None:
        async with orca.join(timeout="1m") as group:
            await group.fence.aio(timeout="1m")
            await group.barrier.aio(timeout=60)
            with pytest.raises(TimeoutError, match="no member has shared an object 'x' within 1ms"):
                await group.find.aio(Counter, "x", timeout="1ms")
            counter = await group.share.aio(Counter, "counter")
            assert await group.find.aio(Counter, "counter", timeout="1m") is counter

    asyncio.run(main())


def test_a_find_that_was_given_up_leaves_nothing_behind(group: orca.Group) -> None:
    with pytest.raises(TimeoutError, match="no member has shared an object 'later' within 0 s"):
        group.find(Counter, "later", timeout=0)
    later = group.share(Counter, "later")
    assert group.find(Counter, "later") is later


def test_variables_take_both() -> None:
    assert find_detection({"ORCALIKE_DETECTION": "200ms", "ORCALIKE_SLOW_TIMEOUT": "3"}) == (
        200_000_000,
        3_000_000_000,
    )
