"""Members of a TCP group that share memory, on one host: by a Unix socket, and all else as on TCP (H13, S6, S7)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orcalike.transport.drivers import half_open, near_road, sockets
from orcalike.transport.drivers.addresses import normal
from orcalike.transport.drivers.descriptors import LANE
from orcalike.transport.drivers.near_road import name_of
from orcalike.transport.drivers.partition import sever
from orcalike.transport.errors import InsecureConfig, ProtocolError
from orcalike.transport.stack import Stack
from orcalike.transport.wire.message import Message
from tests.lib import end as end_module
from tests.lib.end import End
from tests.lib.keyed import ring_of
from tests.lib.member_process import killed_at_the_end
from tests.lib.processes import DEADLINE
from tests.protocol.test_bad_frames import hello

KEY = bytes(range(32))
HERE = "tcp:127.0.0.1:0"
NEAR, TCP = socket.AF_UNIX, socket.AF_INET


class WatchedStack(Stack):
    """A stack that records which deaths are certain, and which links are gone."""

    def died(self, incarnation: int, now: int, lease: int = 0, age: int = 0) -> None:
        dead.append(incarnation)
        super().died(incarnation, now, lease, age)

    def link_down(self, link: int, why: str, now: int) -> None:
        down.append(link)
        super().link_down(link, why, now)


dead: list[int] = []
"""The members of the test that have certainly died."""

down: list[int] = []
"""The links of all of them that are gone."""

Ends = Callable[..., End]


@pytest.fixture
def make_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    """Makes members that share memory, which are closed with the test, however that ends."""
    made: list[End] = []
    dead.clear()
    down.clear()
    monkeypatch.setattr(end_module, "Stack", WatchedStack)

    def make(address: str = HERE, key: bytes | None = None, **options: Any) -> End:
        # One thread drives all: a busy machine is not to be taken for a silent member.
        given = {"shares_memory": True, "detection": 60_000_000_000, "rank": len(made), **options}
        made.append(End(address, key, **given))
        return made[-1]

    yield make
    for end in made:
        end.pump.close_all()
    assert [end.pump.failure for end in made] == [None] * len(made)


@pytest.fixture
def roads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By which sockets members connect, in their order."""
    found: list[int] = []
    connect = near_road.connect

    def recorded(stack: Stack, address: str, *, beyond: bool = False) -> socket.socket:
        sock = connect(stack, address, beyond=beyond)
        found.append(sock.family)
        return sock

    monkeypatch.setattr(near_road, "connect", recorded)
    return found


def together(end: End, *others: End, holds: Callable[[], object]) -> None:
    """Drive them until that holds."""

    def step() -> object:
        for other in others:
            other.pump.handle()
        return holds()

    end.until(step)


def both_in(*ends: End) -> None:
    """Drive two members until each is in a view of both."""
    views = [end.top for end in ends]
    together(
        *ends, holds=lambda: all(top.installed and len(top.installed.members) == 2 for top in views)
    )


def join(first: End, second: End) -> None:
    """The second one joins through the first."""
    second.pump.call(second.stack.join, first.address)
    both_in(first, second)


def opens(end: End, other: End) -> bool:
    """Whether one end can open what the other one offers; both are to have greeted."""
    here, there = end.stack.descriptors, other.stack.descriptors
    whose = other.stack.me.incarnation
    assert here
    assert there
    memory = os.memfd_create("test")
    try:
        os.close(here.open(whose, there.offer(whose, LANE, memory), os.O_RDWR))
    except ProtocolError:
        return False
    finally:
        os.close(memory)
    return True


def connected(end: End) -> socket.socket:
    """A connection to it by the near road, as any process of this user makes it."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(DEADLINE)
    sock.connect(name_of(end.address))
    return sock


@pytest.mark.parametrize("key", [None, KEY], ids=["open", "sealed"])
def test_both_ends_pass_process_and_files(
    make_end: Ends, roads: list[int], key: bytes | None
) -> None:
    first, second = make_end(key=key), make_end(key=key, joins=False)
    join(first, second)
    assert set(roads) == {NEAR}
    assert opens(first, second)
    assert opens(second, first)
    bodies = [bytes(size) for size in (1, 3000, 200_000)]
    for body in bodies:
        first.pump.call(first.stack.cast, Message(body))
    together(second, first, holds=lambda: second.top.bodies == bodies)


@pytest.mark.parametrize("keys", [(KEY, bytes(32)), (KEY, None), (None, KEY)])
def test_only_a_process_with_the_key_gets_in(
    make_end: Ends, roads: list[int], keys: tuple[bytes | None, bytes | None]
) -> None:
    first, second = make_end(key=keys[0]), make_end(key=keys[1], joins=False)
    second.pump.call(second.stack.join, first.address)
    together(second, first, holds=lambda: second.top.failed)
    assert set(roads) == {NEAR}
    assert second.top.installed is None
    assert first.peers == {}
    assert not opens(first, second)


def test_without_the_key_no_frame_is_read(make_end: Ends) -> None:
    end = make_end(key=KEY)
    with connected(end) as non_member:
        non_member.sendall(hello("group", "", 77))
        end.until(lambda: end.is_closed(non_member))
        end.until(lambda: "it speaks without the key" in str(end.logged))
    assert end.peers == {}


@pytest.mark.parametrize("key", [None, KEY], ids=["open", "sealed"])
def test_a_connection_that_waited_for_the_process_is_made_anew(
    make_end: Ends, roads: list[int], monkeypatch: pytest.MonkeyPatch, key: bytes | None
) -> None:
    """A launcher makes the TCP socket before the process runs: until then no Unix socket stands beside it."""
    made = sockets.listen(HERE)
    second = make_end(key=key, joins=False, rank=1)
    second.pump.call(second.stack.join, made[1])
    second.pump.handle()
    with monkeypatch.context() as patch:
        patch.setattr(sockets, "listen", lambda address: made)
        first = make_end(key=key, rank=0)
    both_in(first, second)
    assert roads == [TCP]
    assert len(down) == (key is None), (
        "under a key it is found before any stack knows of the first one"
    )
    assert opens(first, second)
    assert opens(second, first)
    assert second.top.problems == first.top.problems == []


@pytest.mark.parametrize("key", [None, KEY], ids=["open", "sealed"])
def test_the_near_road_is_looked_for_at_the_address_that_a_peer_greets_with(
    make_end: Ends, roads: list[int], monkeypatch: pytest.MonkeyPatch, key: bytes | None
) -> None:
    """It is reached at another one, too, which says nothing of its host."""
    listener, everywhere = sockets.listen("tcp:0.0.0.0:0", beyond=True)
    port = everywhere.rpartition(":")[2]
    with monkeypatch.context() as patch:
        patch.setattr(sockets, "listen", lambda address: (listener, f"tcp:127.0.0.1:{port}"))
        first = make_end(key=key)
    second = make_end(key=key, joins=False)
    second.pump.call(second.stack.join, f"tcp:127.0.0.2:{port}")
    both_in(first, second)
    assert roads[0] == TCP
    assert opens(first, second)
    assert opens(second, first)
    assert second.top.problems == first.top.problems == []
    assert "refused" not in str(first.logged + second.logged)


def test_a_peer_that_greets_with_what_leads_nowhere_is_linked_by_tcp(
    make_end: Ends, roads: list[int]
) -> None:
    """It may say any address."""
    second = make_end(joins=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp:127.0.0.1:{server.getsockname()[1]}"
        for said in (address, "tcp:127.0.0.1:no", "tcp:[::1", "sim:x", "unix:/x"):
            second.pump.call(second.stack.join, address)
            with server.accept()[0] as peer:
                second.pump.handle()
                peer.sendall(hello("group", said, 77))
                second.until(lambda: second.pump.failure or max(second.peers.values()) >= 0)
                assert second.pump.failure is None
            second.until(lambda: not second.peers)
    assert set(roads) == {TCP}


# By TCP, as if there were no other road.


def bound_first(name: str) -> socket.socket:
    """The name is taken; no connection can be made there."""
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(name)
    return sock


def crowded(name: str) -> socket.socket:
    """No connection more fits there."""
    sock = bound_first(name)
    sock.listen(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            waiting[-1].connect(name)
    return sock


def of_another_user(name: str) -> socket.socket:
    """The kernel keeps the user that the process has as it begins to listen."""
    sock = bound_first(name)
    os.seteuid(65534)
    try:
        sock.listen()
    finally:
        os.seteuid(0)
    return sock


waiting: list[socket.socket] = []
"""Connections that are not accepted."""


@pytest.mark.parametrize("takes", [bound_first, crowded, of_another_user])
def test_a_name_that_is_taken_leaves_tcp(
    make_end: Ends,
    roads: list[int],
    monkeypatch: pytest.MonkeyPatch,
    takes: Callable[[str], socket.socket],
) -> None:
    if takes is of_another_user and os.getuid() != 0:
        pytest.skip("only root can take another user's identity")
    taken: list[socket.socket] = []
    listen = near_road.listen

    def too_late(address: str) -> socket.socket | None:
        taken.append(takes(name_of(normal(address))))
        return listen(address)

    with contextlib.ExitStack() as opened:
        monkeypatch.setattr(near_road, "listen", too_late)
        first = make_end(key=KEY)
        monkeypatch.setattr(near_road, "listen", listen)
        for sock in (*taken, *waiting):
            opened.enter_context(sock)
        waiting.clear()
        join(first, make_end(key=KEY, joins=False))
        assert roads[0] == TCP
        if takes is of_another_user:
            taken[0].setblocking(False)
            with taken[0].accept()[0] as accepted:
                assert accepted.recv(1) == b"", "nothing was sent there"


@pytest.mark.parametrize(
    ("address", "shares_memory"), [(HERE, False), ("tcp:127.0.0.2:0", True)], ids=["alone", "far"]
)
def test_the_near_road_is_for_members_of_one_host_that_share_memory(
    make_end: Ends, roads: list[int], address: str, *, shares_memory: bool
) -> None:
    first = make_end(shares_memory=shares_memory)
    join(first, make_end(address, joins=False, shares_memory=shares_memory))
    assert set(roads) == {TCP}


def test_without_a_key_no_road_leads_beyond_loopback(make_end: Ends) -> None:
    """A near road to such an address says what TCP does."""
    stack = make_end().stack
    with pytest.raises(InsecureConfig, match="not on the loopback interface"):
        near_road.connect(stack, "tcp:192.0.2.1:7")


def test_without_a_key_none_leads_there_from_a_member_of_that_host_either() -> None:
    """It would be in a group that others reach without a key."""
    there, member = "tcp:192.0.2.1:7", SimpleNamespace(address="tcp:192.0.2.1:8")
    stack: Any = SimpleNamespace(me=member, alarm=object())
    with contextlib.closing(near_road.listen(there)) as listening:  # type: ignore[type-var]
        assert listening is not None
        with pytest.raises(InsecureConfig, match="not on the loopback interface"):
            near_road.connect(stack, there)
        near_road.connect(stack, there, beyond=True).close()


# Deaths.

PASSER = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect("\\0" + sys.argv[1])
    socket.send_fds(sock, [bytes.fromhex(sys.argv[2])], [os.pidfd_open(os.getpid())])
    input()
"""
"""Greets by the near road, and passes its process."""


@pytest.mark.parametrize(
    ("address", "is_certain"),
    [("tcp:127.0.0.1:7", True), ("tcp:127.0.0.2:7", False), ("unix:/x", False), ("", False)],
)
def test_a_death_is_certain_where_both_addresses_are_of_one_host(
    make_end: Ends, address: str, *, is_certain: bool
) -> None:
    """A member with another one, which is here all the same, grants no lease to those that have this one."""
    end = make_end()
    said = hello("group", address, 77).hex()
    command = [sys.executable, "-c", PASSER, name_of(end.address)[1:], said]
    with killed_at_the_end(subprocess.Popen(command, stdin=subprocess.PIPE)) as process:
        end.until(lambda: end.peers)
        process.kill()
        end.until(lambda: not end.peers)
        process.wait()
        end.until(lambda: dead or not is_certain)
        for _ in range(100):
            end.pump.handle()
    assert dead == ([77] if is_certain else [])


MEMBER = """
import sys
from tests.lib.end import End
end = End("tcp:127.0.0.1:0", bytes.fromhex(sys.argv[2]), joins=False, rank=1, shares_memory=True)
print(end.stack.me.incarnation, flush=True)
end.pump.call(end.stack.join, sys.argv[1])
end.pump.run_alone()
"""


def test_the_death_of_a_member_under_a_key_is_certain(make_end: Ends) -> None:
    """Its process came with the handshake, which is no frame yet."""
    end = make_end(key=KEY)
    command = [sys.executable, "-c", MEMBER, end.address, KEY.hex()]
    root = Path(__file__).parents[4]
    with killed_at_the_end(subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root)) as process:
        assert process.stdout
        incarnation = int(process.stdout.readline())
        end.until(lambda: end.top.installed and len(end.top.installed.members) == 2)
        process.send_signal(signal.SIGKILL)
        end.until(lambda: dead)
    assert dead == [incarnation]


def test_leases_are_granted_to_those_that_learn_of_deaths(make_end: Ends) -> None:
    given = {"key": KEY, "detection": 3_000_000_000}
    first, second = make_end(**given), make_end(**given, joins=False)
    join(first, second)
    incarnations = [end.stack.me.incarnation for end in (second, first)]
    together(first, second, holds=lambda: second.pump.heartbeat.leased(*incarnations)[0] != 0)
    lease, _ = second.pump.heartbeat.leased(*incarnations)
    assert lease == first.stack.lease


# As for other connections.


def test_a_partition_cuts_it(make_end: Ends) -> None:
    first, second = make_end(), make_end(joins=False)
    join(first, second)
    first.pump.call(lambda now: sever(first.pump, [second.address]))
    second.pump.call(second.stack.cast, Message(b"across"))
    for _ in range(200):
        first.pump.handle()
        second.pump.handle()
    assert b"across" not in first.top.bodies
    first.pump.call(lambda now: sever(first.pump, []))
    together(first, second, holds=lambda: b"across" in first.top.bodies)


def test_silent_connections_keep_no_process_out(make_end: Ends) -> None:
    end = make_end()
    with contextlib.ExitStack() as opened:
        silent = [opened.enter_context(connected(end)) for _ in range(3 * half_open.OF_ONE_SOURCE)]
        end.pump.handle()
        late = opened.enter_context(connected(end))
        late.sendall(hello("group", "", 77))
        end.until(lambda: end.has_answered(late))
        left = [sock for sock in silent if not end.is_closed(sock)]
        assert len(left) <= half_open.OF_ONE_SOURCE


def test_a_process_of_another_user_is_refused(make_end: Ends) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can take another user's identity")
    end = make_end()
    os.seteuid(65534)
    try:
        other = connected(end)
    finally:
        os.seteuid(0)
    with other:
        end.until(lambda: end.is_closed(other))
    assert "a process of user 65534" in str(end.logged)


def test_the_name_is_free_when_the_listener_is_closed(make_end: Ends) -> None:
    end = make_end(key=KEY)
    assert near_road.listen(end.address) is None
    end.pump.close_all()
    again = near_road.listen(end.address)
    assert again is not None
    again.close()


def test_a_name_has_the_address_that_others_use() -> None:
    """However it is written; a Unix socket has none beside it."""
    assert near_road.listen("unix:/x") is None
    listener = near_road.listen("tcp:[0:0::1]:7")
    assert listener is not None
    with listener:
        assert listener.getsockname() == name_of("tcp:[::1]:7").encode()
        assert near_road.takes_key(listener)
    tcp, _ = sockets.listen(HERE)
    with tcp, socket.socket(socket.AF_UNIX) as unix:
        assert near_road.takes_key(tcp)
        assert not near_road.takes_key(unix)


def test_keys_are_for_tcp_addresses(make_end: Ends, tmp_path: Path) -> None:
    """A pump that has some takes none of them on a Unix socket of a path, at either end."""
    first = make_end(f"unix:{tmp_path}/first", KEY)
    second = make_end(f"unix:{tmp_path}/second", joins=False)
    second.pump.keys = ring_of(KEY)
    join(first, second)
    plain = make_end(f"unix:{tmp_path}/third", joins=False)
    plain.pump.call(plain.stack.join, first.address)
    together(plain, first, second, holds=lambda: plain.top.installed)
    assert plain.top.installed
    assert len(plain.top.installed.members) == 3
