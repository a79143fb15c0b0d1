"""`@orca.invariant`: what is looked at after each write, and what its caller gets."""

from __future__ import annotations

import logging

import pytest

import orcalike as orca
from orcalike.runtime.classes import lookup_class
from tests.protocol.test_runtime_sim import Stage


@orca.shared
class Account:
    """Money, which is never less than nothing."""

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance
        self.owner = "nobody"

    @orca.invariant
    def is_covered(self) -> bool:
        return self.balance >= 0

    @orca.invariant
    def has_a_name(self) -> None:
        if not self.owner:
            raise ValueError("no owner")

    @orca.read
    def get(self) -> int:
        return self.balance

    @orca.write
    def add(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @orca.write(undo=True)
    def add_undone(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @orca.write
    def add_when(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @add_when.when
    def _(self, amount: int) -> bool:
        return True

    @orca.write(popup=True)
    def add_slowly(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    @orca.write
    def rename(self, owner: str) -> None:
        self.owner = owner

    @orca.write
    def spend_and_fail(self, amount: int) -> None:
        self.balance -= amount
        raise KeyError("after all")


@orca.shared
class Savings(Account):
    """Inherits the invariants, and adds one."""

    @orca.invariant
    def is_round(self) -> bool:
        return self.balance % 10 == 0


@orca.atomic
def move(source: Account, target: Account, amount: int) -> None:
    """Move money, looking at nothing."""
    source.add(-amount)
    target.add(amount)


@pytest.mark.parametrize("operation", ["add", "add_when", "add_slowly"])
def test_the_caller_learns_of_object_write_and_invariant(group: orca.Group, operation: str) -> None:
    account = group.share(Account, "account", 5)
    assert getattr(account, operation)(-5) == 0
    with pytest.raises(orca.InvariantBroken) as caught:
        getattr(account, operation)(-1)
    assert str(caught.value) == (
        f"Account.{operation} of 'account' broke the invariant Account.is_covered: "
        "it returned False"
    )
    assert account.get() == -1  # as after any exception
    assert account.add(3) == 2


def test_undo_puts_the_object_back(group: orca.Group) -> None:
    account = group.share(Account, "account", 5)
    with pytest.raises(orca.InvariantBroken, match=r"Account\.add_undone .*is_covered"):
        account.add_undone(-6)
    assert account.get() == 5


def test_an_invariant_may_raise_and_gives_the_reason(group: orca.Group) -> None:
    account = group.share(Account, "account", 5)
    with pytest.raises(
        orca.InvariantBroken, match=r"has_a_name: it raised ValueError\('no own"
    ) as e:
        account.rename("")
    assert isinstance(e.value.__cause__, ValueError)


def test_a_write_that_raises_is_looked_at_too(group: orca.Group) -> None:
    account = group.share(Account, "account", 5)
    with pytest.raises(KeyError):
        account.spend_and_fail(1)
    with pytest.raises(orca.InvariantBroken, match="is_covered") as caught:
        account.spend_and_fail(10)
    assert isinstance(caught.value.__cause__, KeyError)


def test_inherited_invariants_and_an_object_that_begins_broken(group: orca.Group) -> None:
    savings = group.share(Savings, "savings", 10)
    with pytest.raises(orca.InvariantBroken, match=r"Savings\.add .*Savings\.is_round"):
        savings.add(1)
    with pytest.raises(orca.InvariantBroken, match=r"Savings\.__init__ of 'odd' .*is_round"):
        group.share(Savings, "odd", 11)
    assert group.share(Savings, "odd", 20).get() == 20


def test_an_atomic_function_is_looked_at_when_it_is_over(group: orca.Group) -> None:
    one, other = group.share(Account, "one", 5), group.share(Account, "other", 0)
    move(one, other, 5)
    with pytest.raises(orca.InvariantBroken, match=r"move of 'one' broke .*is_covered"):
        move(one, other, 1)


def test_a_plain_object_is_a_plain_object() -> None:
    assert Account(0).add(-1) == -1


def test_classes_without_invariants_run_as_they_did() -> None:
    info = lookup_class(Account)
    assert info is not None
    assert [function.__name__ for function in info.invariants] == ["has_a_name", "is_covered"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def check(self): self.x = 1", "changes|assigns"),
        ("def check(self, more): return True", "called with the object alone"),
        ("def check(self): import time; return time.time() > 0", "time"),
    ],
)
def test_an_invariant_only_looks(body: str, message: str) -> None:
    import linecache

    source = (
        f"import orcalike as orca\n@orca.shared\nclass Wrong:\n    @orca.invariant\n    {body}\n"
    )
    name = f"<wrong {hash(body)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with pytest.raises(orca.DeclarationError, match=message):
        exec(compile(source, name, "exec"), {"__name__": "wrong"})  # noqa: S102


def test_all_replicas_agree_and_the_callers_error_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(3)
    for number in (1, 2):
        stage.admit(number)
    account = stage.share(stage.participants[0], Account, "account", 5)
    with caplog.at_level(logging.ERROR):
        outcome = account.add.nowait(-6)
        stage.settle()
    assert isinstance(outcome.exception(), orca.InvariantBroken)
    assert len(stage.held("account")) == 1
    assert not any(participant.faults for participant in stage.participants)
    assert not [record for record in caplog.records if record.levelno > logging.ERROR]
