"""What a process that is not in its group yet says it waits for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.errors import AuthenticationError, JoinFailed
from orcalike.session.entry import CLOSED, HOPELESS_MAX, Entry
from orcalike.session.options import JoinOptions
from orcalike.transport.errors import NOT_PROVED
from orcalike.transport.view import Member
from tests.lib.member_process import greet
from tests.lib.processes import until
from tests.lib.time_limits import LIMIT, Clock

ONE, OTHER = Member("unix:/one", 1, 0), Member("unix:/other", 2, 1)


@pytest.mark.parametrize(
    ("donors", "says"),
    [
        ((), "no answer from unix:/one for the group 'group'"),
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


REACHED = (
    "reached, and this process was not let into the group 'group' yet, as while that is blocked"
)


@pytest.mark.parametrize(
    ("reached", "says"),
    [
        (["unix:/other"], "no answer from unix:/one, unix:/two for the group 'group'"),
        (
            ["unix:/two"],
            f"unix:/two was {REACHED}; no answer from unix:/one for the group 'group'",
        ),
        (["unix:/one", "unix:/two"], f"unix:/one and unix:/two were {REACHED}"),
    ],
)
def test_one_that_has_greeted_is_no_silent_one(reached: list[str], says: str) -> None:
    """Its group may be blocked: then it lets no process in, as a witness that is left alone."""
    entry = Entry(lambda: ("unix:/one", "unix:/two"), lambda: "", JoinOptions("group", "seeds"))
    assert entry.why_out((), reached) == says
    failed = entry.too_late(3.0, None, (), reached)
    assert str(failed) == f"could not join the group within 3.0 s; {says}"


def test_a_process_that_greets_and_lets_no_other_in_was_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The error says all that there is to say: the group was not joined, so that it is not left without an answer either."""
    address = f"unix:{tmp_path}/other"
    greeting = greet(address, 77)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{tmp_path}/other")
        listening.listen()
        accepted: list[socket.socket] = []

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(listening.accept()[0])
                    accepted[-1].sendall(greeting)

        clock, joining = Clock(monkeypatch), orca.join("g", seeds=address, timeout=LIMIT)

        def end_when_reached() -> None:
            until(lambda: joining._group is not None)
            assert joining._group is not None
            session = joining._group._session
            until(session.stack.bottom.non_members)
            clock.end_limit(session)

        threads = [threading.Thread(target=each) for each in (answer, end_when_reached)]
        for thread in threads:
            thread.start()
        try:
            with pytest.raises(JoinFailed, match=f"{address} was reached, .* blocked"), joining:
                pass
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for sock in accepted:
                sock.close()
    assert not [each for each in caplog.records if "was left" in each.getMessage()]


def test_a_member_that_joins_again_asks_from_the_first_address_on() -> None:
    """Nor is it held against it how often it was refused before it was in."""
    entry = Entry(
        lambda: ("unix:/one", "unix:/two", "unix:/three"), lambda: "", JoinOptions("g", "seeds")
    )

    def ask() -> tuple[str, ...] | None:
        return entry.look_up(lambda: None, of_all=False)

    for _ in range(2):
        entry.begin()
        asked = []
        for _ in range(HOPELESS_MAX - 1):
            asked.append(ask())
            entry.trouble = NOT_PROVED
            assert entry.next_attempt(is_in=False) is not None
        assert asked[:4] == [("unix:/one",), ("unix:/two",), ("unix:/three",), ("unix:/one",)]
    entry.trouble = NOT_PROVED
    with pytest.raises(
        AuthenticationError, match=r"a group that has none, by insecure=True, takes no key$"
    ):
        entry.next_attempt(is_in=False)


def test_a_resolver_that_does_not_answer_holds_up_neither_thread_nor_loop() -> None:
    """Meanwhile the time limit may pass, and the event loop runs."""
    answers = threading.Event()
    entry = Entry(lambda: ("tcp:name.invalid:1",), lambda: "", JoinOptions("g", "seeds"))
    entry.begin()
    known = threading.Event()
    with pytest.MonkeyPatch.context() as patch:

        def resolve(asked: tuple[str, ...]) -> tuple[str, ...]:
            answers.wait(LIMIT)
            return ("tcp:127.0.0.2:1",)

        patch.setattr("orcalike.session.entry._numeric", resolve)
        assert entry.look_up(known.set, of_all=False) is None
        assert entry.looked_up() is None
        answers.set()
        assert known.wait(LIMIT)
    assert entry.looked_up() == ("tcp:127.0.0.2:1",)
    assert entry.looked_up() is None, "once"


SAYS = (
    "no answer from {} for the group 'h': it closed the connection, as a process does whose group has "
    "another name"
)


def test_a_connection_that_was_closed_may_be_to_another_group() -> None:
    assert closed_at("unix:/one", JoinOptions("h", "seeds")) == SAYS.format("unix:/one")


def test_a_connection_without_a_key_that_was_closed_may_be_to_a_group_that_has_one() -> None:
    """The other end says nothing to one that lacks its key."""
    says = closed_at("tcp:10.0.0.1:9", JoinOptions("h", "seeds", insecure=True))
    assert says == (
        "no answer from tcp:10.0.0.1:9 for the group 'h': it closed the connection, as a process does whose "
        "group has a key, and this process has none (insecure=True), or has another name"
    )


def closed_at(address: str, options: JoinOptions) -> str:
    """Why a process is not in yet that was let in nowhere: in the log, and in the error at last."""
    entry = Entry(lambda: (address,), lambda: "", options)
    entry.begin()
    entry.trouble = CLOSED
    assert entry.next_attempt(is_in=False) is not None
    why = entry.why_out(())
    assert str(entry.too_late(3.0, None, ())) == f"could not join the group within 3.0 s; {why}"
    assert why is not None
    return why


async def test_the_log_says_that_the_group_may_have_another_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again all the same: a group of that name may come."""
    monkeypatch.setattr("orcalike.session.waiting.SAY_EVERY", 0.05)

    async def join(address: str) -> str:
        async with orca.join("h", seeds=address) as joined:
            return joined.name

    async with orca.join("g", listen=f"unix:{tmp_path}/socket") as group:
        joining = asyncio.create_task(join(group.address))
        while SAYS.format(group.address) not in caplog.text:
            await asyncio.sleep(0.01)
            assert not joining.done()
        async with orca.join("h", listen=group.address):
            assert await joining == "h"
