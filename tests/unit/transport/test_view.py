"""Views and members travel as they are; what is none is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import (
    BALLOT_MAX,
    LINEAGE_BITS,
    LINEAGES_MAX,
    Member,
    View,
    next_lineage,
    resets_of,
)

A = Member("unix:/a", 1, None, witness=True)
B = Member("unix:/b", 2**64 - 1, 3)
C = Member("tcp:host:1", 7, 0)
VIEW = View(1, 4, 2, (A, B, C))


def test_what_a_view_says_of_itself() -> None:
    assert VIEW.identity == (1, 4, 2)
    assert VIEW.sequencer is A
    assert VIEW.replicas == (C, B)
    assert VIEW.others == (A,)
    assert [VIEW.position(incarnation) for incarnation in (1, 2**64 - 1, 7, 8)] == [0, 1, 2, -1]
    assert str(VIEW) == "view 4 of 3 members"
    assert [str(A), str(B)] == ["witness (unix:/a)", "rank 3 (unix:/b)"]
    assert str(Member("", 1, 0)) == "rank 0 (in this process)"


def test_a_view_travels() -> None:
    assert View.unpack(VIEW.pack()) == VIEW
    assert View.unpack(View(1, 2, 0, ()).pack()) == View(1, 2, 0, ())


BAD_MEMBERS: list[Any] = [
    None,
    [],
    ["unix:/a", 1, None],
    [1, 1, None, False],
    ["unix:/a", -1, None, False],
    ["unix:/a", 2**64, None, False],
    ["unix:/a", 1, "0", False],
    ["unix:/a", 1, True, False],
    ["unix:/a", 1, -1, False],
    ["unix:/a", 1, MEMBERS_MAX, False],
    ["unix:/a", 1, None, 0],
]


@pytest.mark.parametrize("data", BAD_MEMBERS, ids=repr)
def test_what_is_no_member_is_refused(data: Any) -> None:
    with pytest.raises(ProtocolError, match="not a member"):
        Member.unpack(data)


BEFORE = [1, 1, 0]
BAD_VIEWS: list[Any] = [
    None,
    [1, 2, 0, []],
    [1, 2, 0, [], True],
    [1, 0, 0, [], True, BEFORE],
    [1, 2**32, 0, [], True, BEFORE],
    [-1, 2, 0, [], True, BEFORE],
    [0, 2, 0, [], True, BEFORE],
    [LINEAGES_MAX << LINEAGE_BITS, 2, 0, [], True, BEFORE],
    [1, 2, BALLOT_MAX + 1, [], True, BEFORE],
    [1, 2, -1, [], True, BEFORE],
    [1, 2, 0, [], 1, BEFORE],
    [1, 2, 0, [], True, [1, 1]],
    [1, 2, 0, [], True, [1, -1, 0]],
    [1, 2, 0, [], True, [1, 2**32, 0]],
    [1, 2, 0, [], True, [1, 1, BALLOT_MAX + 1]],
    [1, 2, 0, [], True, [LINEAGES_MAX << LINEAGE_BITS, 1, 0]],
    [1, 2, 0, [A.pack(), A.pack()], True, BEFORE],
    [1, 2, 0, [Member("x", i).pack() for i in range(MEMBERS_MAX + 1)], True, BEFORE],
]


@pytest.mark.parametrize("data", BAD_VIEWS, ids=lambda data: repr(data)[:40])
def test_what_is_no_view_is_refused(data: Any) -> None:
    with pytest.raises(ProtocolError, match="not a view"):
        View.unpack(data)


def test_a_view_of_what_is_no_member_is_refused() -> None:
    with pytest.raises(ProtocolError, match="not a member"):
        View.unpack([1, 2, 0, [7], True, BEFORE])


def test_each_reset_begins_a_lineage_of_its_own() -> None:
    one, other = next_lineage((1, 2, 0), 1025), next_lineage((1, 2, 0), 1026)
    assert 1 < one < other < next_lineage((one, 3, 1025), 0)
    assert [resets_of(lineage) for lineage in (1, one, other)] == [0, 1, 1]
    for lineage in (one, other):
        assert View.unpack(View(lineage, 2, 0, ()).pack()).lineage == lineage


def test_resets_of_two_views_under_one_ballot_begin_two_lineages() -> None:
    """A member that the group went on without, and the group, each by a first ballot of theirs."""
    assert next_lineage((1, 2, 1024), 2049) != next_lineage((1, 4, 1024), 2049)


def test_lineages_come_to_an_end() -> None:
    with pytest.raises(OverflowError, match="make a new group"):
        next_lineage((LINEAGES_MAX - 1 << LINEAGE_BITS, 2, 0), 0)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(values)
def test_anything_else_is_refused(data: Any) -> None:
    for unpack in (Member.unpack, View.unpack):
        with pytest.raises(ProtocolError) as caught:
            unpack(data)
        assert len(str(caught.value)) < 200
