"""Heartbeats: to which members, what is believed, and what no program can stop (A45, G13, G14)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from orcalike.errors import OrcalikeError
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.drivers import addresses, sockets
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.heartbeat import Heartbeat
from orcalike.transport.view import Member
from tests.lib.processes import state_of, until

#: How long anything may take; no test passes or fails by less.
DEADLINE = 250.0
PERIOD = 5_000_000
#: Of an endpoint that need not beat while a test looks.
NEVER = 3_600_000_000_000
BEAT, ANSWER = 1, 2
ROOT = Path(__file__).parents[4]
LAYOUT = struct.Struct("<4sBBxxQQQQQQ")


def pack(
    target: int,
    *,
    sender: int = 1,
    group: str = "g",
    sent: int = 1,
    echo: int = 0,
    kind: int = BEAT,
    lease: int = 0,
) -> bytes:
    """A beat as it is on the wire."""
    hashed = int.from_bytes(blake2b(group.encode(), digest_size=8).digest(), "little")
    return LAYOUT.pack(b"Oocb", 2, kind, hashed, sender, target, sent, echo, lease)


class End:
    """One endpoint with a heartbeat of its own."""

    def __init__(self, address: str) -> None:
        self.listener, address = sockets.listen(address)
        self.member = Member(address, secrets.randbits(64), 0)
        self.heartbeat = Heartbeat()
        self.heartbeat.listen(sockets.datagrams_beside(self.listener))

    def beat(self, *others: Member, period: int = PERIOD, group: str = "g") -> None:
        self.heartbeat.beat(self.member.incarnation, group, period, others)

    def heard(self, other: End) -> int:
        """When it was last in contact with the other; 0 for never."""
        return dict(self.heartbeat.heard(self.member.incarnation)).get(other.member.incarnation, 0)

    def heard_from(self, incarnation: int) -> int:
        """The same for any member."""
        return dict(self.heartbeat.heard(self.member.incarnation)).get(incarnation, 0)

    def until_taken(self, count: int) -> None:
        """Wait until so many beats were taken."""
        until(lambda: self.count("taken") == count)

    def count(self, name: str) -> int:
        return self.heartbeat.counts[name]

    def close(self) -> None:
        self.heartbeat.close()
        self.listener.close()


Ends = Callable[[], End]


@pytest.fixture(params=["unix", "tcp", "tcp6"])
def make_end(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ends]:
    made: list[End] = []

    def make() -> End:
        address = {"unix": f"unix:{tmp_path}/{len(made)}", "tcp": "tcp:127.0.0.1:0"}
        made.append(End(address.get(request.param, "tcp:[::1]:0")))
        return made[-1]

    yield make
    for end in made:
        end.close()


@pytest.fixture
def end(tmp_path: Path) -> Iterator[End]:
    """An endpoint on a Unix socket."""
    made = End(f"unix:{tmp_path}/end")
    yield made
    made.close()


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[socket.socket]:
    """A datagram socket that a test reads and writes by hand, where `unix:.../raw` takes beats."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"{tmp_path}/raw~")
        sock.settimeout(DEADLINE)
        yield sock


def member_at(raw: socket.socket, incarnation: int = 1) -> Member:
    return Member(f"unix:{raw.getsockname().removesuffix('~')}", incarnation, 1)


def path_of(end: End) -> str:
    return end.member.address.removeprefix("unix:") + "~"


def test_two_members_are_in_contact_and_stay_so(make_end: Ends) -> None:
    one, two = make_end(), make_end()
    began = clock()
    one.beat(two.member)
    two.beat(one.member)
    until(lambda: one.heard(two) and two.heard(one))
    seen = one.heard(two)
    assert began < seen <= clock()
    until(lambda: one.heard(two) > seen and two.heard(one) > seen)


def test_a_member_that_knows_no_view_answers(make_end: Ends) -> None:
    """A program may keep the interpreter lock, and its endpoint the old view, for long."""
    one, two = make_end(), make_end()
    two.beat(Member("", 7, 2), period=NEVER)
    one.beat(two.member)
    until(lambda: one.heard(two))
    one.beat()  # no more, so that what the other one counts comes to an end
    until(lambda: two.count("sent") == two.count("answered") > 0)
    assert one.count("answered") == 0
    assert two.heartbeat.heard(two.member.incarnation) == []


def test_one_direction_cut_ends_contact_at_both(make_end: Ends) -> None:
    mute, deaf = make_end(), make_end()
    mute.beat(deaf.member)
    deaf.beat(mute.member)
    until(lambda: mute.heard(deaf) and deaf.heard(mute))
    mute.beat(Member("", deaf.member.incarnation, 0))

    def receive_more() -> None:
        taken = mute.count("taken")
        until(lambda: mute.count("taken") > taken + 20)

    receive_more()  # what was under way has arrived: beats come through one way, and not the other
    before = mute.heard(deaf), deaf.heard(mute)
    receive_more()
    assert (mute.heard(deaf), deaf.heard(mute)) == before
    mute.beat(deaf.member)
    until(lambda: mute.heard(deaf) > before[0] and deaf.heard(mute) > before[1])


def test_contact_is_known_up_to_the_echo_and_one_period(end: End, raw: socket.socket) -> None:
    me = end.member.incarnation
    end.beat(member_at(raw), period=NEVER)
    beat = LAYOUT.unpack(raw.recv(100))
    assert beat[1:6] == (2, BEAT, *LAYOUT.unpack(pack(0))[3:4], me, 1)
    assert beat[7] == 0
    raw.sendto(pack(me, sent=100), path_of(end))  # it has heard nothing from this end
    until(lambda: end.count("taken") == 1)
    assert end.heartbeat.heard(me) == []
    end.beat(member_at(raw), period=50)
    raw.sendto(pack(me, sent=101, echo=beat[6]), path_of(end))
    until(lambda: end.count("taken") == 2)
    assert end.heartbeat.heard(me) == [(1, beat[6] + 50)]
    end.beat(member_at(raw), period=NEVER)
    before = clock()
    raw.sendto(pack(me, sent=102, echo=beat[6]), path_of(end))
    until(lambda: end.count("taken") == 3)
    [(_, known)] = end.heartbeat.heard(me)
    assert before < known <= clock()


def test_a_beat_echoes_the_latest_that_came(end: End, raw: socket.socket) -> None:
    me = end.member.incarnation
    end.beat(member_at(raw))
    raw.sendto(pack(me, sent=41), path_of(end))
    raw.sendto(pack(me, sent=42), path_of(end))
    raw.sendto(pack(me, sent=40), path_of(end))
    until(lambda: end.count("stale") == 1)
    until(lambda: LAYOUT.unpack(raw.recv(100))[7] == 42)
    assert end.count("taken") == 2


def test_a_beat_grants_a_lease_only_after_contact(end: End, raw: socket.socket) -> None:
    me, group = end.member.incarnation, "g"
    other = member_at(raw)
    granted = end.heartbeat.beat(me, group, NEVER, [other], lease=7, window=NEVER)
    first = LAYOUT.unpack(raw.recv(100))
    assert (first[8], granted) == (0, []), "there was no contact yet"
    raw.sendto(pack(me, sent=100, echo=first[6]), path_of(end))
    until(lambda: end.count("taken") == 1)
    before = clock()
    end.heartbeat.beat(me, group, NEVER, [other], lease=8, window=NEVER)
    assert LAYOUT.unpack(raw.recv(100))[8] == 8, "a new lease goes out at once"
    [(incarnation, when)] = end.heartbeat.beat(me, group, NEVER, [other])
    assert incarnation == other.incarnation
    assert before <= when <= clock()
    end.heartbeat.beat(me, group, NEVER, [other], lease=9, window=0)
    assert LAYOUT.unpack(raw.recv(100))[8] == 0, "the contact is older than the window"


def test_a_lease_is_known_with_the_beat_that_it_answers(end: End, raw: socket.socket) -> None:
    me, other = end.member.incarnation, member_at(raw)
    end.beat(other, period=NEVER)
    assert end.heartbeat.leased(me, other.incarnation) == (0, 0)
    sent = LAYOUT.unpack(raw.recv(100))[6]
    raw.sendto(pack(me, sent=100, lease=7), path_of(end))
    raw.sendto(pack(me, sent=101, echo=sent, lease=8), path_of(end))
    raw.sendto(pack(me, sent=102, echo=sent), path_of(end))
    until(lambda: end.count("taken") == 3)
    assert end.heartbeat.leased(me, other.incarnation) == (8, sent)


def test_no_lease_comes_from_or_goes_to_a_member_that_is_cut_off(
    end: End, raw: socket.socket
) -> None:
    me, other = end.member.incarnation, member_at(raw)
    end.beat(other, period=NEVER)
    sent = LAYOUT.unpack(raw.recv(100))[6]
    raw.sendto(pack(me, sent=100, echo=sent), path_of(end))
    until(lambda: end.count("taken") == 1)
    end.heartbeat.beat(me, "g", PERIOD, [other], lease=7, window=NEVER, cut=[other])
    before = end.count("sent")
    raw.sendto(pack(me, sent=101, echo=sent, lease=8), path_of(end))
    until(lambda: end.count("target") == 1)
    assert end.heartbeat.leased(me, other.incarnation) == (0, 0)
    assert end.count("sent") == before
    assert end.heartbeat.beat(me, "g", PERIOD, [other], cut=[other]) == []


def test_an_answer_is_for_the_member_that_it_answers(end: End, raw: socket.socket) -> None:
    me = end.member.incarnation
    end.beat(Member("", 7, 2), period=NEVER)
    raw.sendto(pack(me, sent=99), path_of(end))
    answer = LAYOUT.unpack(raw.recv(100))
    assert (answer[2], answer[4:6], answer[7]) == (ANSWER, (me, 1), 99)
    raw.sendto(pack(me, sent=99, kind=ANSWER), path_of(end))
    until(lambda: end.count("target") == 1)
    assert (end.count("sent"), end.count("answered")) == (1, 1)


def test_what_is_not_for_this_endpoint_is_dropped(end: End, raw: socket.socket) -> None:
    me = end.member.incarnation
    end.beat(member_at(raw), period=NEVER)
    raw.recv(100)
    good = pack(me, sent=5)
    other_version = bytearray(good)
    other_version[4] = 1
    wrong = {
        "size": [b"", good[:-1], good + b"\0", bytes(60_000)],
        "header": [b"x" + good[1:], bytes(other_version), pack(me, kind=3), pack(me, kind=0)],
        "target": [pack(me ^ 1), pack(me, group="h"), pack(me, sender=9, kind=ANSWER)],
        "stale": [pack(me, sent=0), pack(me, echo=1 << 63), pack(me, echo=clock() + NEVER)],
    }
    for name, datagrams in wrong.items():
        for datagram in datagrams:
            raw.sendto(datagram, path_of(end))
        while end.count(name) < len(datagrams):
            time.sleep(0.001)
        assert end.count(name) == len(datagrams)
    assert (end.count("taken"), end.count("answered"), end.count("sent")) == (0, 0, 1)
    raw.sendto(good, path_of(end))
    until(lambda: end.count("taken") == 1)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(
        st.binary(max_size=200),
        st.tuples(st.binary(max_size=3), st.integers(0, LAYOUT.size - 1), st.integers(0, 255)),
    )
)
@example(b"")
def test_no_datagram_harms(
    fuzzed: tuple[End, socket.socket], change: bytes | tuple[bytes, int, int]
) -> None:
    """Random ones, and good ones with a byte changed and some more added: each is counted once."""
    end, raw = fuzzed
    datagram = bytearray(pack(end.member.incarnation, sent=clock()))
    if isinstance(change, bytes):
        datagram[:] = change
    else:
        more, where, value = change
        datagram[where] = value
        datagram += more
    before = end.heartbeat.counts
    raw.sendto(bytes(datagram), path_of(end))
    kinds = ("taken", "answered", "size", "header", "target", "stale")
    until(lambda: sum(end.count(kind) - before[kind] for kind in kinds) == 1)
    if len(datagram) != LAYOUT.size:
        assert end.count("size") == before["size"] + 1
    if end.count("answered") > before["answered"]:
        raw.recv(100)


@pytest.fixture
def fuzzed(end: End, raw: socket.socket) -> tuple[End, socket.socket]:
    """An endpoint that can reach none of its peers, and the socket that sends to it."""
    end.beat(Member("", 1, 1), period=NEVER)
    return end, raw


def test_an_endpoint_without_heartbeat_peers_sends_no_beats(end: End, raw: socket.socket) -> None:
    end.beat(member_at(raw))
    raw.recv(100)
    end.beat()
    raw.setblocking(False)
    sent = end.count("sent")
    with contextlib.suppress(BlockingIOError):
        while True:
            raw.recv(100)
    raw.sendto(pack(end.member.incarnation), path_of(end))
    until(lambda: end.count("target") == 1)
    assert end.count("sent") == sent
    assert end.heartbeat.heard(end.member.incarnation) == []


def test_an_endpoint_that_is_to_be_let_in_answers(make_end: Ends) -> None:
    """Its own thread may be long in learning that it is a member: others send it heartbeats already."""
    one, two = make_end(), make_end()
    two.heartbeat.answer(two.member.incarnation, "g")
    one.beat(two.member)
    until(lambda: one.heard(two))
    two.beat(one.member)
    until(lambda: two.heard(one))
    two.beat()
    taken = two.count("taken")
    until(lambda: two.count("target") > 0)
    assert two.count("taken") == taken


def test_one_without_a_socket_has_no_thread() -> None:
    heartbeat = Heartbeat()
    threads = len(os.listdir("/proc/self/task"))
    heartbeat.answer(1, "g")
    assert len(os.listdir("/proc/self/task")) == threads
    heartbeat.close()


def test_silence_counts_from_when_a_member_is_beaten_to(end: End, raw: socket.socket) -> None:
    me = end.member.incarnation
    assert end.heartbeat.excuses(me) == []
    before = clock()
    end.beat(member_at(raw), period=NEVER)
    [(peer, until_)] = end.heartbeat.excuses(me)
    assert peer == 1
    assert before < until_ < clock()
    end.beat(member_at(raw), Member("", 2, 2), period=NEVER)
    excuses = dict(end.heartbeat.excuses(me))
    assert excuses[1] == until_ < excuses[2], "what is known of members that stay is kept"
    raw.sendto(pack(me, sent=1, echo=clock()), path_of(end))
    end.until_taken(1)
    assert dict(end.heartbeat.excuses(me))[1] == end.heard_from(1) > until_


STANDSTILL = """
import sys, time
from tests.unit.transport.drivers.test_heartbeat import End, PERIOD
from orcalike.transport.view import Member
end = End(sys.argv[1])
end.beat(Member(sys.argv[2], 1, 1), period=PERIOD)
print(end.member.incarnation, flush=True)
sys.stdin.readline()
print(dict(end.heartbeat.excuses(end.member.incarnation))[1], end.heard_from(1), flush=True)
"""


def test_what_a_thread_was_late_itself_is_not_held_against_others(
    raw: socket.socket, tmp_path: Path
) -> None:
    """It stood still for a while, and so nothing was beaten to, and nothing could be heard."""
    seconds = 0.3
    command = [sys.executable, "-c", STANDSTILL, f"unix:{tmp_path}/other", f"unix:{tmp_path}/raw"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdin
        assert process.stdout
        me = int(process.stdout.readline())
        first = LAYOUT.unpack(raw.recv(100))
        raw.sendto(pack(me, echo=first[6]), f"{tmp_path}/other~")
        until(lambda: LAYOUT.unpack(raw.recv(100))[7] == 1)
        process.send_signal(signal.SIGSTOP)
        until(lambda: state_of(process.pid) == "T")
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        excused, heard = map(int, process.stdout.readline().split())
    assert excused - heard > (seconds - 0.05) * 1e9


def test_what_is_known_of_members_that_stay_is_kept(make_end: Ends) -> None:
    one, two = make_end(), make_end()
    two.beat(one.member)
    one.beat(two.member)
    until(lambda: one.heard(two))
    two.beat()
    known = one.heard(two)
    one.beat(Member("", 5, 5), two.member)
    assert one.heard(two) >= known > 0


def test_several_endpoints_share_a_thread(end: End, raw: socket.socket) -> None:
    """A witness has a stack for each group."""
    for number in range(1, 65):
        end.heartbeat.beat(number, f"group {number}", PERIOD, [member_at(raw, 1000 + number)])
    senders: set[int] = set()
    while len(senders) < 64:  # the socket's queue is much shorter
        senders.add(LAYOUT.unpack(raw.recv(100))[4])
    raw.sendto(pack(64, sender=1064, group="group 64"), path_of(end))
    raw.sendto(pack(64, sender=1064, group="group 63"), path_of(end))
    until(lambda: end.count("target") and end.count("taken"))
    assert (end.count("target"), end.count("taken")) == (1, 1)


def test_there_are_bounds(end: End) -> None:
    with pytest.raises(ValueError, match="1025 members"):
        end.beat(*[Member("", number, 0) for number in range(MEMBERS_MAX + 1)])
    with pytest.raises(ValueError, match="each 0 ns"):
        end.beat(end.member, period=0)
    most = [Member("", number, 0) for number in range(MEMBERS_MAX)]
    end.beat(*most, period=NEVER)
    for number in range(255):
        end.heartbeat.beat(number, "g", NEVER, most[:1])
    with pytest.raises(OrcalikeError, match="256 endpoints"):
        end.heartbeat.beat(999, "g", NEVER, most[:1])
    end.heartbeat.beat(0, "g", NEVER, [])
    end.heartbeat.beat(999, "g", NEVER, most[:1])
    for _ in range(3):
        end.heartbeat.listen(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    with pytest.raises(OrcalikeError, match="4 sockets"):
        end.heartbeat.listen(end.listener)


def test_a_full_receiver_delays_no_other(end: End, raw: socket.socket, tmp_path: Path) -> None:
    other = End(f"unix:{tmp_path}/other")
    try:
        other.beat(end.member)
        end.beat(member_at(raw), other.member, period=1_000_000)
        until(lambda: end.count("unsent") > 3)  # the socket's queue is short, and is not read
        taken, unsent = other.count("taken"), end.count("unsent")
        until(lambda: other.count("taken") > taken + 20)
        assert end.count("unsent") > unsent
    finally:
        other.close()


# What a program cannot stop.


def test_beats_go_on_while_the_interpreter_lock_is_held(end: End, raw: socket.socket) -> None:
    end.beat(member_at(raw))
    raw.recv(100)
    usleep = ctypes.PyDLL(None).usleep  # which keeps the lock

    def sent_while_locked() -> int:
        before = end.count("sent") + end.count("unsent")
        usleep(1_000_000)
        return end.count("sent") + end.count("unsent") - before

    # 200 are due, and fewer leave on a busy machine; without a thread that needs no lock none would.
    until(lambda: sent_while_locked() > 20)


def test_a_process_beats_that_keeps_its_lock(end: End, tmp_path: Path) -> None:
    """It never runs a line of Python again, and is in contact all the same."""
    script = f"""
import ctypes, sys
from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.heartbeat import Heartbeat
from orcalike.transport.view import Member
listener, address = sockets.listen("unix:{tmp_path}/child")
heartbeat = Heartbeat()
heartbeat.listen(sockets.datagrams_beside(listener))
heartbeat.beat(5, "g", {PERIOD}, [Member({end.member.address!r}, {end.member.incarnation}, 0)])
print("ready", flush=True)
ctypes.PyDLL(None).pause()
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout
    try:
        assert child.stdout.readline() == b"ready\n"
        end.beat(Member(f"unix:{tmp_path}/child", 5, 1))

        def heard() -> int:
            return dict(end.heartbeat.heard(end.member.incarnation)).get(5, 0)

        until(heard)
        seen = heard()
        until(lambda: heard() > seen + 100 * PERIOD)
        child.send_signal(signal.SIGSTOP)  # a process that does not run is in no contact
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        stopped = clock()
        until(lambda: clock() > stopped + 20 * PERIOD)
        assert heard() <= stopped + PERIOD  # an echo stands for one period
        child.send_signal(signal.SIGCONT)
        until(lambda: heard() > stopped)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_signals_are_for_pythons_own_threads(end: End, raw: socket.socket) -> None:
    end.beat(member_at(raw))
    raw.recv(100)
    blocked = [
        int(line.split()[1], 16)
        for task in Path("/proc/self/task").iterdir()
        for line in (task / "status").read_text().splitlines()
        if line.startswith("SigBlk") and int(task.name) != os.getpid()
    ]
    assert [mask for mask in blocked if mask >> (signal.SIGINT - 1) & 1]


def test_a_forked_child_has_no_thread_and_does_not_hang(end: End, raw: socket.socket) -> None:
    end.beat(member_at(raw), period=1_000_000)
    raw.recv(100)
    child = os.fork()
    if child == 0:
        try:
            end.beat(member_at(raw, 2))
            found = end.heartbeat.heard(end.member.incarnation)
            end.heartbeat.close()
            tasks = len(os.listdir("/proc/self/task"))
            os._exit(0 if found == [] and tasks == 1 and Path(path_of(end)).exists() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    raw.recv(100)  # the parent's beats on
    assert Path(path_of(end)).exists()


def test_no_heartbeat_peers_need_no_thread(end: End) -> None:
    before = set(os.listdir("/proc/self/task"))
    end.beat()
    assert set(os.listdir("/proc/self/task")) <= before
    end.beat(Member("", 1, 1), period=NEVER)
    [thread] = set(os.listdir("/proc/self/task")) - before
    end.close()
    assert thread not in os.listdir("/proc/self/task")


# Its sockets.


def test_the_file_is_private_and_removed(tmp_path: Path) -> None:
    end = End(f"unix:{tmp_path}/a")
    path = Path(path_of(end))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    end.close()
    assert not path.exists()
    with sockets.listen(f"unix:{tmp_path}/a")[0] as listener:
        path.touch()
        with pytest.raises(OrcalikeError, match=r"heartbeats at .*a~: Address already in use"):
            sockets.datagrams_beside(listener)
        path.unlink()
        sockets.datagrams_beside(listener).close()
        assert path.is_socket()  # as one that was killed leaves it behind
        sockets.close_datagrams(sockets.datagrams_beside(listener))
        assert not path.exists()


def test_addresses_that_take_no_datagrams() -> None:
    family = struct.pack("=H", socket.AF_UNIX)
    assert addresses.datagram_address("unix:/a/b") == family + b"/a/b~\0"
    longest = "/" + "x" * (addresses.UNIX_PATH_MAX - 1)
    assert len(addresses.datagram_address(f"unix:{longest}")) == 110
    for address in ("", f"unix:{longest}x", "unix:/a\0b", "sim:1", "tcp:10.0.0.1:5", "tcp:x:5"):
        assert addresses.datagram_address(address) == b""
    with pytest.raises(OrcalikeError, match="longer than 106 bytes"):
        sockets.listen(f"unix:{longest}x")
