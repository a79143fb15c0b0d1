"""Lines between the launcher and its processes: what is none of them is let pass."""

from __future__ import annotations

import pytest

from orcalike.launch_protocol.control_lines import (
    Joining,
    parse_for_launcher,
    parse_for_process,
    parse_of_started,
)

NO_NUMBERS = ("²", "٣", "-1", "1" * 5000, "", "1.0")
"""Some are digits to Python, or to int() too many."""


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(
    "line", ["joining g {}", "lacks g {} rule", "described {} g [1]", "blocked g {}:0:w r"]
)
def test_the_launcher_lets_pass_what_has_no_number(line: str, text: str) -> None:
    assert parse_for_launcher(line.format(text)) is None


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(
    "line", ["ended {}", "make g {}", "died {}", "gone {}", "cut {}", "describe {}"]
)
def test_a_process_lets_pass_what_has_no_number(line: str, text: str) -> None:
    assert parse_for_process(line.format(text)) is None
    assert parse_of_started(f"member {text}") is None


def test_the_largest_incarnation_is_one() -> None:
    assert parse_for_launcher(f"joining g {2**64 - 1}") == Joining("g", 2**64 - 1)
