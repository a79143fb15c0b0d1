"""A process of an agent: what it does becomes frames to the launcher, and what the launcher sends reaches it."""

from __future__ import annotations

import contextlib
import os
import selectors
from collections.abc import Callable

from orcalike.launcher.child import REPORT_MAX, STREAMS, Exit, Stream
from orcalike.launcher.frame_stream import FrameStream
from orcalike.launcher.frames import CREDIT, MEMBER, STATUS, WINDOW, Frame, FrameError, Kind
from orcalike.launcher.local_child import LocalChild

KINDS: dict[Stream, Kind] = {1: Kind.OUT, 2: Kind.ERR}


class AgentChild:
    """It lets the process wait with its output while the launcher has taken none of the last `WINDOW` bytes."""

    def __init__(
        self,
        number: int,
        local: LocalChild,
        stream: FrameStream,
        selector: selectors.BaseSelector,
        stdin: int,
        forget: Callable[[], object],
    ) -> None:
        """`stdin` is where its input is written to, or -1; `forget` is called when nothing more comes of it."""
        self.number, self.local = number, local
        self._stream, self._selector, self._forget = stream, selector, forget
        self._credit: dict[Stream, int] = {1: WINDOW, 2: WINDOW}
        self._open: set[Stream] = {1, 2}
        self._stdin = stdin
        self._input = bytearray()
        self._input_ends = self._writing = self._ended = False
        if stdin >= 0:
            os.set_blocking(stdin, False)
        local.observe(self)

    # What the process does (`Observer`)

    def line(self, line: str) -> None:
        """Pass it on."""
        self._send(Kind.LINE, line.encode(errors="backslashreplace"))

    def output(self, stream: Stream, data: bytes) -> None:
        """Pass it on, and let the process wait if that was enough for now."""
        self._credit[stream] -= len(data)
        self._send(KINDS[stream], data)
        if self._credit[stream] <= 0:
            self.local.pause(stream)

    def output_ended(self, stream: Stream) -> None:
        """Pass it on."""
        self._open.discard(stream)
        self._send(KINDS[stream], b"")
        self._forget_if_over()

    def ended(self, end: Exit) -> None:
        """Pass it on."""
        self._ended = True
        self._close_input()
        self._send(Kind.ENDED, STATUS.pack(end.returncode) + end.report[:REPORT_MAX])
        self._forget_if_over()

    def member_ended(self, incarnation: int) -> None:
        """Report it, as of the host: the launcher may have forgotten the process by now."""
        self._stream.send(Frame(Kind.DIED, 0, MEMBER.pack(incarnation)))

    def failed_to_start(self, error: OSError) -> None:
        """It has not, as it is here."""

    def _send(self, kind: Kind, data: bytes) -> None:
        self._stream.send(Frame(kind, self.number, data))

    def _forget_if_over(self) -> None:
        if self._ended and not self._open:
            self._forget()

    # What the launcher sends

    def take_credit(self, number: int, count: int) -> None:
        """So many more bytes of a stream may be sent."""
        stream: Stream = 1 if number == 1 else 2
        if number not in STREAMS or self._credit[stream] + count > WINDOW:
            raise FrameError(f"{count} bytes of credit for the stream {number}")
        self._credit[stream] += count
        if self._credit[stream] > 0:
            self.local.resume(stream)

    def take_input(self, data: bytes) -> None:
        """For the process's standard input; nothing: its end."""
        if len(self._input) + len(data) > WINDOW:
            raise FrameError("more input than was asked for")
        if not data:
            self._input_ends = True
        self._input += data
        self._write_input()

    def _write_input(self) -> None:
        taken = 0
        try:
            while self._input and self._stdin >= 0:
                written = os.write(self._stdin, self._input)
                del self._input[:written]
                taken += written
        except BlockingIOError:
            pass
        except OSError:  # the process has closed it
            self._close_input()
        if self._stdin < 0:
            taken += len(self._input)
            self._input.clear()
        if taken:
            self._send(Kind.CREDIT, CREDIT.pack(0, taken))
        if self._input_ends and not self._input:
            self._close_input()
        self._watch_input()

    def _watch_input(self) -> None:
        """Write on when the process has read, if there is more for it."""
        wanted = bool(self._input) and self._stdin >= 0
        if wanted != self._writing:
            self._writing = wanted
            if wanted:
                self._selector.register(self._stdin, selectors.EVENT_WRITE, self._write_input)
            else:
                self._selector.unregister(self._stdin)

    def _close_input(self) -> None:
        if self._stdin < 0:
            return
        if self._writing:
            self._selector.unregister(self._stdin)
            self._writing = False
        with contextlib.suppress(OSError):
            os.close(self._stdin)
        self._stdin = -1
