"""What a refused joiner takes from its group: nothing that no group has by default, whatever a refusal says."""

from __future__ import annotations

import pytest

from orcalike.session.adopting import detection_of_group, stack_of_group

TOTAL, RING, ORDER = (f"PACK:XFER:{layer}:MBRSHIP:COM" for layer in ("TOTAL", "RING", "ORDER"))


def refusal(name: str, has: str, asks: str) -> str:
    """As a group says it."""
    return f"config: the group has {name}={has!r}, not {asks!r}"


@pytest.mark.parametrize(
    ("has", "medium", "taken"),
    [
        (ORDER, "unix", ORDER),
        (TOTAL, "unix", TOTAL),
        (RING, "unix", RING),
        (ORDER, "tcp", ORDER),
        (TOTAL, "tcp", TOTAL),
        (RING, "tcp", None),
        ("PACK:XFER:MINE:MBRSHIP:COM", "unix", None),
        (f"{ORDER}:{'X' * 200}", "unix", None),
    ],
)
def test_the_order_of_a_group(has: str, medium: str, taken: str | None) -> None:
    assert stack_of_group(refusal("stack", has, "MINE"), medium) == taken


@pytest.mark.parametrize(
    ("has", "taken"),
    [("0.5s", 500_000_000), ("2s", 2_000_000_000), ("0s", None), ("1e9s", None), ("x", None)],
)
def test_the_detection_time_of_a_group(has: str, taken: int | None) -> None:
    assert detection_of_group(refusal("detection", has, "7s")) == taken


def test_a_group_says_it_like_that() -> None:
    said = "config: the group has resilience=1, not 2"
    assert detection_of_group(said) is None
    assert stack_of_group(said, "unix") is None
    assert stack_of_group(refusal("detection", TOTAL, "1s"), "unix") is None
    assert detection_of_group(refusal("stack", "1s", "2s")) is None
