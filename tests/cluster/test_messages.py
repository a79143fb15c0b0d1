"""The group primitives (Amoeba, table 1): messages, joins and leaves in one order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orcalike import messages
from orcalike.errors import (
    BlockingInLoop,
    GroupClosed,
    JoinFailed,
)
from orcalike.messages import (
    Data,
    Joined,
    Left,
    MessageGroup,
    create_group,
    get_info_group,
    join_group,
    leave_group,
    receive_from_group,
    send_to_group,
)
from orcalike.session import message_inbox
from tests.lib.orders import IN_MEMORY, OVER_RANK, OVER_WITNESS
from tests.lib.processes import DEADLINE, until
from tests.lib.waiting_threads import until_it_stays

if TYPE_CHECKING:
    from tests.lib.processes import Facts
    from tests.lib.programs import Programs

COUNT = 500


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Groups]:
    """Memberships of this process, left when the test ends."""
    groups = Groups(f"unix:{tmp_path}/maker")
    with groups.all:
        yield groups


class Groups:
    """Several members in one process."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.all = ExitStack()

    def create(self) -> MessageGroup:
        return self.kept(create_group(listen=self.where))

    def join(self) -> MessageGroup:
        return self.kept(join_group(seeds=self.where, timeout=DEADLINE))

    def kept(self, group: MessageGroup) -> MessageGroup:
        self.all.callback(leave_group, group, timeout=2)
        return group


def next_data(group: MessageGroup) -> bytes:
    event = receive_from_group(group, timeout=DEADLINE)
    assert isinstance(event, Data)
    return event.data


def check(facts: list[Facts]) -> None:
    """All received the same, and everything once and in its sender's order."""
    assert len({fact["order"] for fact in facts}) == 1
    expected = [*map(str, range(COUNT)), "over"]
    for fact in facts:
        assert fact["data"] == {str(rank): expected for rank in range(len(facts))}
        assert fact["rest"][-1] == fact["rank"], "its own leave is the last that a leaver receives"
        assert fact["end"] == "GroupClosed"


def test_three_processes_talk(programs: Programs) -> None:
    members = [programs.start("talker.py", "create", "tcp:127.0.0.1:0", str(COUNT), "3")]
    address = str(members[0].next_fact()["address"])
    for _ in range(2):
        members.append(programs.start("talker.py", "join", address, str(COUNT), "3"))
        members[-1].next_fact()
    facts = [member.next_fact() for member in members]
    check(facts)
    assert [fact["joined"] for fact in facts] == [[1, 2], [2], []]
    for member in members:
        assert (member.end(), member.stderr()) == (0, "")


@pytest.mark.parametrize(
    "order", [OVER_WITNESS, OVER_RANK, IN_MEMORY], ids=["witness", "rank", "memory"]
)
def test_launched_processes_talk(programs: Programs, order: tuple[str, ...]) -> None:
    facts = programs.facts(*order, "-n", "3", "talker.py", "launched", "-", str(COUNT), "3")
    check([fact for fact in facts if "order" in fact])


def test_alone(groups: Groups) -> None:
    group = groups.kept(create_group())
    for data in (b"", b"one", bytearray(b"two"), memoryview(b"three")):
        send_to_group(group, data)
    assert [next_data(group) for _ in range(4)] == [b"", b"one", b"two", b"three"]
    info = get_info_group(group)
    assert (info.address, len(info.members), info.waiting) == ("", 1, 0)
    assert info.seqno > 0
    with pytest.raises(TimeoutError, match=r"no event within 0\.05 s"):
        receive_from_group(group, timeout=0.05)
    leave_group(group)
    assert receive_from_group(group) == Left(info.me, info.view)
    for call in (
        lambda: send_to_group(group, b"late"),
        lambda: receive_from_group(group),
        lambda: get_info_group(group),
    ):
        with pytest.raises(GroupClosed, match="'messages' was left"):
            call()


def test_joins_and_leaves_are_events_in_the_order(groups: Groups) -> None:
    first = groups.create()
    send_to_group(first, b"before")
    second = groups.join()
    them = get_info_group(second).me
    send_to_group(second, b"between")
    leave_group(second)
    send_to_group(first, b"after")
    events = [receive_from_group(first, timeout=DEADLINE) for _ in range(5)]
    assert [type(event) for event in events] == [Data, Joined, Data, Left, Data]
    assert [event.member for event in events if isinstance(event, Joined | Left)] == [them, them]
    places = [(event.seqno, event.index) for event in events if isinstance(event, Data)]
    assert places == sorted(places)
    # The joiner receives neither its own join nor what was before; it receives its own leave.
    received = [receive_from_group(second), receive_from_group(second)]
    assert [type(event) for event in received] == [Data, Left]


def test_large_messages(groups: Groups) -> None:
    first, second = groups.create(), groups.join()
    assert isinstance(receive_from_group(first, timeout=DEADLINE), Joined)
    largest = bytes(messages.MESSAGE_MAX)
    send_to_group(second, largest, timeout=DEADLINE)
    assert next_data(first) == next_data(second) == largest
    with pytest.raises(ValueError, match="a message of 16777217 bytes; 16777216 are allowed"):
        send_to_group(second, largest + b"x")
    send_to_group(first, b"small")
    assert next_data(first) == next_data(second) == b"small"


def test_a_member_that_does_not_receive_holds_up_the_senders(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_inbox, "EVENTS_MAX", 100)
    first, second = groups.create(), groups.join()
    total = 5000

    def receive() -> None:
        for _ in range(total + 1):
            receive_from_group(first)

    def send() -> None:
        for _ in range(total):
            send_to_group(first, b"x" * 1000, timeout=DEADLINE)

    receiving, sending = threading.Thread(target=receive), threading.Thread(target=send)
    receiving.start()
    sending.start()
    until(lambda: get_info_group(second).waiting >= 100)
    assert until_it_stays(sending, "message")
    assert get_info_group(second).waiting < total
    # It receives again, and all goes on.
    for _ in range(total):
        assert next_data(second) == b"x" * 1000
    sending.join()
    receiving.join()


async def test_a_blocking_call_on_a_running_loop(groups: Groups) -> None:
    group = await asyncio.to_thread(groups.create)
    for call in (lambda: send_to_group(group, b""), lambda: receive_from_group(group)):
        with pytest.raises(BlockingInLoop, match=r"await asyncio\.to_thread"):
            call()
    await asyncio.to_thread(send_to_group, group, b"x")
    assert await asyncio.to_thread(next_data, group) == b"x"


def test_a_lost_member_has_left(groups: Groups, programs: Programs) -> None:
    """Half of the view with its oldest member goes on (H1): no call fails."""
    group = groups.create()
    other = programs.start("talker.py", "join", groups.where, "0", "9")
    other.next_fact()
    joined = receive_from_group(group, timeout=DEADLINE)
    assert isinstance(joined, Joined)
    other.process.kill()
    left = receive_from_group(group, timeout=DEADLINE)
    assert isinstance(left, Left)
    assert left.member == joined.member
    send_to_group(group, b"late")
    late = receive_from_group(group, timeout=DEADLINE)
    assert isinstance(late, Data)
    assert late.data == b"late"


def test_wrong_ways_to_begin(groups: Groups) -> None:
    with pytest.raises(ValueError, match="seeds="):
        join_group()
    with pytest.raises(JoinFailed, match="no answer from"):
        join_group(seeds=groups.where, timeout=0.2)
    groups.create()
    with pytest.raises(JoinFailed, match="no answer from"):
        join_group("another", seeds=groups.where, timeout=0.2)
