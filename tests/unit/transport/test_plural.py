"""Numbers with their nouns, in texts."""

from __future__ import annotations

import pytest

from orcalike.history_check.check import Verdict
from orcalike.transport.plural import counted
from orcalike.transport.view import Member, View

ALICE = Member("sim:a", 1, 0)


@pytest.mark.parametrize(("number", "text"), [(0, "0 members"), (1, "1 member"), (2, "2 members")])
def test_one_is_singular(number: int, text: str) -> None:
    assert counted(number, "member") == text


def test_a_plural_of_its_own() -> None:
    assert counted(1, "delivery", "deliveries") == "1 delivery"
    assert counted(3, "delivery", "deliveries") == "3 deliveries"


def test_texts_of_a_group_of_one() -> None:
    assert str(View(1, 2, 0, (ALICE,))) == "view 2 of 1 member"
    assert str(Verdict(1, 1, 1)) == "1 member, 1 message, 1 acknowledged: ok"
