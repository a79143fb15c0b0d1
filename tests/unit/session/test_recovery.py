"""`info`, `reset` and `rejoin`, of groups of objects and of messages: what a program sees of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike import messages
from orcalike.messages import (
    Info,
    MessageGroup,
    create_group,
    get_info_group,
    join_group,
    leave_group,
    reset_group,
    send_to_group,
)
from orcalike.session import resetting
from orcalike.session.entering import Entering
from orcalike.session.options import make_options
from orcalike.session.session import Session
from orcalike.transport import stacks
from orcalike.transport.record import replaced
from tests.lib.shared_classes import Counter
from tests.unit.transport.test_degree import STACK, Notary

GONE = orca.Member("unix:/gone", 7, 1)


@pytest.fixture
def chat() -> Iterator[MessageGroup]:
    """A group for messages, of this process alone."""
    group = create_group()
    yield group
    leave_group(group)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Endpoints are blocked, and can be reset and join again: what was asked of them."""
    calls: list[tuple[object, ...]] = []

    def reset(
        session: Session, minimum: int, timeout: float | None, lower_degrees: object
    ) -> orca.View:
        calls.append(("reset", minimum, timeout))
        if minimum > 2:
            raise orca.NotPrimary("only 2 have answered")
        assert session.view is not None
        return session.view

    def rejoin(entering: Entering, timeout: float | None) -> None:
        calls.append(("rejoin", timeout))

    monkeypatch.setattr(Session, "blocked", ((GONE,), "more than half"))
    monkeypatch.setattr(resetting, "reset", reset)
    monkeypatch.setattr(Entering, "rejoin", rejoin)
    return calls


# Groups of objects.


def test_info(group: orca.Group, counter: Counter) -> None:
    info = group.info()
    assert (info.name, info.address, info.view) == (group.name, "", group.view)
    assert (info.me, info.rank, info.members, info.size) == (group.me, 0, (group.me,), 1)
    assert (info.sequencer, info.lineage, info.resilience) == (group.me, 1, 0)
    assert info.blocked is None
    counter.add()
    assert group.info().next_seqno > info.next_seqno > 0
    with pytest.raises(AttributeError):
        info.name = "another"  # type: ignore[misc]


def test_info_of_a_blocked_group(group: orca.Group, asked: list[tuple[object, ...]]) -> None:
    blocked = group.info().blocked
    assert blocked == orca.Blocked((GONE,), "more than half")
    assert blocked.missing == (GONE,)


def test_a_view_is_primary_while_its_members_may_write(
    group: orca.Group, chat: MessageGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while the group is blocked, and not at a member that was expelled; else it is the same."""
    views: tuple[Callable[[], orca.View], ...] = (
        lambda: group.view,
        lambda: group.info().view,
        lambda: get_info_group(chat).view,
    )
    whole = [show() for show in views]
    assert all(view.primary for view in whole)
    monkeypatch.setattr(Session, "blocked", ((GONE,), "more than half"))
    assert [show() for show in views] == [replaced(view, primary=False) for view in whole]
    monkeypatch.setattr(Session, "blocked", None)
    assert [show() for show in views] == whole
    for session in (group._session, chat._session):
        monkeypatch.setattr(session, "exit_reason", "expelled: view 2 went on without this member")
    assert not any(show().primary for show in views)


def test_info_shows_the_degree(tmp_path: Path) -> None:
    with orca.join(listen=f"unix:{tmp_path}/group", resilience="majority") as group:
        assert group.info().resilience == "majority"
    with orca.join(resilience=2) as alone:
        assert alone.info().resilience == 0
    with pytest.raises(orca.GroupClosed):
        alone.info()


def test_reset(group: orca.Group, asked: list[tuple[object, ...]]) -> None:
    assert group.reset(minimum=1) is group._session.view
    assert group.reset(minimum=2, timeout=3.0) is group._session.view
    with pytest.raises(orca.NotPrimary, match="only 2 have answered"):
        group.reset(minimum=3)
    assert asyncio.run(group.reset.aio(minimum=1, timeout=4.0)) is group._session.view
    assert asked == [
        ("reset", 1, None),
        ("reset", 2, 3.0),
        ("reset", 3, None),
        ("reset", 1, 4.0),
    ]


def test_rejoin(group: orca.Group, asked: list[tuple[object, ...]]) -> None:
    group.rejoin()
    asyncio.run(group.rejoin.aio(timeout=2.0))
    assert asked == [("rejoin", None), ("rejoin", 2.0)]


def test_reset_and_rejoin_would_block_a_loop(
    group: orca.Group, asked: list[tuple[object, ...]]
) -> None:
    async def call(function: Callable[..., Any], **options: object) -> None:
        with pytest.raises(orca.BlockingInLoop):
            function(**options)

    asyncio.run(call(group.reset, minimum=1))
    asyncio.run(call(group.rejoin))
    assert asked == []


@pytest.mark.parametrize(
    ("minimum", "error"), [(0, ValueError), (True, TypeError), ("1", TypeError)]
)
def test_no_minimum(
    group: orca.Group,
    chat: MessageGroup,
    asked: list[tuple[object, ...]],
    minimum: Any,
    error: type[Exception],
) -> None:
    with pytest.raises(error, match="minimum="):
        group.reset(minimum=minimum)
    with pytest.raises(error, match="minimum="):
        asyncio.run(group.reset.aio(minimum=minimum))
    with pytest.raises(error, match="minimum="):
        reset_group(chat, minimum)
    assert asked == []


def test_a_group_that_is_not_blocked(group: orca.Group, chat: MessageGroup) -> None:
    with pytest.raises(orca.OrcalikeError, match="not blocked"):
        group.reset(minimum=1)
    with pytest.raises(orca.OrcalikeError, match="not blocked"):
        reset_group(chat, 1)
    with pytest.raises(orca.OrcalikeError, match="not expelled"):
        group.rejoin()


def test_a_group_that_was_left(group: orca.Group) -> None:
    group.close()
    calls: list[Callable[[], object]] = [
        lambda: group.reset(minimum=1),
        lambda: asyncio.run(group.reset.aio(minimum=1)),
        group.rejoin,
        lambda: asyncio.run(group.rejoin.aio()),
    ]
    for call in calls:
        with pytest.raises(orca.GroupClosed):
            call()


# Groups of messages.


def test_get_info_group(chat: MessageGroup) -> None:
    send_to_group(chat, b"x")
    info = get_info_group(chat)
    assert isinstance(info, Info)
    assert isinstance(info, orca.GroupInfo)
    assert (info.name, info.size, info.lineage, info.resilience) == ("messages", 1, 1, 0)
    assert (info.waiting, info.next_seqno) == (1, info.seqno + 1)
    assert info.sequencer == info.me == info.members[0]
    assert info.blocked is None


def test_reset_group(chat: MessageGroup, asked: list[tuple[object, ...]]) -> None:
    assert reset_group(chat, 2, timeout=5.0) is chat._session.view
    assert get_info_group(chat).blocked == orca.Blocked((GONE,), "more than half")
    with pytest.raises(orca.NotPrimary):
        reset_group(chat, 3)
    assert asked == [("reset", 2, 5.0), ("reset", 3, None)]


def test_reset_group_after_leaving(asked: list[tuple[object, ...]]) -> None:
    group = create_group()
    leave_group(group)
    with pytest.raises(orca.GroupClosed):
        reset_group(group, 1)
    assert asked == []


def test_messages_have_the_groups_degree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A joiner learns it from the group."""
    monkeypatch.setattr(stacks, "_LAYERS", stacks._LAYERS | {"NOTARY": Notary})

    def options(*args: Any, **options: Any) -> Any:
        return make_options(*args, **(options | {"stack": STACK}))

    monkeypatch.setattr(messages, "make_options", options)
    where = f"unix:{tmp_path}/chat"
    groups = [create_group(listen=where, resilience=1), join_group(seeds=where, timeout=60)]
    for group in groups:
        notary = group._session.stack.focus("NOTARY")
        assert isinstance(notary, Notary)
        send_to_group(group, b"x")
        assert notary.packets[-1] == (1, 1)
        assert notary.least == [1]
        assert get_info_group(group).resilience == 1
    for group in groups:
        leave_group(group)
