"""The leader's part in the agreement on views, with a port that keeps what is sent."""

from __future__ import annotations

from typing import Any

from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.view import Member, View

FIRST, SECOND, THIRD = (Member(f"sim:{name}", number, number) for number, name in enumerate("abc"))


class Port:
    """A layer that holds every cut, and forgets nothing."""

    def __init__(self) -> None:
        self.agreement = Agreement(self, FIRST, {})
        self.agreement.installed(View(1, 1, 0, (FIRST, SECOND)))
        self.told: list[tuple[int, list[Any]]] = []
        self.contacted: list[tuple[str, list[Any]]] = []
        self.views: list[View] = []

    def tell(self, place: int, message: list[Any]) -> None:
        self.told.append((place, message))

    def contact_with(self, address: str, message: list[Any]) -> None:
        self.contacted.append((address, message))

    def freeze(self) -> None:
        self.agreement.report(b"")

    def cut_of(self, reports: dict[int, bytes]) -> bytes:
        return b"cut"

    def has_cut(self, cut: bytes) -> bool:
        return True

    def install(self, view: View, cut: bytes) -> None:
        self.views.append(view)
        self.agreement.installed(view)


def proposing() -> Port:
    """A leader that has proposed the view that lets the third in and the second out."""
    port = Port()
    assert port.agreement.ask_join(THIRD, {}) is None
    port.agreement.ask_leave(SECOND.incarnation)
    port.agreement.begin()
    port.agreement.receive(1, ["FLUSH_OK", 1, b""])
    assert port.agreement.proposal is not None
    return port


def test_who_asks_again_while_it_is_let_in_joins_once() -> None:
    port = proposing()
    assert port.agreement.ask_join(THIRD, {}) is None
    port.agreement.ask_leave(SECOND.incarnation)
    port.agreement.receive(1, ["ACCEPT", 1])
    assert [view.members for view in port.views] == [(FIRST, THIRD)]
    port.told.clear()
    port.agreement.begin()
    assert port.told == [], "nobody asks for anything more"


def test_a_rank_that_is_about_to_be_taken_is_refused() -> None:
    port = proposing()
    again = Member("sim:d", 7, THIRD.rank)
    assert port.agreement.ask_join(again, {}) == "rank 2 is in the group already"
    other = Member("sim:e", 8, SECOND.rank)
    assert port.agreement.ask_join(other, {}) is None, "its holder is about to be gone"
