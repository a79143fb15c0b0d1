"""A process of a run on another host, as far as the frames of its host's agent report of it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from json import dumps, loads

from orcalike.launch_protocol.control_lines import LINE_MAX, ToProcess, encode
from orcalike.launcher.child import STREAMS, Exit, Observer, Start, Stream, Usage
from orcalike.launcher.frames import (
    CREDIT,
    NUMBER,
    SIGNAL,
    STATUS,
    WINDOW,
    Frame,
    FrameError,
    Kind,
)
from orcalike.launcher.local_child import READ_SIZE, REST_MAX

#: The exit code of a process that is lost with its host (docs/command-line.md).
LOST = 69
#: What may come of a stream beyond the credit: what a process has left in its pipe at its end.
REST_BYTES = (REST_MAX + 1) * READ_SIZE

_STREAM_OF: dict[Kind, Stream] = {Kind.OUT: 1, Kind.ERR: 2}


class RemoteChild:
    """See `Child`."""

    def __init__(self, number: int, host: str, start: Start, send: Callable[[Frame], None]) -> None:
        """Have it started; `number` is what launcher and agent call it, `send` sends to the agent."""
        self.host, self.restarts = host, start.restarts
        self.pid = 0
        self.usage = Usage()
        self.on_input_taken: Callable[[int], None] = lambda count: None
        """Called when the process has taken so many bytes of its input."""
        self._number, self._send_frame = number, send
        self._observer: Observer | None = None
        self._open: set[Stream] = set(STREAMS)
        self._taken: dict[Stream, int] = {1: 0, 2: 0}
        """Bytes for which the agent has no new credit yet."""
        self._paused = self.ended = False
        self._send(Kind.START, dumps(start.named()).encode())

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.ended and not self._open

    def observe(self, observer: Observer) -> None:
        """Call the observer from now on."""
        self._observer = observer

    def send(self, report: ToProcess) -> None:
        """Say it to the process."""
        if not self.ended:
            self._send(Kind.LINE, encode(report).encode())

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that it started."""
        if not self.ended:
            self._send(Kind.SIGNAL, SIGNAL.pack(number, 0))

    def signal_alone(self, number: int) -> None:
        """Send a signal to the process alone."""
        if not self.ended:
            self._send(Kind.SIGNAL, SIGNAL.pack(number, 1))

    def give_input(self, data: bytes) -> None:
        """For its standard input; nothing: the end of it."""
        if not self.ended:
            self._send(Kind.INPUT, data)

    def pause_output(self) -> None:
        """Give no more credit."""
        self._paused = True

    def resume_output(self) -> None:
        """Give credit for all that was taken."""
        self._paused = False
        for stream in STREAMS:
            self._give_credit(stream)

    def close_output(self) -> None:
        """Have the agent close what is open."""
        self._send(Kind.CLOSE, b"")

    def lose(self, why: str) -> None:
        """Its host is lost, and so is all that it did."""
        for stream in tuple(self._open):
            self._end_output(stream)
        if not self.ended:
            self.ended = True
            self._observed.ended(Exit(LOST, lost=why))

    def take(self, frame: Frame) -> None:
        """A frame about it; raises FrameError for one that cannot be believed."""
        try:
            self._take(frame)
        except (struct.error, ValueError, TypeError):
            raise FrameError(f"{frame.kind.name} that cannot be understood") from None

    def _take(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.STARTED:
                (self.pid,) = NUMBER.unpack(frame.data)
            case Kind.OUT | Kind.ERR:
                self._take_output(_STREAM_OF[frame.kind], frame.data)
            case Kind.LINE if not self.ended and len(frame.data) <= LINE_MAX:
                self._observed.line(frame.data.decode(errors="replace"))
            case Kind.CREDIT:
                _, count = CREDIT.unpack(frame.data)
                self.on_input_taken(count)
            case Kind.ENDED if not self.ended:
                (returncode,) = STATUS.unpack_from(frame.data)
                self.ended = True
                self._observed.ended(Exit(returncode, frame.data[STATUS.size :]))
            case Kind.REFUSED if not self.pid and not self.ended:
                number, text = loads(frame.data)
                self.ended = True
                for stream in STREAMS:
                    self._end_output(stream)
                self._observed.failed_to_start(OSError(int(number), str(text)))
            case _:
                raise FrameError(f"{frame.kind.name} of a process that has ended, or too long")

    def _take_output(self, stream: Stream, data: bytes) -> None:
        if stream not in self._open:
            return
        if not data:
            self._end_output(stream)
            return
        self._taken[stream] += len(data)
        if self._taken[stream] > WINDOW + REST_BYTES:
            raise FrameError("more output than was asked for")
        self._observed.output(stream, data)
        if not self._paused:
            self._give_credit(stream)

    def _end_output(self, stream: Stream) -> None:
        self._open.discard(stream)
        self._observed.output_ended(stream)

    def _give_credit(self, stream: Stream) -> None:
        """For what was taken, when that is worth a frame."""
        taken = self._taken[stream]
        if taken >= WINDOW // 4 and stream in self._open:
            self._taken[stream] = 0
            self._send(Kind.CREDIT, CREDIT.pack(stream, taken))

    @property
    def _observed(self) -> Observer:
        assert self._observer is not None
        return self._observer

    def _send(self, kind: Kind, data: bytes) -> None:
        self._send_frame(Frame(kind, self._number, data))
