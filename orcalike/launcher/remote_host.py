"""Another host of a run: the connection with its agent, from the first try to the end."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import subprocess
from collections.abc import Sequence
from functools import partial
from typing import BinaryIO, Protocol

from orcalike.launcher.child import Start, Usage
from orcalike.launcher.frame_stream import FrameStream
from orcalike.launcher.frames import MEMBER, NUMBER, Frame, FrameError, Kind
from orcalike.launcher.greeting import (
    NOISE_MAX,
    Assignment,
    GreetingError,
    HostReport,
    answer,
    draw_nonce,
)
from orcalike.launcher.reaper import Reaper
from orcalike.launcher.remote_child import RemoteChild
from orcalike.launcher.timers import Timers

#: Without a word of the launcher for so long an agent ends all that it started; a host that says
#: nothing for so long is lost.
LEASE = 10.0
PING_SECONDS = 1.0
#: How long an agent may take to answer; after how long it is said that it has not.
ANSWER_SECONDS, SLOW_SECONDS = 30.0, 5.0
#: How long a command may go on that has closed its output, and is no agent.
CLOSED_SECONDS = 1.0
#: How long an agent may take to end.
QUIT_SECONDS = 5.0
#: What a pipe holds: so much is read at a time, so that no more is left when a command has ended.
PIPE_SIZE = 1 << 16
#: What is kept of what ssh, or a host's shell, says; and how much of the end of it is shown.
SAID_MAX, SHOWN_MAX = 4096, 250


class HostObserver(Protocol):
    """What is called with what becomes of a host."""

    def ready(self, host: RemoteHost) -> None:
        """Its agent has answered: `report` is there."""

    def failed(self, host: RemoteHost, returncode: int, said: str) -> None:
        """No agent has answered: how the command ended (0 if it was given up), and what it said."""

    def slow(self, host: RemoteHost) -> None:
        """No agent has answered yet."""

    def probed(self, host: RemoteHost, troubles: list[str]) -> None:
        """Which of the addresses it can reach."""

    def member_ended(self, host: RemoteHost, incarnation: int) -> None:
        """A process that was this member, and that one of its processes had started, was seen to end there."""

    def lost(self, host: RemoteHost, why: str) -> None:
        """It is lost; its processes have been reported as lost."""

    def said(self, host: RemoteHost, line: str) -> None:
        """Its agent, or ssh, has printed a line on stderr."""


class RemoteHost:
    """See `Host`. It is connected by a command whose standard input and output reach the agent."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        assignment: Assignment,
        observer: HostObserver,
        *,
        selector: selectors.BaseSelector,
        timers: Timers,
        reaper: Reaper,
    ) -> None:
        self.name, self.command, self.assignment = name, command, assignment
        self.report: HostReport | None = None
        self.tries = 0
        self.lost = False
        self._observer = observer
        self._selector, self._timers, self._reaper = selector, timers, reaper
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._stream: FrameStream | None = None
        self._unwritten = b""
        """The rest of the assignment, for which the command's input has no room yet."""
        self._before = b""
        """What has come before the agent's answer."""
        self._said = b""
        self._children: dict[int, RemoteChild] = {}
        self._started = 0
        self._unanswered = 0
        """Pings since the last frame has come."""
        self._quitting = False

    @property
    def pid(self) -> int:
        """Of its command; 0 if it does not run."""
        return self._process.pid if self._process is not None else 0

    @property
    def connected(self) -> bool:
        """Whether its command runs."""
        return self._process is not None

    # The connection

    def connect(self) -> None:
        """Start the command; raises LaunchError if there is too much to say.

        Raises OSError if it cannot be started, or not be watched; nothing is left of it then.
        """
        self._nonce = draw_nonce()
        self._unwritten = self.assignment.encode(self._nonce)
        self.tries += 1
        self._before = self._said = b""
        self._process = process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # a terminal's Ctrl-C reaches the launcher only
        )
        self._reaper.watch(process.pid)
        try:
            self._watch(process.pid)
        except OSError:
            self.kill()
            self._reap()
            raise
        self._timers.at(self._timer("answer"), ANSWER_SECONDS, self._give_up)
        self._timers.at(self._timer("slow"), SLOW_SECONDS, partial(self._observer.slow, self))

    def _watch(self, pid: int) -> None:
        """Have the loop see what comes of the command, and its end."""
        self._pidfd = os.pidfd_open(pid)
        stdin, stdout, stderr = self._pipes()
        for pipe in (stdin, stdout, stderr):
            os.set_blocking(pipe.fileno(), False)
        self._selector.register(self._pidfd, selectors.EVENT_READ, self._ended)
        self._selector.register(stderr, selectors.EVENT_READ, self._read_stderr)
        self._selector.register(stdout, selectors.EVENT_READ, self._read_answer)
        self._selector.register(stdin, selectors.EVENT_WRITE, self._write_assignment)

    def _pipes(self) -> tuple[BinaryIO, BinaryIO, BinaryIO]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        return process.stdin, process.stdout, process.stderr  # type: ignore[return-value]

    def _write_assignment(self) -> None:
        """As much as there is room for: it may be longer than a pipe, and the command may read it late."""
        stdin, _, _ = self._pipes()
        try:
            written = os.write(stdin.fileno(), self._unwritten)
        except BlockingIOError:
            return
        except OSError:  # its end says more
            written = len(self._unwritten)
        self._unwritten = self._unwritten[written:]
        if not self._unwritten:
            self._selector.unregister(stdin)

    def _read_answer(self) -> None:
        _, stdout, _ = self._pipes()
        data = stdout.read(PIPE_SIZE)
        if data is None:
            return
        self._before += data
        marker = answer(self._nonce)
        _, found, after = self._before.partition(marker)
        if found:
            self._answered(after)
        elif not data or len(self._before) > NOISE_MAX + len(marker):
            self._selector.unregister(stdout)
            if data:
                self._give_up()
            else:  # mostly it ends, and its end says more
                self._timers.at(self._timer("answer"), CLOSED_SECONDS, self._give_up)

    def _answered(self, rest: bytes) -> None:
        stdin, stdout, _ = self._pipes()
        self._selector.unregister(stdout)
        if self._unwritten:  # it has not read all, and cannot know what is wanted of it
            self._give_up()
            return
        self._before = self._said = b""
        self._stream = FrameStream(
            self._selector, stdout.fileno(), stdin.fileno(), self._take, self._lose
        )
        self._stream.feed(rest)

    def _read_stderr(self) -> None:
        _, _, stderr = self._pipes()
        data = stderr.read(PIPE_SIZE)
        if data is None:
            return
        if not data:
            self._selector.unregister(stderr)
        if self._stream is None:
            self._said = (self._said + data)[-SAID_MAX:]
            return
        *lines, self._said = (self._said + data).split(b"\n")
        self._said = self._said[-SAID_MAX:]
        for line in lines:
            self._observer.said(self, line.decode(errors="replace").rstrip("\r"))

    def _ended(self) -> None:
        """The command has ended."""
        registered = self._selector.get_map()
        _, stdout, stderr = self._pipes()
        if stderr.fileno() in registered:
            self._read_stderr()
        answered = self._stream is not None
        if not answered and stdout.fileno() in registered:
            self._read_answer()
        if self._stream is not None:
            while self._stream.open and self._stream.read():
                pass
            self._stream.close()
        returncode = self._reap()
        self._stop_waiting()
        if self._stream is None and not self._quitting:
            self._observer.failed(self, returncode, self._what_it_said())
        else:
            self._lose("the connection has ended")

    def _reap(self) -> int:
        """The command has ended, or does so now: let go all that it had; returns its exit code."""
        process = self._process
        assert process is not None
        registered = self._selector.get_map()
        for pipe in self._pipes():
            if pipe.fileno() in registered:
                self._selector.unregister(pipe)
        if self._pidfd >= 0:
            if self._pidfd in registered:
                self._selector.unregister(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        returncode = process.wait()
        self._reaper.forget(process.pid)
        for pipe in self._pipes():
            pipe.close()
        self._process = None
        return returncode

    def _stop_waiting(self) -> None:
        for what in ("answer", "slow"):
            self._timers.cancel(self._timer(what))

    def _what_it_said(self) -> str:
        """In one line: the end of what ssh has printed, and of what came instead of the answer."""
        return " / ".join(filter(None, map(_end_of, (self._said, self._before))))

    def _give_up(self) -> None:
        """No answer comes, or only noise."""
        self.kill()

    def kill(self) -> None:
        """End the command; its end is seen by the loop."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _lose(self, why: str) -> None:
        """Nothing more comes of this host."""
        self._timers.cancel(self._timer("ping"))
        self.kill()
        if self.lost or self._quitting:
            return
        self.lost = True
        for child in list(self._children.values()):
            child.lose(f"host {self.name} is lost: {why}")
        self._children.clear()
        self._observer.lost(self, why)

    # Frames

    def _take(self, frame: Frame) -> None:
        self._unanswered = 0
        match frame.kind:
            case Kind.HELLO if self.report is None:
                try:
                    self.report = HostReport.decode(frame.data)
                except GreetingError as error:
                    raise FrameError(str(error)) from None
                self._stop_waiting()
                self._ping()
                self._observer.ready(self)
            case Kind.PROBED:
                self._observer.probed(self, [str(each) for each in _json_list(frame.data)])
            case Kind.PONG:
                self._take_usage(frame.data)
            case Kind.DIED if len(frame.data) == MEMBER.size:
                self._observer.member_ended(self, *MEMBER.unpack(frame.data))
            case _ if (child := self._children.get(frame.process)) is not None:
                child.take(frame)
                if child.over:
                    self._children.pop(frame.process, None)
            case _:
                raise FrameError(f"{frame.kind.name} that was not asked for")

    def _take_usage(self, data: bytes) -> None:
        try:
            for number, (cpu, memory, age) in json.loads(data).items():
                if (child := self._children.get(int(number))) is not None and cpu is not None:
                    child.usage = Usage(float(cpu), int(memory), float(age))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise FrameError("PONG that cannot be understood") from None

    def send(self, frame: Frame) -> None:
        """Send a frame to the agent."""
        if self._stream is not None:
            self._stream.send(frame)

    def _ping(self) -> None:
        # Counted, not timed: if this process has not run for a while, what has come is not read yet.
        if self._unanswered > LEASE / PING_SECONDS:
            self._lose(f"nothing has come from it for {LEASE:g} s")
            return
        self._unanswered += 1
        self.extend_lease(LEASE)
        self._timers.at(self._timer("ping"), PING_SECONDS, self._ping)

    def extend_lease(self, seconds: float) -> None:
        """Let the agent go on for so long with nothing received."""
        self.send(Frame(Kind.PING, 0, NUMBER.pack(int(seconds))))

    def resume(self) -> None:
        """This process was stopped, and goes on: nothing could be received meanwhile."""
        self._unanswered = 0
        self.extend_lease(LEASE)

    # What the run wants of it

    def probe(self, addresses: Sequence[str]) -> None:
        """Have it try to reach these addresses."""
        self.send(Frame(Kind.PROBE, 0, json.dumps(addresses).encode()))

    def start(self, start: Start) -> RemoteChild:
        """Have a process started."""
        if self.lost:
            raise OSError(errno.EHOSTDOWN, f"host {self.name} is lost")
        self._started += 1
        number = self._started
        child = self._children[number] = RemoteChild(number, self.name, start, self.send)
        return child

    def kill_rest(self) -> None:
        """Have killed what the ranks have left behind there."""
        self.send(Frame(Kind.KILL_REST))

    def close(self) -> None:
        """Have the agent end, and end the connection."""
        self._quitting = True
        self._timers.cancel(self._timer("ping"))
        self._timers.at(self._timer("quit"), QUIT_SECONDS, self.kill)
        if self._stream is not None:
            self.send(Frame(Kind.QUIT))
        else:
            self.kill()

    def _timer(self, what: str) -> str:
        return f"{what} {self.assignment.node}"


def _end_of(data: bytes) -> str:
    """The last lines: a traceback, or what comes after a banner, says there what is wrong."""
    lines = [line.strip() for line in data.decode(errors="replace").split("\n")]
    text = " / ".join(filter(None, lines))
    return text if len(text) <= SHOWN_MAX else f"... {text[-SHOWN_MAX:]}"


def _json_list(data: bytes) -> list[object]:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list):
        raise FrameError("a list that cannot be understood")
    return values
