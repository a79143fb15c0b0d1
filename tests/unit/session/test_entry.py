"""What a process that is not in its group yet says it waits for."""

from __future__ import annotations

import pytest

from orcalike.errors import JoinFailed
from orcalike.session.entry import Entry
from orcalike.session.options import JoinOptions
from orcalike.transport.view import Member

ONE, OTHER = Member("unix:/one", 1, 0), Member("unix:/other", 2, 1)


@pytest.mark.parametrize(
    ("donors", "says"),
    [
        ((), "no answer from unix:/one"),
        ((ONE,), f"the group's state has not come yet: {ONE} is to give it"),
        (
            (ONE, OTHER),
            f"the group's state has not come yet: one of {ONE} and {OTHER} is to give it",
        ),
    ],
)
def test_what_is_waited_for(donors: tuple[Member, ...], says: str) -> None:
    """In the log while it waits, and in the error when the time is over."""
    entry = Entry(lambda: ("unix:/one",), lambda: "", JoinOptions("group", "seeds"))
    assert entry.why_out(donors) == says
    failed = entry.too_late(3.0, None, donors)
    assert isinstance(failed, JoinFailed)
    assert str(failed) == f"could not join the group within 3.0 s; {says}"
