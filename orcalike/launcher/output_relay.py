"""Moving output from the processes to the launcher's stdout and stderr.

They wait with it while much is left to write, so a slow reader of the launcher slows
the ranks down, and nothing is lost or piled up.
"""

from __future__ import annotations

import selectors
import time

from orcalike.launcher.child import STREAMS, Child
from orcalike.launcher.child import Stream as Number
from orcalike.launcher.output_lines import QUEUE_MAX, Stream, destinations, prefix


class OutputRelay:
    """All streams of a run."""

    def __init__(
        self, selector: selectors.BaseSelector, *, prefix: bool, color: bool | None
    ) -> None:
        self._selector = selector
        self._prefix = prefix
        self._stdout, self._stderr = destinations(color)
        self._destinations = {self._stdout.fd: self._stdout, self._stderr.fd: self._stderr}
        self._watched: set[int] = set()
        self._streams: dict[tuple[Child, Number], Stream] = {}
        self._paused = False
        self._notices = Stream(self._stderr)

    @property
    def reading(self) -> bool:
        """Whether a stream is open from which more may come."""
        return bool(self._streams)

    @property
    def writing(self) -> bool:
        """Whether something waits to be written."""
        return any(self._destinations.values())

    @property
    def error(self) -> OSError | None:
        """Why the launcher's stdout takes no more: a ConnectionError if its reader has gone."""
        return self._stdout.error

    def attend(self, child: Child, label: str) -> None:
        """Take a process's stdout and stderr from now on; it is observed already."""
        for number, to in zip(STREAMS, (self._stdout, self._stderr), strict=True):
            self._streams[child, number] = Stream(to, self._mark(label, color=to.color))
        if self._paused:
            child.pause_output()

    def feed(self, child: Child, number: Number, data: bytes) -> None:
        """A process has printed this."""
        self._streams[child, number].feed(data, time.monotonic())

    def end(self, child: Child, number: Number) -> None:
        """Nothing more comes there."""
        self._streams.pop((child, number)).flush()

    def give_up_reading(self) -> None:
        """Take no more: something that could not be killed has the streams still open."""
        for child in {child for child, _ in self._streams}:
            child.close_output()

    def notice(self, text: str) -> None:
        """Say something to the user, in the launcher's own name."""
        self._notices.feed(text.encode() + b"\n", 0.0)

    def show(self, label: str, text: str) -> None:
        """Show text on stderr as if the process with this label had printed it."""
        stream = Stream(self._stderr, self._mark(label, color=self._stderr.color))
        stream.feed(text.encode(errors="backslashreplace"), 0.0)
        stream.flush()

    def next_deadline(self) -> float | None:
        """When the next line without an end is to be shown, or a file is tried again."""
        deadlines = [stream.deadline for stream in self._streams.values()]
        deadlines += [destination.retry_at for destination in self._destinations.values()]
        return min((each for each in deadlines if each is not None), default=None)

    def show_partial(self, looked_at: float) -> None:
        """Show the lines that have waited long enough for their end, if nothing came when all streams were looked at last."""
        for stream in self._streams.values():
            if stream.deadline is not None and stream.deadline <= looked_at >= stream.fed_at:
                stream.flush()

    def finish(self) -> None:
        """Nothing will come from the processes any more: end the last lines."""
        if self._prefix:
            for destination in self._destinations.values():
                destination.end_line()

    def abandon(self) -> None:
        """Drop what is not taken."""
        for destination in self._destinations.values():
            destination.clear()

    def write(self) -> None:
        """Write what can be written now, and see to it that the rest is, when it can be."""
        for fd, destination in self._destinations.items():
            destination.drain()
            # An event that says "writable" again and again is of no use if nothing can be written.
            wanted = bool(destination) and destination.retry_at is None
            if wanted and fd not in self._watched:
                self._watched.add(fd)
                self._selector.register(fd, selectors.EVENT_WRITE, destination.drain)
            elif not wanted and fd in self._watched:
                self._watched.remove(fd)
                self._selector.unregister(fd)
        self._pace()

    def _pace(self) -> None:
        full = max(map(len, self._destinations.values())) > QUEUE_MAX
        if full == self._paused:
            return
        self._paused = full
        for child in {child for child, _ in self._streams}:
            if full:
                child.pause_output()
            else:
                child.resume_output()

    def _mark(self, label: str, *, color: bool) -> bytes:
        return prefix(label, color=color) if self._prefix else b""
