"""Ctrl-C in the midst of operations: only one that does not end is ended by it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

import orcalike as orca
from orcalike.transport.drivers import deferral

insist = deferral.insist
started: list[tuple[int, int]] = []
"""What would be done a second after a Ctrl-C that has to wait."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """That second is over when the test says so."""
    monkeypatch.setattr(deferral, "INSIST", 0)
    monkeypatch.setattr(deferral, "insist", lambda number, which: started.append((number, which)))
    monkeypatch.setattr(deferral, "start_thread", lambda function, arguments: function(*arguments))
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    other = signal.signal(signal.SIGUSR2, lambda number, frame: None)
    yield
    signal.signal(signal.SIGINT, former)
    signal.signal(signal.SIGUSR2, other)
    started.clear()


def second_is_over() -> None:
    """Since the last Ctrl-C that has to wait, or since it was put off again."""
    insist(*started[-1])  # the handler runs before the next line


@orca.shared
class Steps:
    """Operations that are hit."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.open = False

    @orca.write
    def hit(self) -> None:
        """Lets the other one go."""
        signal.raise_signal(signal.SIGINT)  # orca: unchecked
        self.open = True
        self.done.append("hit")

    @orca.write
    def follow(self) -> None:
        """Runs right after that, in the same input: a second after the signal, but not for a second. Another one comes here."""
        signal.raise_signal(signal.SIGUSR2)  # orca: unchecked
        second_is_over()  # orca: unchecked
        self.done.append("follow")

    @follow.when
    def _(self) -> bool:
        return self.open

    @orca.write
    def not_end(self) -> None:
        """A second after the signal it still runs."""
        signal.raise_signal(signal.SIGINT)  # orca: unchecked
        second_is_over()  # orca: unchecked
        self.done.append("not ended")

    @orca.read
    def all(self) -> list[str]:
        return [*self.done]


def test_an_operation_that_began_later_is_not_ended(group: orca.Group) -> None:
    """As on a busy machine, where many that are short take long together: it would be a fault of this member."""
    steps = group.share(Steps, "steps")
    waits = steps.follow.nowait()
    with pytest.raises(KeyboardInterrupt):
        steps.hit()
    waits.result()
    assert steps.all() == ["hit", "follow"]
    assert len(started) == 2, "and it is put off anew, for this one"


def test_one_that_does_not_end_is_ended(group: orca.Group) -> None:
    steps = group.share(Steps, "steps")
    with pytest.raises((KeyboardInterrupt, orca.ReplicaDivergence)):
        steps.not_end()
    with pytest.raises(orca.ReplicaDivergence, match="ended with KeyboardInterrupt"):
        steps.all()
