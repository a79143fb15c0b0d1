"""The launcher's connection with an agent, from the greeting to the end; the agent here is the test."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from orcalike.launcher import remote_host
from orcalike.launcher.child import Exit, Start, Usage
from orcalike.launcher.frames import MEMBER, NUMBER, STATUS, Frame, FrameReader, Kind
from orcalike.launcher.greeting import NOISE_MAX, Assignment, HostReport, answer
from orcalike.launcher.remote_host import (
    CLOSED_SECONDS,
    LEASE,
    PING_SECONDS,
    SAID_MAX,
    RemoteHost,
)
from orcalike.launcher.run_plan import RunPlan
from orcalike.launcher.timers import Timers
from tests.lib.descriptors import count_files
from tests.lib.processes import state_of, until

PLAN = RunPlan(identity="j", seed=1, program="prog.py")
ASSIGNMENT = Assignment(
    version="1", plan=PLAN, name="a", node=1, slots=1, key=b"k", drawn_from="", lease=10.0
)
REPORT = HostReport(version="1", python="3.11", pid=7, cores=2, program=None, directory=True)
START = Start(role=0, listen="tcp:10.0.0.1:1", seeds=())
#: What it is sent goes to the one pipe, and what the other one has comes of it; then it ends.
PASSES_ON = 'exec 3<&0; cat <&3 > "$0" & cat "$1"; exit 3'


class Reaper:
    """It keeps which processes are to be killed with the launcher."""

    def __init__(self) -> None:
        self.watched: list[int] = []

    def watch(self, group: int) -> None:
        self.watched.append(group)

    def forget(self, group: int) -> None:
        self.watched.remove(group)


class Observer:
    """Of a host and of a process: it keeps what is reported."""

    def __init__(self) -> None:
        self.reports: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values: self.reports.append((name, *values))


class HostNotes(Observer):
    """Of a host, which comes first in each report."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def report(host: RemoteHost, *values: Any) -> None:
            self.reports.append((name, *values))

        return report


class Connection:
    """A host that connects, and its agent."""

    def __init__(self, directory: Path, selector: selectors.BaseSelector) -> None:
        self.observer, self.reaper, self.timers = HostNotes(), Reaper(), Timers()
        self.selector = selector
        paths = [str(directory / name) for name in ("to", "from")]
        for path in paths:
            os.mkfifo(path)
        self._from_launcher = os.open(paths[0], os.O_RDWR | os.O_NONBLOCK)
        self._to_launcher, self._answers_at = -1, paths[1]
        self._frames = FrameReader()
        self.host = RemoteHost(
            "a",
            ["sh", "-c", PASSES_ON, *paths],
            ASSIGNMENT,
            cast(Any, self.observer),
            selector=selector,
            timers=self.timers,
            reaper=cast(Any, self.reaper),
        )

    @property
    def reports(self) -> list[tuple[Any, ...]]:
        return self.observer.reports

    def until(self, holds: Callable[[], object]) -> None:
        """The launcher's loop goes on until that is so."""

        def turn() -> object:
            registered = self.selector.get_map()
            for key, _ in self.selector.select(0.005):
                if registered.get(key.fd) is key:
                    key.data()
            return holds()

        until(turn, pause=0)

    def read_assignment(self) -> bytes:
        """The nonce of the launcher."""
        data = bytearray()

        def all_came() -> bool:
            data.extend(self.read())
            return data.endswith(b"}")

        self.until(all_came)
        nonce, assignment = Assignment.read(io.BytesIO(data).read)
        assert assignment == ASSIGNMENT
        return nonce

    def read(self) -> bytes:
        """What the launcher has sent."""
        try:
            return os.read(self._from_launcher, 1 << 20)
        except BlockingIOError:
            return b""

    def frames(self) -> list[Frame]:
        """The next that the launcher has sent."""
        found: list[Frame] = []

        def some_came() -> bool:
            found.extend(self._frames.feed(self.read()))
            return bool(found)

        self.until(some_came)
        return found

    def write(self, data: bytes) -> None:
        """To the launcher."""
        if self._to_launcher < 0:
            self._to_launcher = os.open(self._answers_at, os.O_WRONLY)  # when it is read from
        os.write(self._to_launcher, data)

    def send(self, *frames: Frame) -> None:
        self.write(b"".join(frame.encode() for frame in frames))

    def print(self, data: bytes) -> None:
        """On the stderr of the command."""
        with open(f"/proc/{self.host.pid}/fd/2", "wb") as file:
            file.write(data)

    @property
    def ends_soon(self) -> bool:
        """Whether an answer is not waited for as long as at first."""
        due = self.timers.next()
        return due is not None and due <= time.monotonic() + CLOSED_SECONDS

    @property
    def is_idle(self) -> bool:
        """Whether nothing keeps the launcher's loop awake."""
        return not self.selector.select(0)

    def connect(self, noise: bytes = b"") -> None:
        """Until the agent has reported."""
        self.host.connect()
        self.write(noise + answer(self.read_assignment()))
        self.send(Frame(Kind.HELLO, 0, REPORT.encode()))
        self.until(lambda: self.reports)
        assert self.reports == [("ready",)]
        assert self.frames() == [PING]
        self.reports.clear()

    def end(self) -> None:
        """The agent has ended."""
        if self._to_launcher >= 0:
            os.close(self._to_launcher)
        self._to_launcher = -1

    def close(self) -> None:
        self.end()
        self.host.close()
        self.host.kill()
        self.until(lambda: not self.host.connected)
        os.close(self._from_launcher)


PING = Frame(Kind.PING, 0, NUMBER.pack(int(LEASE)))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    files = count_files()
    with selectors.DefaultSelector() as selector:
        made = Connection(tmp_path, selector)
        yield made
        made.close()
        assert not selector.get_map()
        assert made.reaper.watched == []
    assert count_files() == files


def test_an_agent_that_answers_is_there(connection: Connection) -> None:
    host = connection.host
    assert (host.connected, host.pid, host.report) == (False, 0, None)
    connection.connect()
    assert (host.connected, host.report, host.tries) == (True, REPORT, 1)
    assert connection.reaper.watched == [host.pid]
    assert os.getsid(host.pid) == host.pid  # a terminal's Ctrl-C does not reach it
    connection.timers.expire(connection.timers.next() or 0.0)
    assert connection.frames() == [PING]
    assert connection.reports == []
    assert connection.is_idle


@pytest.mark.parametrize("when", ["at once", "after noise"])
def test_what_comes_in_pieces_and_after_noise_is_understood(
    connection: Connection, when: str
) -> None:
    connection.host.connect()
    nonce = connection.read_assignment()
    noise = b"" if when == "at once" else b"Welcome\norcalike agent 00\n" + bytes(NOISE_MAX - 100)
    said = noise + answer(nonce) + Frame(Kind.HELLO, 0, REPORT.encode()).encode()
    for at in range(0, len(said), 20_000):
        connection.write(said[at : at + 20_000])
        connection.until(lambda: True)
    connection.until(lambda: connection.reports)
    assert connection.reports == [("ready",)]


def test_one_that_says_too_much_is_given_up(connection: Connection) -> None:
    connection.host.connect()
    connection.read_assignment()
    while not connection.reports:
        with contextlib.suppress(BrokenPipeError):
            connection.write(b"x" * (NOISE_MAX // 4))
        connection.until(lambda: True)
    ((name, returncode, said),) = connection.reports
    assert (name, returncode) == ("failed", -signal.SIGKILL)
    assert said.startswith("... xxx")
    assert len(said) < 300
    assert connection.timers.next() is None


def test_one_that_does_not_answer_is_named_and_given_up(connection: Connection) -> None:
    connection.host.connect()
    connection.timers.expire(connection.timers.next() or 0.0)
    assert connection.reports == [("slow",)]
    connection.timers.expire(connection.timers.next() or 0.0)
    connection.until(lambda: len(connection.reports) > 1)
    assert connection.reports[1] == ("failed", -signal.SIGKILL, "")
    assert not connection.host.connected


def test_an_answer_before_all_was_read_is_none(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orcalike.launcher.remote_host.draw_nonce", lambda: bytes(16))
    plan = PLAN.replace(arguments=("x" * 500_000,))
    connection.host.assignment = ASSIGNMENT.replace(plan=plan)
    connection.host.connect()
    connection.write(answer(bytes(16)) + Frame(Kind.HELLO, 0, REPORT.encode()).encode())
    connection.until(lambda: connection.reports)
    assert [report[:2] for report in connection.reports] == [("failed", -signal.SIGKILL)]


def test_one_that_ends_is_tried_anew(connection: Connection) -> None:
    connection.host.connect()
    nonce = connection.read_assignment()
    connection.write(b"no such file\n")
    connection.end()
    connection.until(lambda: connection.reports)
    assert connection.reports == [("failed", 3, "no such file")]
    assert connection.timers.next() is None
    connection.reports.clear()
    connection.connect(noise=answer(nonce))
    assert connection.host.tries == 2


def test_an_agent_that_says_nothing_is_lost(connection: Connection) -> None:
    connection.connect()
    child = connection.host.start(START)
    ended = Observer()
    child.observe(cast(Any, ended))
    pings = round(LEASE / PING_SECONDS)
    for _ in range(3):  # what comes meanwhile counts, and so does that the launcher stood still
        for _ in range(pings - 1):
            connection.timers.expire(connection.timers.next() or 0.0)
        connection.send(Frame(Kind.PROBED, 0, b"[]"))
        connection.until(lambda: connection.reports)
        assert connection.reports.pop() == ("probed", [])
        for _ in range(pings - 1):
            connection.timers.expire(connection.timers.next() or 0.0)
        connection.frames()
        connection.host.resume()
        assert connection.frames() == [PING]
    assert connection.reports == []
    for _ in range(pings + 2):
        connection.timers.expire(connection.timers.next() or 0.0)
    why = "nothing has come from it for 10 s"
    assert connection.reports == [("lost", why)]
    assert ended.reports[-1] == ("ended", Exit(69, lost=f"host a is lost: {why}"))
    assert connection.host.lost
    assert connection.timers.next() is None
    with pytest.raises(OSError, match="host a is lost") as caught:
        connection.host.start(START)
    assert caught.value.errno == errno.EHOSTDOWN
    connection.until(lambda: not connection.host.connected)
    assert connection.reports == [("lost", why)]


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.HELLO, 0, REPORT.encode()),
        Frame(Kind.OUT, 1, b"of no process"),
        Frame(Kind.DIED, 0, b"short"),
        Frame(Kind.PROBED, 0, b"{}"),
        Frame(Kind.PROBED, 0, b"no JSON"),
        Frame(Kind.PONG, 0, b"[1]"),
        Frame(Kind.PONG, 0, b'{"1": 2}'),
        Frame(Kind.PING, 0, NUMBER.pack(1)),
    ],
    ids=lambda frame: f"{frame.kind.name} {frame.data[:8]!r}",
)
def test_a_frame_that_cannot_be_believed_ends_the_connection(
    connection: Connection, frame: Frame
) -> None:
    connection.connect()
    connection.send(frame)
    connection.until(lambda: not connection.host.connected)
    ((name, why),) = connection.reports
    assert name == "lost"
    assert why.startswith("it has sent what cannot be understood: ")
    assert connection.timers.next() is None


def test_a_report_that_cannot_be_understood(connection: Connection) -> None:
    connection.host.connect()
    connection.write(answer(connection.read_assignment()))
    connection.send(Frame(Kind.HELLO, 0, b"{}"))
    connection.until(lambda: connection.reports)
    ((name, why),) = connection.reports
    assert name == "lost"
    assert "install the same version" in why


def test_what_an_agent_reports(connection: Connection) -> None:
    connection.connect()
    children = [connection.host.start(START), connection.host.start(START)]
    started = connection.frames()
    while len(started) < 2:
        started += connection.frames()
    assert [(frame.kind, frame.process) for frame in started] == [(Kind.START, 1), (Kind.START, 2)]
    first, second = Observer(), Observer()
    children[0].observe(cast(Any, first))
    children[1].observe(cast(Any, second))
    used = {1: (1.5, 4096, 2.0), 2: (None, None, None), 3: (1.0, 1, 1.0)}
    connection.send(
        Frame(Kind.PROBED, 0, json.dumps(["", "no route"]).encode()),
        Frame(Kind.DIED, 0, MEMBER.pack(77)),
        Frame(Kind.PONG, 0, json.dumps(used).encode()),
        Frame(Kind.STARTED, 1, NUMBER.pack(4711)),
        Frame(Kind.LINE, 1, b"joining default 5"),
    )
    connection.until(lambda: first.reports)
    assert connection.reports == [("probed", ["", "no route"]), ("member_ended", 77)]
    assert children[0].usage == Usage(1.5, 4096, 2.0)
    assert children[1].usage == Usage()
    assert children[0].pid == 4711
    connection.send(Frame(Kind.ENDED, 1, STATUS.pack(0)), Frame(Kind.OUT, 1), Frame(Kind.ERR, 1))
    connection.until(lambda: children[0].over)
    connection.send(Frame(Kind.LINE, 1, b"of a process that is over"))
    connection.until(lambda: not connection.host.connected)
    assert connection.reports[-1][0] == "lost"


def test_what_the_run_wants_of_a_host(connection: Connection) -> None:
    connection.connect()
    connection.host.probe(["tcp:10.0.0.1:5"])
    connection.host.kill_rest()
    connection.host.extend_lease(60.0)
    frames: list[Frame] = []
    while len(frames) < 3:
        frames += connection.frames()
    assert frames == [
        Frame(Kind.PROBE, 0, b'["tcp:10.0.0.1:5"]'),
        Frame(Kind.KILL_REST),
        Frame(Kind.PING, 0, NUMBER.pack(60)),
    ]


def test_what_came_before_the_end_counts(connection: Connection) -> None:
    """Also more than is read at a time."""
    connection.connect()
    child = connection.host.start(START)
    seen = Observer()
    child.observe(cast(Any, seen))
    for _ in range(3):
        connection.send(Frame(Kind.LINE, 1, b"left default"))
    connection.end()
    connection.until(lambda: not connection.host.connected)
    assert [report[0] for report in seen.reports].count("line") == 3
    assert connection.reports == [("lost", "the connection has ended")]


def test_an_end_that_only_the_command_shows(connection: Connection) -> None:
    """What it has started has the connection open still."""
    connection.connect()
    os.kill(connection.host.pid, signal.SIGKILL)
    connection.until(lambda: not connection.host.connected)
    assert connection.reports == [("lost", "the connection has ended")]


def test_nothing_is_written_to_one_that_is_gone(connection: Connection) -> None:
    """Its descriptors may be those of other files by now."""
    connection.connect()
    os.kill(connection.host.pid, signal.SIGKILL)
    connection.until(lambda: not connection.host.connected)
    pipes = [os.pipe() for _ in range(4)]
    connection.host.kill_rest()
    connection.host.extend_lease(60.0)
    for reader, writer in pipes:
        os.close(writer)
        assert os.read(reader, 100) == b""
        os.close(reader)


def test_a_second_try_that_cannot_be_watched_closes_nothing_twice(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.host.connect()
    connection.host.kill()
    connection.until(lambda: connection.reports)

    def pidfd_open(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    with pytest.raises(OSError, match="Too many open files"):
        connection.host.connect()
    for each in others:
        os.close(each)


def test_lines_that_it_prints_are_for_the_user(connection: Connection) -> None:
    """Those that came before its answer are not: a banner, say."""
    connection.host.connect()
    nonce = connection.read_assignment()
    connection.print(b"Unauthorised use is reported.")
    connection.until(lambda: connection.host._said)
    connection.write(answer(nonce))
    connection.send(Frame(Kind.HELLO, 0, REPORT.encode()))
    connection.until(lambda: connection.reports)
    connection.print(b"out of\nmem")
    connection.print(b"ory\r\n\xff\n")
    connection.until(lambda: len(connection.reports) == 4)
    assert connection.reports[1:] == [("said", "out of"), ("said", "memory"), ("said", "\ufffd")]


@pytest.mark.parametrize("answers", [True, False])
def test_the_end_of_what_it_has_printed_is_not_lost(connection: Connection, answers: bool) -> None:
    """However much that is: there a traceback has what is wrong."""
    host = connection.host
    if answers:
        connection.connect()
    else:
        host.connect()
        connection.read_assignment()
    connection.print(b"line\n" * 8_000 + b"what is wrong\n")
    os.kill(host.pid, signal.SIGKILL)
    until(lambda: state_of(host.pid) == "Z")
    connection.until(lambda: not host.connected)
    if answers:
        assert connection.reports[-2] == ("said", "what is wrong")
        assert connection.reports.count(("said", "line")) == 8_000
    else:
        ((name, _, said),) = connection.reports
        assert name == "failed"
        assert said.endswith(" / line / what is wrong")


def test_a_line_that_does_not_end_takes_no_memory(connection: Connection) -> None:
    connection.connect()
    for _ in range(8):
        connection.print(b"x" * 50_000)
        connection.until(lambda: connection.is_idle)
    connection.print(b"\n")
    connection.until(lambda: connection.reports)
    ((name, line),) = connection.reports
    assert name == "said"
    assert SAID_MAX <= len(line) < 2 * SAID_MAX


@pytest.mark.parametrize("closed", ["exec 1>&-", "exec 2>&-", "exec 1>&- 2>&-"])
def test_one_that_closes_its_output_does_not_keep_the_loop_awake(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    """Without stdout no answer can come: it is given up soon."""
    for name in ("ANSWER_SECONDS", "SLOW_SECONDS"):
        monkeypatch.setattr(remote_host, name, 1e6)
    connection.host.command = ["sh", "-c", f"{closed}; cat > /dev/null"]
    connection.host.connect()
    connection.until(lambda: connection.is_idle and connection.ends_soon == ("1>" in closed))
    connection.timers.expire(float("inf"))
    connection.until(lambda: not connection.host.connected)
    assert ("failed", -signal.SIGKILL, "") in connection.reports


@pytest.mark.parametrize("ends", [True, False])
def test_an_agent_that_is_asked_to_quit(connection: Connection, ends: bool) -> None:
    """It ends, or is killed after a while; either is no loss."""
    connection.connect()
    connection.host.close()
    assert connection.frames() == [Frame(Kind.QUIT)]
    if ends:
        connection.end()
    else:
        connection.timers.expire(connection.timers.next() or 0.0)
    connection.until(lambda: not connection.host.connected)
    assert connection.reports == []
    connection.timers.expire(float("inf"))


def test_one_that_has_not_answered_yet_is_killed_at_the_end(connection: Connection) -> None:
    connection.host.connect()
    connection.host.close()
    connection.until(lambda: not connection.host.connected)
    assert connection.reports == []
