"""Which deaths are certain, and what is handed in before they are told (H13)."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orcalike.launcher.job import Job, Options
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers import processes, sockets
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.processes import Process
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

DEADLINE = 250.0
#: These fit a socket that is not read, and take two reads.
CASTS = [b"%1500d" % number for number in range(60)]

#: A member that casts without waiting for any other, and is killed with all of that under way.
SENDER = """
import os, signal, sys
from tests.unit.transport.drivers.test_processes import CASTS, End
from orcalike.transport.drivers.driver import clock
from orcalike.transport.wire.message import Message
end = End("{address}")
end.join("{seed}")
end.until(lambda: end.view)
print(end.member.incarnation, os.getpid(), flush=True)
how = sys.stdin.readline().strip()
if how == "fork":
    child = os.fork()
    if child == 0:
        signal.pause()
    print(child, flush=True)
if how == "mute":
    end.pump.heartbeat.close()
    print("mute", flush=True)
    sys.stdin.readline()
if how in ("kill", "fork"):
    for body in CASTS:
        end.pump.call(end.stack.cast, Message(body))
    end.pump.drain(clock() + 60_000_000_000)
    os.kill(os.getpid(), signal.SIGKILL)
end.pump.close_all()
print("closed", flush=True)
sys.stdin.readline()
"""


class Told(Stack):
    """A stack that keeps what it is told."""

    events: list[tuple[str, Any]]

    def link_down(self, link: int, why: str, now: int) -> None:
        peer = self.bottom.peer_at(link)
        self.events.append(("link_down", peer.incarnation if peer else None))
        super().link_down(link, why, now)

    def died(self, incarnation: int, now: int, lease: int = 0, age: int = 0) -> None:
        assert now <= clock()
        self.events.append(("died", incarnation))
        super().died(incarnation, now, lease, age)

    def heard(self, incarnation: int, when: int) -> None:
        assert when <= clock()
        self.events.append(("heard", incarnation))
        super().heard(incarnation, when)

    def lives(self, incarnation: int) -> None:
        self.events.append(("lives", incarnation))
        super().lives(incarnation)

    def expire(self, now: int) -> None:
        self.events.append(("expire", None))
        super().expire(now)


class Top(Layer):
    """What stands on top: it takes the casts."""

    def __init__(self, end: End) -> None:
        super().__init__(end.stack)
        self.end = end

    def up_view(self, view: View, cut: bytes) -> None:
        self.end.view = view

    def up_cast(self, message: Message) -> None:
        self.end.stack.events.append(("cast", bytes(message.body)))

    def up_problem(self, member: object, why: str) -> None:
        self.end.stack.events.append(("problem", why))

    def up_blocked(self, missing: tuple[Member, ...], rule: str) -> None:
        pass

    def up_exit(self, why: str) -> None:
        pass


class End:
    """One member: a stack and a pump, driven by the test's own thread."""

    def __init__(self, address: str, detection: int = 3_000_000_000) -> None:
        listener, address = sockets.listen(address)
        self.member = Member(address, secrets.randbits(64), None, witness=True)
        self.view: View | None = None
        layers = parse_stack(f"TOTAL:MBRSHIP:COM:{address.split(':')[0]}")
        # By default a busy machine is not to be taken for a silent member.
        config = StackConfig("g", {"resilience": 0}, time.time_ns() - clock(), detection)
        self.stack = Told(layers, config, self.member, 1)
        self.stack.events = []
        self.stack.above = Top(self)
        self.logged: list[str] = []
        self.pump = Pump(lambda level, text: self.logged.append(text))
        self.pump.stack_for = lambda group, address: self.stack
        self.pump.add(self.stack)
        self.pump.listen(listener)

    def join(self, address: str) -> None:
        self.pump.call(self.stack.join, address)

    def until(self, condition: Callable[[], object]) -> None:
        """Drive it until that holds."""
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, (self.stack.events[-5:], self.logged)
            self.pump.handle()
            time.sleep(0.001)

    def told(self, *kinds: str) -> list[tuple[str, Any]]:
        return [event for event in self.stack.events if event[0] in kinds]


Ends = Callable[..., End]


@pytest.fixture
def make_end() -> Iterator[Ends]:
    """Makes members, which are closed with the test, however that ends."""
    made: list[End] = []

    def make(address: str, *detection: int) -> End:
        made.append(End(address, *detection))
        return made[-1]

    yield make
    for end in made:
        end.pump.close_all()
    assert [end.pump.failure for end in made] == [None] * len(made)


@pytest.fixture
def end(make_end: Ends, tmp_path: Path, request: pytest.FixtureRequest) -> End:
    """The member that watches; it makes the group."""
    made = make_end(getattr(request, "param", f"unix:{tmp_path}/first"))
    made.join("")
    return made


class Sender:
    """A member in a process of its own."""

    def __init__(self, end: End, address: str) -> None:
        text = SENDER.replace("{address}", address).replace("{seed}", end.member.address)
        self.end = end
        self.process = subprocess.Popen(
            [sys.executable, "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=Path(__file__).parents[4],
        )

    def come_in(self) -> None:
        """Wait until it is a member."""
        self.end.until(lambda: self.end.view is not None and len(self.end.view.members) == 2)
        self.incarnation, self.pid = map(int, self.read().split())

    def read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def make_sender(tmp_path: Path) -> Iterator[Callable[[End], Sender]]:
    """Starts members in processes of their own, which are closed with the test, however that ends."""
    with contextlib.ExitStack() as stack:

        def make(end: End) -> Sender:
            tcp = end.member.address.startswith("tcp")
            made = Sender(end, "tcp:127.0.0.1:0" if tcp else f"unix:{tmp_path}/second")
            stack.callback(made.close)
            made.come_in()
            return made

        yield make


@pytest.fixture
def sender(end: End, make_sender: Callable[[End], Sender]) -> Sender:
    """A member that has joined, from a process of its own."""
    return make_sender(end)


@contextlib.contextmanager
def killed_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which does not outlive the block."""
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("seen", ["by itself", "with its end"])
def test_all_that_a_dead_member_sent_comes_before_its_death(
    end: End, sender: Sender, seen: str
) -> None:
    """Also if its end is seen in the same moment as all that it had sent."""
    sender.tell("kill")
    if seen == "with its end":
        os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
    end.until(lambda: end.told("died"))
    assert [body for _, body in end.told("cast")] == CASTS
    # Links that were made twice go down twice.
    first, *others = end.told("link_down", "died")
    assert (first, others[-1]) == (("link_down", sender.incarnation), ("died", sender.incarnation))
    assert end.stack.events[-1] == ("died", sender.incarnation)
    assert len(end.told("died")) == 1


def test_a_write_that_fails_loses_nothing_that_a_dead_member_sent(end: End, sender: Sender) -> None:
    """It fails before all of that was read."""
    sender.tell("kill")
    os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
    end.pump.call(end.stack.cast, Message(b"too late"))
    assert end.told("link_down")[0] == ("link_down", sender.incarnation)
    end.until(lambda: end.told("died"))
    assert [body for _, body in end.told("cast")] == [b"too late", *CASTS]


def test_a_child_that_holds_its_sockets_does_not_hide_its_death(end: End, sender: Sender) -> None:
    """No end of the stream is seen then."""
    sender.tell("fork")
    child = int(sender.read())
    try:
        end.until(lambda: end.told("died"))
        assert [body for _, body in end.told("cast")] == CASTS
        assert end.told("link_down", "died")[-2:] == [
            ("link_down", sender.incarnation),
            ("died", sender.incarnation),
        ]
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_closed_socket_is_no_death(end: End, sender: Sender) -> None:
    """The process lives on; when it ends, later, that is still told."""
    sender.tell("close")
    assert sender.read() == "closed\n"
    end.until(lambda: end.told("link_down"))
    for _ in range(100):
        end.pump.handle()
    assert end.told("died") == []
    sender.tell("end")
    end.until(lambda: end.told("died"))
    assert end.told("died") == [("died", sender.incarnation)]


def test_the_end_that_made_the_connection_knows_of_a_death_as_well(
    make_end: Ends, tmp_path: Path
) -> None:
    """Even if a third process, which lives on, made the listening socket (a launcher)."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{tmp_path}/launched")
    listener.listen(8)
    text = f"""
import socket, sys
from tests.unit.transport.drivers import test_processes
test_processes.sockets.listen = lambda address: (socket.socket(fileno={listener.fileno()}), address)
end = test_processes.End("unix:{tmp_path}/launched")
end.join("")
print(end.member.incarnation, flush=True)
end.pump.run_alone()
"""
    with (
        listener,
        killed_at_the_end(
            subprocess.Popen(
                [sys.executable, "-c", text],
                stdout=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                cwd=Path(__file__).parents[4],
            )
        ) as process,
    ):
        assert process.stdout
        incarnation = int(process.stdout.readline())
        listener.close()
        end = make_end(f"unix:{tmp_path}/joiner")
        end.join(f"unix:{tmp_path}/launched")
        end.until(lambda: end.view)
        process.kill()
        end.until(lambda: end.told("died"))
        assert end.told("died") == [("died", incarnation)]


@pytest.mark.parametrize("end", ["tcp:127.0.0.1:0"], indirect=True)
def test_over_tcp_nothing_is_certain_but_what_is_told(end: End, sender: Sender) -> None:
    sender.tell("kill")
    end.until(lambda: end.told("link_down"))
    sender.process.wait()
    for _ in range(100):
        end.pump.handle()
    assert end.told("died") == []
    end.pump.told_died(sender.incarnation)
    assert end.told("died") == [("died", sender.incarnation)]


def test_a_member_that_is_told_to_be_dead_is_heard_to_the_end_first(
    end: End, sender: Sender
) -> None:
    sender.tell("kill")
    os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
    end.pump.told_died(sender.incarnation)
    assert [body for _, body in end.told("cast")] == CASTS
    assert end.stack.events[-1] == ("died", sender.incarnation)
    assert end.told("link_down") == [("link_down", sender.incarnation)]


def test_many_late_processes_are_not_kept(end: End, tmp_path: Path) -> None:
    """Each link that came and went leaves its process watched, up to a bound."""

    def come_and_go(incarnation: int) -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(end.member.address.removeprefix("unix:"))
            pidfd = processes.own()
            socket.send_fds(sock, [greet(f"unix:{tmp_path}/{incarnation}", incarnation)], [pidfd])
            os.close(pidfd)
            end.until(lambda: peer_is_linked(end, incarnation))
        end.until(lambda: ("link_down", incarnation) in end.stack.events)

    def watched() -> int:
        return sum(processes.is_pidfd(int(fd)) for fd in os.listdir("/proc/self/fd"))

    gc.collect()  # what other tests have left
    before = watched()
    for number in range(100):
        come_and_go(1000 + number)
    assert before + 60 < watched() < before + 70


def greet(address: str, incarnation: int) -> bytes:
    """The greeting of an endpoint, as COM writes it."""
    config = StackConfig("g", {"resilience": 0})
    me = Member(address, incarnation, None, witness=True)
    stack = Stack(parse_stack("TOTAL:MBRSHIP:COM:unix"), config, me, 1)
    stack.link_up(1, "", 1)
    [(_, frame)] = stack.out.take()
    return bytes(frame)


def peer_is_linked(end: End, incarnation: int) -> bool:
    peers = (end.stack.bottom.peer_at(link) for link in range(64))
    return any(peer is not None and peer.incarnation == incarnation for peer in peers)


@pytest.mark.parametrize("passed", ["nothing", "no process", "several"])
def test_what_non_members_pass_is_not_believed(end: End, tmp_path: Path, passed: str) -> None:
    greeting = greet(f"unix:{tmp_path}/x", 77)
    reader, writer = os.pipe()
    os.write(writer, b"readable")
    given = {"nothing": [], "no process": [reader], "several": [reader] * 5}[passed]
    gc.collect()  # what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        socket.send_fds(sock, [greeting], given)
        end.until(lambda: peer_is_linked(end, 77))
        for _ in range(20):
            end.pump.handle()
        # The two ends of the connection, and this end's own process.
        assert len(os.listdir("/proc/self/fd")) <= before + 3
    end.until(lambda: end.told("link_down"))
    assert end.told("died") == []
    os.close(reader)
    os.close(writer)


# Lies about the process that greets.


def refusals(end: End) -> list[str]:
    return [text for text in end.logged if "refused" in text]


def is_shut(end: End, sock: socket.socket) -> bool:
    """Whether the other end, which the test drives, has closed it."""
    sock.setblocking(False)
    try:
        return sock.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("passed", ["nothing", "its own", "that of the member"])
def test_a_greeting_as_a_member_that_is_another_process_is_refused(
    end: End, sender: Sender, tmp_path: Path, passed: str
) -> None:
    """The connection ends, and nothing else: the member's own stands."""
    end.until(lambda: peer_is_linked(end, sender.incarnation))
    member = os.pidfd_open(sender.pid)
    own = processes.own()
    given = {"nothing": [], "its own": [own], "that of the member": [member]}[passed]
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        greeting = greet(f"unix:{tmp_path}/second", sender.incarnation)
        socket.send_fds(sock, [greeting], given)
        end.until(lambda: refusals(end))
        assert f"process {os.getpid()} greets as a member that is process {sender.pid}" in str(
            refusals(end)
        )
        end.until(lambda: is_shut(end, sock))
    os.close(own)
    os.close(member)
    assert end.told("problem", "link_down", "died") == []
    assert peer_is_linked(end, sender.incarnation)
    assert end.view is not None
    assert len(end.view.members) == 2
    sender.tell("kill")
    end.until(lambda: end.told("died"))
    assert end.told("died") == [("died", sender.incarnation)]


def test_an_answer_as_a_member_that_is_another_process_is_refused(
    end: End, sender: Sender, tmp_path: Path
) -> None:
    """The end that connects compares as well."""
    end.until(lambda: peer_is_linked(end, sender.incarnation))
    fake = f"unix:{tmp_path}/fake"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(fake.removeprefix("unix:"))
        listener.listen()
        end.pump.call(lambda now: end.stack.bottom.contact(Message(b""), fake))
        with listener.accept()[0] as sock:
            sock.sendall(greet(fake, sender.incarnation))
            end.until(lambda: refusals(end))
    assert f"greets as a member that is process {sender.pid}" in str(refusals(end))
    assert end.told("problem", "died") == []
    assert end.view is not None
    assert len(end.view.members) == 2


def test_a_greeting_with_the_descriptor_of_another_process_is_refused(
    end: End, sender: Sender, tmp_path: Path
) -> None:
    """It would be that one's end that is taken for the death of the peer."""
    member = os.pidfd_open(sender.pid)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        socket.send_fds(sock, [greet(f"unix:{tmp_path}/x", 77)], [member])
        end.until(lambda: refusals(end))
    os.close(member)
    assert f"greets with a descriptor of process {sender.pid}" in str(refusals(end))
    assert not peer_is_linked(end, 77)


def test_of_a_process_that_the_kernel_does_not_name_nothing_is_certain(
    end: End, tmp_path: Path
) -> None:
    """It connected before the listening socket was asked for senders: no lie, no certain death."""
    own = processes.own()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{tmp_path}/early")
    listener.listen()
    listener.setblocking(False)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(f"{tmp_path}/early")
        socket.send_fds(sock, [greet(f"unix:{tmp_path}/x", 77)], [own])
        end.pump.listen(listener)
        end.until(lambda: peer_is_linked(end, 77) or refusals(end))
    os.close(own)
    assert refusals(end) == []
    end.until(lambda: not peer_is_linked(end, 77))
    assert end.told("died") == []


def test_the_launcher_has_the_kernel_name_the_connecting_process_before_the_witness_runs() -> None:
    job = Job.create(Options(program="program.py", nprocs=2))
    try:
        job.listen()
        assert job.listener is not None
        assert job.listener.getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED)
        job.listener.close()
    finally:
        shutil.rmtree(job.directory)


def test_a_greeting_as_a_member_whose_process_has_ended_is_refused(
    end: End, sender: Sender, tmp_path: Path
) -> None:
    sender.tell("kill")
    end.until(lambda: end.told("died"))
    end.logged.clear()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(end.member.address.removeprefix("unix:"))
        socket.send_fds(sock, [greet(f"unix:{tmp_path}/second", sender.incarnation)], [])
        end.until(lambda: refusals(end))
    assert "whose process has ended" in str(refusals(end))


# Members that do not read.


def test_what_waits_for_a_member_to_read_it_is_bounded(end: End, sender: Sender) -> None:
    """It is stopped; with more than 128 MiB the connection ends."""
    end.until(lambda: peer_is_linked(end, sender.incarnation))
    stop(sender)

    def send(count: int) -> Callable[[int], None]:
        def input_(now: int) -> None:
            for _ in range(count):
                end.stack.bottom.send(Message(bytes(1 << 20)), (1,))

        return input_

    end.pump.call(send(100))
    assert end.told("link_down") == []
    end.pump.call(send(40))
    assert end.told("link_down") == [("link_down", sender.incarnation)]
    assert "it does not read what is sent to it" in str(end.logged)


# Heartbeats.


def test_a_stack_hears_of_its_heartbeat_peers_right_before_it_expires(
    end: End, make_end: Ends, tmp_path: Path
) -> None:
    other = make_end(f"unix:{tmp_path}/other")
    for one, two in ((end, other), (other, end)):
        one.stack.beats = (two.member,)
        one.stack.beats_version += 1
    other.pump.call(lambda now: None)  # any input will do

    def hears() -> bool:
        end.stack.events.clear()
        end.stack.top.deadline = 1
        end.until(lambda: end.told("expire"))
        end.stack.top.deadline = clock() + 3_600_000_000_000
        return bool(end.told("heard"))

    end.until(hears)
    assert end.told("heard", "expire")[:2] == [
        ("heard", other.member.incarnation),
        ("expire", None),
    ]
    assert other.pump.heartbeat.counts["taken"] > 0
    end.stack.beats = ()
    end.stack.beats_version += 1
    assert not hears()
    end.pump.call(lambda now: None)


@pytest.fixture
def quick(make_end: Ends, tmp_path: Path) -> End:
    """A member that makes a group, and suspects others soon."""
    made = make_end(f"unix:{tmp_path}/first", 200_000_000)
    made.join("")
    return made


@pytest.fixture
def of_quick(quick: End, make_sender: Callable[[End], Sender]) -> Sender:
    """A member that has joined it, from a process of its own."""
    return make_sender(quick)


def stop(sender: Sender) -> None:
    """Have its process stand still, as SIGSTOP does; meanwhile nothing is told to the member that watches."""
    sender.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, sender.process.pid, os.WSTOPPED | os.WNOWAIT)


def test_a_process_that_lives_is_not_suspected_for_its_silence(
    quick: End, of_quick: Sender
) -> None:
    """It beats no more and runs, as one does that gets no processor; then it is stopped."""
    of_quick.tell("mute")
    assert of_quick.read() == "mute\n"
    quick.until(lambda: len(quick.told("lives")) > 3)
    assert quick.told("lives")[0] == ("lives", of_quick.incarnation)
    assert quick.told("problem") == []
    stop(of_quick)
    quick.until(lambda: quick.told("problem"))
    assert quick.told("problem") == [("problem", "it is silent")]


def test_a_process_that_is_stopped_has_no_word_from_the_kernel(
    quick: End, of_quick: Sender
) -> None:
    quick.until(lambda: quick.told("heard"))
    stop(of_quick)
    quick.stack.events.clear()
    quick.until(lambda: quick.told("problem"))
    assert quick.told("lives") == []


@pytest.mark.usefixtures("of_quick")
def test_a_partition_stands_for_another_host(quick: End, tmp_path: Path) -> None:
    """`orcalike chaos partition` cuts processes apart that live; the kernel is not asked."""
    quick.pump.call(lambda now: quick.pump.sever([f"unix:{tmp_path}/second"]))
    quick.stack.events.clear()
    quick.until(lambda: quick.told("problem"))
    assert quick.told("lives") == []


# The parts.


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits."""
    waiting = [sys.executable, "-c", "input()"]
    with killed_at_the_end(subprocess.Popen(waiting, stdin=subprocess.PIPE)) as process:
        yield process


def test_whether_a_process_runs(child: subprocess.Popen[bytes]) -> None:
    process = Process(os.pidfd_open(child.pid), Stack.__new__(Stack), 1)
    assert process.runs()
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert not process.runs()
    child.send_signal(signal.SIGCONT)
    os.waitid(os.P_PID, child.pid, os.WCONTINUED)
    assert process.runs()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process.runs()
    child.wait()
    assert not process.runs()
    process.close()
    with Path(os.devnull).open() as file:
        assert not Process(file.fileno(), Stack.__new__(Stack), 1).runs()


def test_a_process_is_watched_until_it_ends(child: subprocess.Popen[bytes]) -> None:
    process = Process(os.pidfd_open(child.pid), Stack.__new__(Stack), 1)
    assert processes.is_pidfd(process.fd)
    assert not process.has_ended()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.has_ended()
    child.wait()
    assert process.has_ended()
    process.close()
    assert not processes.is_pidfd(process.fd)
