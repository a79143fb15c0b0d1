"""Tests of a shared class: `python -m pytest examples/test_auction.py`."""

from collections.abc import Callable

import orcalike as orca
from orcalike.testing import Members, Processes


@orca.shared
class Auction:
    def __init__(self) -> None:
        self.best = (0, "nobody")

    @orca.write
    def bid(self, name: str, amount: int) -> bool:
        self.best = max(self.best, (amount, name))
        return self.best == (amount, name)


def test_alone() -> None:
    assert Auction().bid("ada", 5)


def test_members(orcalike_group: Callable[[int], Members]) -> None:
    auctions = (members := orcalike_group(3)).share(Auction, "auction")
    assert [each.bid("ada", 9) for each in auctions] == [True] * 3
    members.fence()
    assert {each.best for each in auctions} == {(9, "ada")}


def bid(group: orca.Group, name: str, amount: int) -> bool:
    return group.share(Auction, "auction").bid(name, amount)


def test_death(orcalike_processes: Callable[[int], Processes]) -> None:
    processes = orcalike_processes(2)
    assert processes[1].call(bid, "ada", 5)
    processes.kill(1)
    assert not processes[0].call(bid, "bob", 4)
