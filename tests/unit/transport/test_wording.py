"""Numbers with their nouns, and lists, in texts."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from orcalike.history_check.check import Verdict
from orcalike.transport.view import Member, View
from orcalike.transport.wording import counted, listed

ALICE = Member("sim:a", 1, 0)


@pytest.mark.parametrize(("number", "text"), [(0, "0 members"), (1, "1 member"), (2, "2 members")])
def test_one_is_singular(number: int, text: str) -> None:
    assert counted(number, "member") == text


def test_a_plural_of_its_own() -> None:
    assert counted(1, "delivery", "deliveries") == "1 delivery"
    assert counted(3, "delivery", "deliveries") == "3 deliveries"


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], ""),
        ([1], "1"),
        ([1, 2], "1 and 2"),
        (range(3), "0, 1 and 2"),
        (range(10), "0, 1, 2, 3, 4, 5, 6, 7, 8 and 9"),
        (range(300), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 290 more"),
    ],
)
def test_a_long_list_is_cut(items: Collection[int], text: str) -> None:
    assert listed(items) == text


def test_texts_of_a_group_of_one() -> None:
    assert str(View(1, 2, 0, (ALICE,))) == "view 2 of 1 member"
    assert str(Verdict(1, 1, 1)) == "1 member, 1 message, 1 acknowledged: ok"
