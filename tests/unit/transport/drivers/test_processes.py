"""Which deaths are certain, and what is handed in before a stack is notified of them (H13)."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orcalike.transport.drivers import peer_processes, pidfd
from orcalike.transport.drivers.driver import clock
from orcalike.transport.drivers.heartbeat_report import unleased
from orcalike.transport.drivers.partition import sever
from orcalike.transport.drivers.pidfd import Process
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message
from tests.lib.member_process import (
    CASTS,
    End,
    Ends,
    Sender,
    greet,
    killed_at_the_end,
    peer_is_linked,
    stop,
)
from tests.lib.processes import until


@pytest.mark.parametrize("seen", ["by itself", "with its end"])
def test_all_that_a_dead_member_sent_comes_before_its_death(
    end: End, sender: Sender, seen: str
) -> None:
    """Also if its end is seen in the same moment as all that it had sent."""
    sender.tell("kill")
    if seen == "with its end":
        os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
    end.until(lambda: end.events_of("died"))
    assert [body for _, body in end.events_of("cast")] == CASTS
    # Links that were made twice go down twice.
    first, *others = end.events_of("link_down", "died")
    assert (first, others[-1]) == (("link_down", sender.incarnation), ("died", sender.incarnation))
    # Its own deadline may follow.
    assert end.events_of("cast", "link_down", "died")[-1] == ("died", sender.incarnation)
    assert len(end.events_of("died")) == 1


def test_a_write_that_fails_loses_nothing_that_a_dead_member_sent(end: End, sender: Sender) -> None:
    """It fails before all of that was read."""
    sender.tell("kill")
    os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
    end.pump.call(end.stack.cast, Message(b"too late"))
    assert end.events_of("link_down")[0] == ("link_down", sender.incarnation)
    end.until(lambda: end.events_of("died"))
    assert [body for _, body in end.events_of("cast")] == [b"too late", *CASTS]


def test_a_child_that_holds_its_sockets_does_not_hide_its_death(end: End, sender: Sender) -> None:
    """No end of the stream is seen then."""
    sender.tell("fork")
    child = int(sender.read())
    try:
        end.until(lambda: end.events_of("died"))
        assert [body for _, body in end.events_of("cast")] == CASTS
        assert end.events_of("link_down", "died")[-2:] == [
            ("link_down", sender.incarnation),
            ("died", sender.incarnation),
        ]
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_closed_socket_is_no_death(end: End, sender: Sender) -> None:
    """The process lives on; when it ends, later, the stack is still notified."""
    sender.tell("close")
    assert sender.read() == "closed\n"
    end.until(lambda: end.events_of("link_down"))
    for _ in range(100):
        end.pump.handle()
    assert end.events_of("died") == []
    sender.tell("end")
    end.until(lambda: end.events_of("died"))
    assert end.events_of("died") == [("died", sender.incarnation)]


def test_the_end_that_made_the_connection_knows_of_a_death_as_well(
    make_end: Ends, tmp_path: Path
) -> None:
    """Even if a third process, which lives on, made the listening socket (a launcher)."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{tmp_path}/launched")
    listener.listen(8)
    text = f"""
import socket, sys
from tests.lib import member_process
member_process.sockets.listen = lambda address: (socket.socket(fileno={listener.fileno()}), address)
end = member_process.End("unix:{tmp_path}/launched")
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
        end.until(lambda: end.events_of("died"))
        assert end.events_of("died") == [("died", incarnation)]


def test_one_that_has_ended_before_its_greeting_was_read_is_dead(end: End, tmp_path: Path) -> None:
    """It was waited for, too, so that its pidfd has no number any more."""
    text = f"""
import socket
from orcalike.transport.drivers import pidfd
from tests.lib.member_process import greet
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect({end.member.address.removeprefix("unix:")!r})
    socket.send_fds(sock, [greet("unix:{tmp_path}/other", 1_000)], [pidfd.own()])
"""
    subprocess.run([sys.executable, "-c", text], cwd=Path(__file__).parents[4], check=True)
    end.until(lambda: end.events_of("link_down"))
    for _ in range(100):
        end.pump.handle()
    assert end.events_of("link_down", "died") == [("link_down", 1_000), ("died", 1_000)]


@pytest.mark.parametrize("end", ["tcp:127.0.0.1:0"], indirect=True)
def test_over_tcp_nothing_is_certain_but_what_is_reported(end: End, sender: Sender) -> None:
    sender.tell("kill")
    end.until(lambda: end.events_of("link_down"))
    sender.process.wait()
    for _ in range(100):
        end.pump.handle()
    assert end.events_of("died") == []
    end.pump.report_death(sender.incarnation)
    assert end.events_of("died") == [("died", sender.incarnation)]


def test_a_member_that_is_reported_dead_is_heard_to_the_end_first(end: End, sender: Sender) -> None:
    sender.tell("kill")
    os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
    end.pump.report_death(sender.incarnation)
    assert [body for _, body in end.events_of("cast")] == CASTS
    # Its own deadline may follow.
    assert end.events_of("cast", "link_down", "died")[-1] == ("died", sender.incarnation)
    assert end.events_of("link_down") == [("link_down", sender.incarnation)]


def test_a_member_of_another_host_that_is_said_to_be_gone_is_suspected_at_once(
    end: End, sender: Sender
) -> None:
    """What has come from it is handed in first; the word is never certain."""
    sender.tell("kill")
    os.waitid(os.P_PID, sender.pid, os.WEXITED | os.WNOWAIT)
    end.pump.report_gone(sender.incarnation)
    assert [body for _, body in end.events_of("cast")] == CASTS
    assert end.events_of("link_down", "died") == [("link_down", sender.incarnation)]


def test_one_that_is_said_to_be_gone_may_live(end: End, sender: Sender) -> None:
    end.until(lambda: peer_is_linked(end, sender.incarnation))
    stop(sender)
    end.pump.report_gone(sender.incarnation)
    assert end.events_of("link_down", "died") == [("link_down", sender.incarnation)]
    assert end.events_of("problem") == [("problem", "a launcher says that its process is gone")]


def test_no_death_is_certain_on_another_host(
    end: End, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the launcher says so there."""
    monkeypatch.setattr(peer_processes, "share_host", lambda one, other: False)
    end.pump.report_death(sender.incarnation)
    assert end.events_of("link_down") == [("link_down", sender.incarnation)]
    assert end.events_of("died") == []


def test_leases_are_granted_to_members_that_can_be_certain() -> None:
    """On this host, by Unix sockets, by the near road, or by a launcher's word."""

    def leased(own: str, *addresses: str, informed: bool) -> list[str]:
        members = [Member(address, number) for number, address in enumerate(addresses)]
        without = unleased(own, members, informed)
        return [member.address for member in members if member not in without]

    assert leased("unix:/a", "unix:/b", "tcp:127.0.0.1:2", informed=False) == ["unix:/b"]
    here, there = "tcp:10.0.0.1:2", "tcp:10.0.0.2:2"
    assert leased("tcp:10.0.0.1:1", here, there, informed=False) == []
    assert leased("tcp:10.0.0.1:1", here, there, informed=True) == [here]
    assert leased("tcp:[fd00::1]:1", "tcp:[fd00::1]:2", informed=True) == ["tcp:[fd00::1]:2"]
    members = [Member("unix:/b", 1), Member("unix:/c", 2)]
    assert unleased("unix:/a", members, False, (2,)) == members[1:], "as the stack says"


def test_many_late_processes_are_not_kept(end: End, tmp_path: Path) -> None:
    """Each link that came and went leaves its process watched, up to a bound."""

    def come_and_go(incarnation: int) -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(end.member.address.removeprefix("unix:"))
            own = pidfd.own()
            socket.send_fds(sock, [greet(f"unix:{tmp_path}/{incarnation}", incarnation)], [own])
            os.close(own)
            end.until(lambda: peer_is_linked(end, incarnation))
        end.until(lambda: ("link_down", incarnation) in end.stack.events)

    def watched() -> int:
        return sum(pidfd.is_pidfd(int(fd)) for fd in os.listdir("/proc/self/fd"))

    gc.collect()  # what other tests have left
    before = watched()
    for number in range(100):
        come_and_go(1000 + number)
    assert before + 60 < watched() < before + 70


# Members that do not read.


def test_messages_that_a_member_does_not_read_are_bounded(end: End, sender: Sender) -> None:
    """It is stopped; with more than 128 MiB the connection ends."""
    end.until(lambda: peer_is_linked(end, sender.incarnation))
    stop(sender)

    def send(count: int) -> Callable[[int], None]:
        def input_(now: int) -> None:
            for _ in range(count):
                end.stack.bottom.send(Message(bytes(1 << 20)), (1,))

        return input_

    end.pump.call(send(100))
    assert end.events_of("link_down") == []
    end.pump.call(send(40))
    assert end.events_of("link_down") == [("link_down", sender.incarnation)]
    assert "it does not read what is sent to it" in str(end.logged)


# Heartbeats.


def test_a_stack_gets_the_contacts_of_its_heartbeat_peers_right_before_it_expires(
    end: End, make_end: Ends, tmp_path: Path
) -> None:
    other = make_end(f"unix:{tmp_path}/other")
    for one, two in ((end, other), (other, end)):
        one.stack.beats = (two.member,)
        one.stack.beats_version += 1
    other.pump.call(lambda now: None)  # any input will do

    def has_contact() -> bool:
        end.stack.events.clear()
        end.stack.top.deadline = 1
        end.until(lambda: end.events_of("expire"))
        end.stack.top.deadline = clock() + 3_600_000_000_000
        return bool(end.events_of("heard"))

    end.until(has_contact)
    assert end.events_of("heard", "expire")[:2] == [
        ("heard", other.member.incarnation),
        ("expire", None),
    ]
    assert other.pump.heartbeat.counts["taken"] > 0
    end.stack.beats = ()
    end.stack.beats_version += 1
    assert not has_contact()
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


def test_a_process_that_lives_is_not_suspected_for_its_silence(
    quick: End, of_quick: Sender
) -> None:
    """It beats no more and runs, as one does that gets no processor; then it is stopped."""
    of_quick.tell("mute")
    assert of_quick.read() == "mute\n"
    quick.until(lambda: len(quick.events_of("lives")) > 3)
    assert quick.events_of("lives")[0] == ("lives", of_quick.incarnation)
    assert quick.events_of("problem") == []
    stop(of_quick)
    quick.until(lambda: quick.events_of("problem"))
    assert quick.events_of("problem") == [("problem", "it is silent")]


def test_a_process_that_is_stopped_has_no_word_from_the_kernel(
    quick: End, of_quick: Sender
) -> None:
    quick.until(lambda: quick.events_of("heard"))
    stop(of_quick)
    quick.stack.events.clear()
    quick.until(lambda: quick.events_of("problem"))
    assert quick.events_of("lives") == []


@pytest.mark.usefixtures("of_quick")
def test_a_partition_stands_for_another_host(quick: End, tmp_path: Path) -> None:
    """`orcalike chaos partition` cuts processes apart that live; the kernel is not asked."""
    quick.pump.call(lambda now: sever(quick.pump, [f"unix:{tmp_path}/second"]))
    quick.stack.events.clear()
    quick.until(lambda: quick.events_of("problem"))
    assert quick.events_of("lives") == []


def connections_from(pid: int) -> list[int]:
    """Descriptors of the Unix sockets here that this process has connected to."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as sock:
            data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", data)[0] == pid:
                found.append(int(name))
    return found


def test_a_connection_that_is_not_watched_again_after_a_partition_is_closed(
    end: End, sender: Sender, tmp_path: Path
) -> None:
    """The system does not watch a file; it may have no memory for others."""
    end.pump.call(lambda now: sever(end.pump, [f"unix:{tmp_path}/second"]))
    with Path(os.devnull).open() as file:
        for fd in connections_from(sender.pid):
            os.dup2(file.fileno(), fd)
    end.stack.events.clear()
    end.pump.call(lambda now: sever(end.pump, []))
    assert ("link_down", sender.incarnation) in end.stack.events


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


def test_whether_a_process_is_at_its_end(child: subprocess.Popen[bytes]) -> None:
    process = Process(os.pidfd_open(child.pid), Stack.__new__(Stack), 1)
    assert not process.is_ending()
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert not process.is_ending(), "it may go on"
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.is_ending()
    child.wait()
    assert process.is_ending()
    process.close()


def test_a_process_is_at_its_end_before_it_has_ended() -> None:
    """Its first thread has gone through all of its end, and the process lasts for as long as the other one."""
    program = """
import ctypes, platform, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # exit(2)
"""
    started = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    with killed_at_the_end(started) as child:
        process = Process(os.pidfd_open(child.pid), Stack.__new__(Stack), 1)
        until(process.is_ending)
        assert not process.has_ended()
        process.close()


def test_a_process_runs_under_any_name() -> None:
    """The kernel cuts a name after 15 bytes, in the middle of a character too: that was taken for its end."""
    name = ("x" * 14 + "ä").encode()[:15]
    program = f"open('/proc/self/comm', 'wb').write({name!r}); print(flush=True); input()"
    command = [sys.executable, "-c", program]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with killed_at_the_end(started) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
        assert Path(f"/proc/{child.pid}/comm").read_bytes() == name + b"\n"
        process = Process(os.pidfd_open(child.pid), Stack.__new__(Stack), 1)
        assert process.runs()
        process.close()


def test_a_process_is_watched_until_it_ends(child: subprocess.Popen[bytes]) -> None:
    process = Process(os.pidfd_open(child.pid), Stack.__new__(Stack), 1)
    assert pidfd.is_pidfd(process.fd)
    assert not process.has_ended()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.has_ended()
    child.wait()
    assert process.has_ended()
    process.close()
    assert not pidfd.is_pidfd(process.fd)
