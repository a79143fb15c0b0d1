"""What unit tests of shared objects stand on: a group of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import orcalike as orca
from tests.lib.shared_classes import Counter, Journal


@pytest.fixture
def group() -> Iterator[orca.Group]:
    """A group of this process alone."""
    with orca.join() as joined:
        yield joined


@pytest.fixture
def counter(group: orca.Group) -> Counter:
    """A shared counter."""
    return group.share(Counter, "counter")


@pytest.fixture
def journal(group: orca.Group) -> Journal:
    """A shared journal."""
    return group.share(Journal, "journal")
