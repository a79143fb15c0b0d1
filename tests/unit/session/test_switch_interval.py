"""A thread that computes makes way sooner while a group is open, and no longer."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import orcalike as orca
from orcalike.session.switch_interval import INTERVAL, Switching


@pytest.fixture(autouse=True)
def interval() -> Iterator[float]:
    """The interval of this process, which is as it was after the test."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield 0.005
    sys.setswitchinterval(before)


def test_it_is_short_from_the_first_to_the_last(interval: float) -> None:
    switching = Switching()
    switching.shorten()
    switching.shorten()
    switching.restore()
    assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    switching.restore()
    assert sys.getswitchinterval() == pytest.approx(interval)


def test_what_is_shorter_already_stays() -> None:
    switching = Switching()
    sys.setswitchinterval(INTERVAL / 10)
    switching.shorten()
    assert sys.getswitchinterval() == pytest.approx(INTERVAL / 10)
    switching.restore()
    assert sys.getswitchinterval() == pytest.approx(INTERVAL / 10)


def test_what_the_program_sets_meanwhile_stays() -> None:
    switching = Switching()
    switching.shorten()
    sys.setswitchinterval(0.002)
    switching.restore()
    assert sys.getswitchinterval() == pytest.approx(0.002)


def test_a_group_that_others_can_join_has_it_short(tmp_path: object, interval: float) -> None:
    with orca.join("g", listen=f"unix:{tmp_path}/g"):
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    assert sys.getswitchinterval() == pytest.approx(interval)


def test_a_group_of_one_process_needs_none(interval: float) -> None:
    with orca.join("g"):
        assert sys.getswitchinterval() == pytest.approx(interval)
