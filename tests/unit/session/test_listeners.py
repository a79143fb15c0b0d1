"""Groups of one process share a listener: one port, one address, heartbeats of all beside it."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.session import listeners
from orcalike.session.joining import open_until_exit
from orcalike.transport.drivers import near_road
from orcalike.transport.drivers.sockets import listen
from tests.lib.processes import until
from tests.lib.programs import OVER_SOCKETS
from tests.lib.shared_classes import Counter

KEY, OTHER = bytes(range(32)), bytes(32)

PLACES = ["unix:{directory}/place", "tcp:127.0.0.1:0"]


@pytest.fixture(autouse=True)
def none_is_left() -> Iterator[None]:
    """Each test closes all that it opens."""
    yield
    assert not listeners._here.open


@pytest.fixture(params=PLACES, ids=["unix", "tcp"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where to listen."""
    return str(request.param).format(directory=tmp_path)


def write(*groups: orca.Group) -> None:
    """Each group counts by itself, and all its members see that."""
    for group in groups:
        counter = group.share(Counter, "counter")
        before = counter.get()
        counter.add(1)
        group.fence()
        assert counter.get() == before + 1


def test_two_groups_have_one_address(place: str) -> None:
    with (
        orca.join("a", listen=place, key=KEY) as a,
        orca.join("b", listen=place, key=KEY) as b,
    ):
        assert a.address == b.address
        with (
            orca.join("a", seeds=a.address, key=KEY, timeout=60) as other_a,
            orca.join("b", seeds=b.address, key=KEY, timeout=60) as other_b,
        ):
            assert other_a.address == other_b.address != a.address
            assert (a.size, b.size, other_a.size, other_b.size) == (2, 2, 2, 2)
            write(a, b, other_a, other_b)


def test_two_members_of_one_group_have_a_listener_each(place: str) -> None:
    with (
        orca.join(listen=place, key=KEY) as first,
        orca.join(seeds=first.address, key=KEY, timeout=60) as second,
        orca.join(seeds=first.address, key=KEY, timeout=60) as third,
    ):
        assert len({member.address for member in first.members}) == 3
        write(first, second, third)


def test_a_process_that_is_a_member_already_learns_it(tmp_path: Path) -> None:
    """It is no matter of an address, which a launcher may have chosen."""
    address = f"unix:{tmp_path}/place"
    says = r"^this process is a member of the group 'g' already: pass that group on, or join\(name="
    with orca.join("g", listen=address):
        with pytest.raises(orca.OrcalikeError, match=says):
            orca.connect("g", listen=address)
        orca.connect("h", listen=address).close()
    orca.connect("g", listen=address).close()


def test_groups_with_other_keys_have_a_listener_each() -> None:
    with (
        orca.join("a", listen="tcp:127.0.0.1:0", key=KEY) as a,
        orca.join("b", listen="tcp:127.0.0.1:0", key=OTHER) as b,
    ):
        assert a.address != b.address
        with pytest.raises(orca.OrcalikeError, match="cannot listen at"):
            orca.connect("c", listen=a.address, key=OTHER)


@pytest.mark.parametrize("first", ["a", "b"])
def test_one_that_leaves_takes_nothing_along(place: str, first: str) -> None:
    """Whichever group came first: the other one is reached as before, and still has its heartbeats."""
    stack = OVER_SOCKETS.replace("unix", place.partition(":")[0])  # in memory there are none
    groups = {name: orca.connect(name, listen=place, key=KEY, stack=stack) for name in ("a", "b")}
    groups.pop(first).close()
    ((name, left),) = groups.items()
    with orca.join(name, seeds=left.address, key=KEY, timeout=60, stack=stack) as other:
        counts = left._session.pump.heartbeat.counts
        until(lambda: left._session.pump.heartbeat.counts["taken"] > counts["taken"])
        write(left, other)
        again = orca.connect(first, listen=place, key=KEY)
        assert again.address == left.address
        again.close()
        write(left, other)
    left.close()
    if place.startswith("unix:"):
        assert not Path(place.removeprefix("unix:")).exists()


def test_a_group_that_is_not_there_is_asked_for_again_until_it_is(place: str) -> None:
    """A process that is in one group may join another one later."""
    with orca.join("a", listen=place, key=KEY) as a:
        found: list[orca.Group] = []

        def join() -> None:
            # Not where `a` is reached: it would share that listener, and ask itself.
            own = "tcp:127.0.0.7:0" if place.startswith("tcp:") else None
            found.append(orca.connect("b", seeds=a.address, listen=own, key=KEY, timeout=200))

        joiner = threading.Thread(target=join)
        joiner.start()
        with orca.join("b", listen=place, key=KEY) as b:
            joiner.join(200)
            until(lambda: b.size == 2)
            assert [group.rank for group in found] == [1]
            write(b, found[0])
            found[0].close()


def test_an_event_loop_and_a_thread_share_one(place: str) -> None:
    """Each pump looks at the listener; the loop stands still while a member joins the other group."""

    async def main() -> None:
        async with orca.join("a", listen=place, key=KEY) as a:
            b = open_until_exit(orca.join("b", listen=place, key=KEY))  # it blocks
            try:
                other = open_until_exit(orca.join("b", seeds=b.address, key=KEY, timeout=60))
                assert b.size == other.size == 2
                other._leave(orderly=True)
                async with orca.join("a", seeds=a.address, key=KEY, timeout=60) as other:
                    counter = await other.share.aio(Counter, "counter")
                    assert await counter.add.aio(1) == 1
            finally:
                b._leave(orderly=True)

    asyncio.run(main())


def test_a_child_leaves_it_to_its_parent(place: str) -> None:
    with orca.join("a", listen=place, key=KEY) as a, orca.join("b", listen=place, key=KEY) as b:
        child = os.fork()
        if not child:
            os._exit(1 if listeners._here.open else 0)
        assert os.waitpid(child, 0)[1] == 0
        with orca.join("b", seeds=b.address, key=KEY, timeout=60) as other:
            write(b, other)
        with orca.join("a", seeds=a.address, key=KEY, timeout=60) as other:
            write(a, other)


def has_near_road(address: str) -> bool:
    """Whether a Unix socket stands beside the TCP socket that others reach at an address."""
    listener = near_road.listen(address)
    if listener is not None:
        listener.close()
    return listener is None


def test_the_near_road_leads_to_where_others_reach_a_member() -> None:
    with orca.join(listen="tcp:0.0.0.0:0", advertise="127.0.0.2", key=KEY) as group:
        assert group.address.startswith("tcp:127.0.0.2:")
        assert has_near_road(group.address)
    assert not has_near_road(group.address)


def test_a_child_does_not_keep_the_near_road() -> None:
    """It has closed its copy when Python's own code goes on in it."""
    here, there = socket.socketpair()
    with here, there:
        with orca.join(listen="tcp:127.0.0.1:0", key=KEY) as group:
            child = os.fork()
            if not child:
                there.send(b"runs")
                os._exit(len(there.recv(1)) - 1)
            assert here.recv(4) == b"runs"
        try:
            assert not has_near_road(group.address)
        finally:
            here.send(b"x")
            assert os.waitpid(child, 0)[1] == 0


def test_a_listener_that_cannot_be_made_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "place"
    listener, address = listen(f"unix:{path}")
    with listener:
        for _ in range(2):
            with pytest.raises(
                orca.OrcalikeError,
                match=r"cannot listen at .*: join the group .* with seeds=, or .* at=$",
            ):
                orca.connect(listen=address)
    path.unlink()
    Path(f"{path}~").mkdir()
    with pytest.raises(orca.OrcalikeError, match="no datagram socket for heartbeats"):
        orca.connect(listen=address)
