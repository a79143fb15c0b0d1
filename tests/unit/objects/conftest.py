"""A group of three that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.objects.members import Lab, members


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A group of three."""
    with members(3) as groups:
        yield Lab(groups)
