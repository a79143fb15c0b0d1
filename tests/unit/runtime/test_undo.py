"""`undo` where a group does not run the call: on unshared objects, and within operations."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import orcalike as orca


@orca.shared
class Account:
    def __init__(self, balance: int, other: Any = None) -> None:
        self.balance = balance
        self.log: list[int] = []
        self.other = other

    @orca.write(undo=True)
    def take(self, amount: int) -> None:
        self.balance -= amount
        self.log.append(amount)
        if self.balance < 0:
            raise ValueError(f"only {self.balance + amount}")

    @orca.write
    def try_to_take(self, amount: int) -> bool:
        try:
            self.take(amount)
        except ValueError:
            return False
        return True

    @orca.write
    def add(self, amount: int) -> None:
        self.balance += amount

    @orca.read
    def state(self) -> tuple[int, list[int]]:
        return self.balance, list(self.log)


class Derived(Account):
    """Not declared: it is what its base is."""


@orca.atomic
def transfer(source: Account, target: Account, amount: int) -> bool:
    try:
        source.take(amount)
    except ValueError:
        return False
    target.add(amount)
    return True


@orca.atomic(undo=True)
def add_first(source: Account, target: Account, amount: int) -> None:
    target.add(amount)
    source.add(-amount)
    if source.balance < 0:
        raise ValueError("too little")


@pytest.fixture(params=["shared", "not shared"])
def accounts(request: pytest.FixtureRequest, group: orca.Group) -> tuple[Account, Account]:
    if request.param == "shared":
        return group.share(Account, "a", 10), group.share(Account, "b", 0)
    return Account(10), Account(0)


def test_an_operation_that_another_one_calls_is_undone(accounts: tuple[Account, Account]) -> None:
    account = accounts[0]
    assert account.try_to_take(4)
    assert not account.try_to_take(100)
    assert account.state() == (6, [4])


def test_an_operation_that_an_atomic_function_calls_is_undone(
    accounts: tuple[Account, Account],
) -> None:
    alice, bob = accounts
    assert transfer(alice, bob, 4)
    assert not transfer(alice, bob, 100)
    assert (alice.state(), bob.state()) == ((6, [4]), (4, []))


def test_an_atomic_function_is_undone(accounts: tuple[Account, Account]) -> None:
    alice, bob = accounts
    add_first(alice, target=bob, amount=4)
    with pytest.raises(ValueError, match="too little"):
        add_first(alice, target=bob, amount=100)
    assert (alice.balance, bob.balance) == (6, 4)


@pytest.mark.parametrize("cls", [Account, Derived])
def test_an_operation_of_an_object_that_is_not_shared_is_undone(cls: type[Account]) -> None:
    account = cls(10)
    with pytest.raises(ValueError, match="only 10"):
        account.take(100)
    assert isinstance(account.take.nowait(100).exception(), ValueError)
    assert account.state() == (10, [])


@pytest.mark.parametrize("is_shared", [False, True])
def test_objects_that_it_refers_to_stay(group: orca.Group, is_shared: bool) -> None:
    other = group.share(Account, "other", 1) if is_shared else Account(1)
    account = Account(10, [other, {"me": other}])
    with pytest.raises(ValueError, match="only 10"):
        account.take(100)
    assert account.other[0] is account.other[1]["me"] is other


def test_a_state_that_cannot_travel_is_named() -> None:
    account = Account(10, threading.Lock())
    with pytest.raises(orca.NotSerializable, match=r"the state of 'Account'.*other.*lock"):
        account.take(100)
    assert account.state() == (10, [])
