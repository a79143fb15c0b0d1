"""What a member may send as operations of the group, with the codes that there are and fields that no call has."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime.codes import FIELDS, MORE, Code
from tests.lib.shared_classes import Counter

ROUNDS = 3_000

VALUES: list[Any] = [
    *(-1, 0, 1, 2, 7, -(1 << 63), 1 << 63, (1 << 64) - 1, 1.5, float("nan"), True, None),
    *(
        "",
        "x",
        "C" * 300,
        b"",
        b"x",
        (),
        [],
        {},
        {"a": 1},
        {1: 2},
        {"x": ()},
        (1, "a"),
        ((1, "a"),),
    ),
    *([1, 2], [["x", 1, b"z"]], (1 << 40, 1 << 40)),
]


@orca.atomic
def add_to(counter: Counter, by: int = 1) -> int:
    """An atomic function."""
    return counter.add(by)


def head_of_atomic() -> tuple[str, bytes]:
    """How a call names it."""
    assert add_to.info is not None
    return add_to.info.name, add_to.info.digest


def drawn(rng: random.Random, code: Code, number: int) -> list[Any]:
    """Fields of an operation: some as they should be, so that they come far, and others."""
    values = [rng.choice(VALUES) for _ in range(rng.randrange(8))]
    if code == Code.ATOMIC:  # one that is not declared here is a fault of this process
        return [*head_of_atomic(), rng.choice([-5, -1, 0, 1, 2, 3, 1 << 63]), *values]
    if rng.random() < 0.5:
        made = {
            str: f"object {number}",
            bytes: b"digest",
            int: rng.choice(VALUES[:8]),
            object: None,
        }
        right = [made[field] for field in FIELDS[code]]
        return right + values if code in MORE else right
    return values


@pytest.mark.parametrize("seed", range(2))
def test_they_harm_no_member(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(seed)
    codes = [code for code in FIELDS if code not in (Code.DROP, Code.AVAILABLE, Code.FORK)]
    with orca.join() as group, caplog.at_level(logging.CRITICAL):
        counter = group.share(Counter, "counter")
        sender = group._runtime.sender
        for number in range(ROUNDS):
            code = rng.choice([*codes, Code.ATOMIC])
            sender.post(code, tuple(drawn(rng, code, number)), "a lie")
            assert group._session.pump.failure is None, code
        assert counter.add(1) == 1
        assert add_to(counter) == 2


@pytest.mark.parametrize(
    "arguments",
    [(0,), (1, 5), (-1, 5), (7, 5), (1, 5, 6, 7), (0, {"by": 1}), (0, 5), (1, 5, {1: 2})],
)
def test_an_atomic_function_of_no_object(
    arguments: tuple[Any, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with orca.join() as group:
        counter = group.share(Counter, "counter")
        group._runtime.sender.post(Code.ATOMIC, (*head_of_atomic(), *arguments), "a lie")
        assert "of the group, from rank 0" in caplog.text
        assert counter.add(1) == 1


@pytest.mark.parametrize("code", FIELDS)
def test_each_has_its_fields(code: Code, caplog: pytest.LogCaptureFixture) -> None:
    with orca.join() as group:
        wrong = (*(1.5 for _ in FIELDS[code]), *(() if code in MORE else (1.5,)))
        if wrong:
            group._runtime.sender.post(code, wrong, "a lie")
            assert f"{code.name.lower()} of the group, with what it does not take" in caplog.text
        assert group.share(Counter, "counter").add(1) == 1
