"""A process of a run that this process has started: its pipes, its line, and its end."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
from collections.abc import Callable
from typing import BinaryIO

from orcalike.launch_protocol.control_lines import LINE_MAX, ToProcess, encode
from orcalike.launch_protocol.deaths import DEATHS_MAX
from orcalike.launcher.child import REPORT_MAX, STREAMS, Exit, Observer, Stream, Usage
from orcalike.launcher.started_members import StartedMembers
from orcalike.launcher.template import Output, Process
from orcalike.launcher.usage import usage_of

READ_SIZE = 1 << 16
#: What a process can have left in a pipe or socket at its end is read in so many pieces at the most;
#: what it has forked may hold the other end and write on it.
REST_MAX = 16
#: So are the lines of it and of what it has started: each reading gives those of one process alone.
LINES_REST_MAX = 4096

_CREDENTIALS = struct.Struct("3i")
"""Process, user and group."""


class ControlLine:
    """The launcher's end of the line to a process (`orcalike.launch_protocol.control_channel`).

    A process reads its line only when it has joined, and not while it stands still. Meanwhile lines that the kernel
    has no room for wait here, each once, and of `cut` and `heal` the last one: no more than there are ranks and
    members. A question (`describe`) does not wait: it is of no use later.

    What the process has started may write on its end, too: the kernel says which process has written what.
    """

    def __init__(self, connection: socket.socket) -> None:
        """To be made before the process is started: the kernel says that only of what is written from now on."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket = connection
        self.pid = 0
        """Of the process; 0: all that comes is taken for its own."""
        self.on_other: Callable[[int, str], None] = lambda pid, line: None
        """Called with a line that another process has written, and its number."""
        self._unfinished = b""
        self._rest = b""
        """Of a line that was taken in part."""
        self._waiting: dict[bytes, bytes] = {}

    @property
    def waiting(self) -> bool:
        """Whether there is something to write when the process has read."""
        return bool(self._rest or self._waiting)

    def send(self, report: ToProcess) -> None:
        """Send a line, now or when it can be taken; nothing happens if the process has gone."""
        self.send_line(encode(report).encode())

    def send_line(self, line: bytes) -> None:
        """Send a line that is encoded already."""
        kind = line.partition(b" ")[0]
        if kind == b"describe":
            if not self.waiting:
                self._send(line + b"\n")
            return
        if kind in (b"cut", b"heal"):
            self._waiting.pop(b"cut", None)
            self._waiting[b"cut"] = line
        else:
            self._waiting[line] = line
            if len(self._waiting) > DEATHS_MAX:
                self._drop_oldest_death()
        self.write()

    def _drop_oldest_death(self) -> None:
        for line in self._waiting:
            if line.startswith((b"died ", b"gone ")):
                del self._waiting[line]
                return

    def write(self) -> None:
        """Send the lines that wait, as far as they are taken now."""
        if self._rest and not self._send(self._rest):
            return
        while self._waiting and not self._rest:
            key = next(iter(self._waiting))
            if not self._send(self._waiting[key] + b"\n"):
                return
            del self._waiting[key]

    def _send(self, data: bytes) -> bool:
        """Send all, or a part after which the rest waits; whether anything was taken."""
        try:
            self._rest = data[self.socket.send(data) :]
        except BlockingIOError:
            return False
        except OSError:  # the process has gone, or has closed its end
            self._rest = b""
            self._waiting.clear()
            return False
        return True

    def receive(self) -> list[str] | None:
        """The whole lines that the process has sent since; None when no more can come."""
        try:
            data, control, _, _ = self.socket.recvmsg(
                2 * LINE_MAX, socket.CMSG_SPACE(_CREDENTIALS.size)
            )
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        writer = _writer(control)
        if self.pid and writer and writer != self.pid:
            # Its lines are short, so that each comes in one piece, or never.
            for line in data.split(b"\n")[:-1]:
                self.on_other(writer, line.decode(errors="replace"))
            return []
        *lines, rest = (self._unfinished + data).split(b"\n")
        self._unfinished = rest if len(rest) < LINE_MAX else b""
        return [line.decode(errors="replace") for line in lines]

    def refuse(self) -> None:
        """Let nothing more be written; what was can still be received."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)


def _writer(control: list[tuple[int, int, bytes]]) -> int:
    """The process that has written what came, as the kernel says; 0 if it does not."""
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            process, _, _ = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])
            return int(process)
    return 0


class LocalChild:
    """A process of this host; see `Child`. All of its descriptors are read by the selector's loop."""

    def __init__(
        self,
        process: Process,
        output: Output,
        line: ControlLine,
        report: BinaryIO | None,
        *,
        host: str,
        restarts: int,
        kills_rest: bool,
        on_reaped: Callable[[LocalChild], None],
    ) -> None:
        """`output` is what it prints, and prints of errors; `report` is where a rank's traceback comes.

        With `kills_rest` what it has started is killed with it when it fails. `on_reaped` is called when its number may
        come to mean another process.
        """
        self.process, self.host, self.restarts = process, host, restarts
        self._line, self._report = line, report
        self._reported = bytearray()
        self._kills_rest, self._on_reaped = kills_rest, on_reaped
        #: Readable when the process has ended. Epoll keeps the order in which several ended.
        self._pidfd = os.pidfd_open(process.pid)
        self._pipes: dict[Stream, BinaryIO] = dict(zip(STREAMS, output, strict=True))
        self._paused: set[Stream] = set()
        self._writing = self._reaped = False

    @property
    def pid(self) -> int:
        """The process's number, which is its group's and session's too."""
        return self.process.pid

    @property
    def usage(self) -> Usage:
        """As /proc has it now."""
        return usage_of(self.pid)

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Be read by this selector's loop, once it is observed."""
        self._selector = selector

    def observe(self, observer: Observer) -> None:
        """Read all that comes from now on."""
        self._observer = observer
        started = StartedMembers(self._selector, observer.member_ended)
        self._line.pid, self._line.on_other = self.pid, started.take
        self._selector.register(self._pidfd, selectors.EVENT_READ, self._end)
        self._selector.register(self._line.socket, selectors.EVENT_READ, self._exchange)
        self._watch_line()
        for stream in STREAMS:
            os.set_blocking(self._pipes[stream].fileno(), False)
            self._register(stream)
        if self._report is not None:
            os.set_blocking(self._report.fileno(), False)
            self._selector.register(self._report, selectors.EVENT_READ, self._read_report)

    def send(self, report: ToProcess) -> None:
        """Say it to the process."""
        self.send_line(encode(report).encode())

    def send_line(self, line: bytes) -> None:
        """The same, encoded already."""
        self._line.send_line(line)
        self._watch_line()

    def signal(self, number: int) -> None:
        """Send a signal to the process's group, while its number is its own."""
        if not self._reaped:
            # Not permitted: all of them have become another user's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def signal_alone(self, number: int) -> None:
        """Send a signal to the process.

        Not by `subprocess.Popen`, which looks first whether the process has ended, and takes its exit status
        then: that is for `_end`.
        """
        if not self._reaped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._pidfd, number)

    # Output

    def pause_output(self) -> None:
        """Read neither stream."""
        for stream in tuple(self._pipes):
            self.pause(stream)

    def resume_output(self) -> None:
        """Read both again."""
        for stream in tuple(self._pipes):
            self.resume(stream)

    def pause(self, stream: Stream) -> None:
        """Read one stream no more for a while."""
        if stream in self._pipes and stream not in self._paused:
            self._selector.unregister(self._pipes[stream])
            self._paused.add(stream)

    def resume(self, stream: Stream) -> None:
        """Read that stream again."""
        if stream in self._paused:
            self._paused.discard(stream)
            self._register(stream)

    def close_output(self) -> None:
        """Close what is still open: something that could not be killed holds the other end."""
        for stream in tuple(self._pipes):
            self._close(stream)

    def _register(self, stream: Stream) -> None:
        self._selector.register(
            self._pipes[stream], selectors.EVENT_READ, lambda: self._read(stream)
        )

    def _read(self, stream: Stream) -> bool:
        """Pass on what one read gives; whether there may be more."""
        data = self._pipes[stream].read(READ_SIZE)
        if data:
            self._observer.output(stream, data)
            return True
        if data is not None:  # the end, and not only nothing for now
            self._close(stream)
        return False

    def _close(self, stream: Stream) -> None:
        if stream not in self._paused:
            self._selector.unregister(self._pipes[stream])
        self._paused.discard(stream)
        self._pipes.pop(stream).close()
        self._observer.output_ended(stream)

    # Lines, the report, and the end

    def _exchange(self) -> None:
        """Write the lines that wait, and take those that have come."""
        self._line.write()
        self._receive()
        self._watch_line()

    def _watch_line(self) -> None:
        """Write on when the process has read, if there is more for it."""
        wanted, descriptor = self._line.waiting, self._line.socket.fileno()
        if wanted == self._writing or descriptor < 0:
            return
        if descriptor not in self._selector.get_map():  # it is not observed yet
            return
        self._writing = wanted
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        self._selector.modify(self._line.socket, events, self._exchange)

    def _receive(self) -> bool:
        """Pass on what has come on the line; whether more may come."""
        lines = self._line.receive()
        for line in lines or ():
            self._observer.line(line)
        if lines is None:
            self._hang_up()
        return lines is not None

    def _hang_up(self) -> None:
        if self._line.socket.fileno() >= 0:
            self._selector.unregister(self._line.socket)
            self._line.socket.close()

    def _read_report(self) -> None:
        if self._report is None:
            return
        data = self._report.read(REPORT_MAX)
        self._reported += (data or b"")[: REPORT_MAX - len(self._reported)]
        if data == b"":
            self._close_report()

    def _close_report(self) -> None:
        if self._report is not None:
            self._selector.unregister(self._report)
            self._report.close()
            self._report = None

    def _end(self) -> None:
        """It has ended: take the rest of what it has sent, and its exit status."""
        self._selector.unregister(self._pidfd)
        self._line.refuse()
        for _ in range(LINES_REST_MAX):
            if self._line.socket.fileno() < 0 or not self._receive():
                break
        self._hang_up()
        for stream in tuple(self._pipes):
            self._read_rest(stream)
        self._read_report()
        self._close_report()
        if self._kills_rest and self._has_failed():
            self.signal(signal.SIGKILL)
        os.close(self._pidfd)
        returncode = self.process.wait()
        self._reaped = True
        self._on_reaped(self)
        self._observer.ended(Exit(returncode, bytes(self._reported)))

    def _read_rest(self, stream: Stream) -> None:
        for _ in range(REST_MAX):
            if stream not in self._pipes or not self._read(stream):
                break

    def _has_failed(self) -> bool:
        ended = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        return ended is not None and ended.si_status != 0
