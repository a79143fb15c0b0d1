"""What the host of a virtual machine took, as the kernel's account has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orcalike.transport.drivers.stolen import NS_PER_TICK, StolenTime

LINE = "cpu  50481 0 7977 110715 1364 0 325 {} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"


@pytest.fixture
def account(tmp_path: Path) -> Path:
    path = tmp_path / "stat"
    path.write_text(LINE.format(8004))
    return path


def test_what_was_taken_since(account: Path) -> None:
    stolen = StolenTime(str(account))
    before = stolen.ticks()
    assert before == 8004
    account.write_text(LINE.format(8007))
    # The first tick may have been nearly over before, and a fourth nearly so now.
    assert stolen.most_since(before) == 4 * NS_PER_TICK


def test_a_tick_may_be_about_to_end(account: Path) -> None:
    stolen = StolenTime(str(account))
    assert stolen.most_since(stolen.ticks()) == NS_PER_TICK


def test_a_count_that_goes_back(account: Path) -> None:
    """Which it does when a virtual machine moves to another host."""
    stolen = StolenTime(str(account))
    before = stolen.ticks()
    account.write_text(LINE.format(12))
    assert stolen.most_since(before) == NS_PER_TICK


@pytest.mark.parametrize("text", [LINE.format(0), "cpu  1 2 3\n", ""])
def test_where_none_ever_was(account: Path, text: str) -> None:
    account.write_text(text)
    stolen = StolenTime(str(account))
    assert (stolen.ticks(), stolen.most_since(0)) == (0, 0)


def test_a_kernel_that_keeps_no_account(tmp_path: Path) -> None:
    stolen = StolenTime(str(tmp_path / "none"))
    assert (stolen.ticks(), stolen.most_since(0)) == (0, 0)


def test_this_kernel_is_understood() -> None:
    assert 0 <= StolenTime().ticks() <= StolenTime().ticks()
