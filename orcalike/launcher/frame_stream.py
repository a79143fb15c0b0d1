"""Frames over two descriptors, as events of a selector's loop: nothing blocks, and nothing is lost."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable

from orcalike.launcher.frames import Frame, FrameError, FrameReader

READ_SIZE = 1 << 16
#: One side that takes nothing, while more than this waits to be written to it, is given up.
QUEUE_MAX = 1 << 24


class FrameStream:
    """One side of a connection between launcher and agent.

    `on_frame` gets each frame, and may raise FrameError for one that it cannot believe; `on_end` is called
    once, with why no more comes.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        reader: int,
        writer: int,
        on_frame: Callable[[Frame], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._selector, self._reader, self._writer = selector, reader, writer
        self._on_frame, self._on_end = on_frame, on_end
        self._frames = FrameReader()
        self._queue = bytearray()
        self._writing = False
        self.open = True
        for descriptor in (reader, writer):
            os.set_blocking(descriptor, False)
        selector.register(reader, selectors.EVENT_READ, self.read)

    @property
    def queued(self) -> int:
        """How many bytes wait to be written."""
        return len(self._queue)

    def send(self, frame: Frame) -> None:
        """Send a frame, now or as soon as it can be written."""
        if not self.open:
            return
        self._queue += frame.encode()
        self._write()
        if len(self._queue) > QUEUE_MAX:
            self._end("it does not take what is sent to it")

    def feed(self, data: bytes) -> None:
        """Take bytes that came before the stream was made."""
        try:
            for frame in self._frames.feed(data):
                if self.open:
                    self._on_frame(frame)
        except FrameError as error:
            self._end(f"it has sent what cannot be understood: {error}")

    def close(self) -> None:
        """Neither read nor write any more."""
        if not self.open:
            return
        self.open = False
        self._selector.unregister(self._reader)
        if self._writing:
            self._selector.unregister(self._writer)

    def read(self) -> bool:
        """Take what has come; whether there may be more."""
        try:
            data = os.read(self._reader, READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self.feed(data)
        else:
            self._end("the connection has ended")
        return bool(data)

    def _write(self) -> None:
        try:
            while self._queue:
                written = os.write(self._writer, self._queue[:READ_SIZE])
                del self._queue[:written]
        except BlockingIOError:
            pass
        except OSError:  # its end is seen when it is read
            self._queue.clear()
        if bool(self._queue) != self._writing:
            self._writing = not self._writing
            if self._writing:
                self._selector.register(self._writer, selectors.EVENT_WRITE, self._write)
            else:
                self._selector.unregister(self._writer)

    def _end(self, why: str) -> None:
        if self.open:
            self.close()
            self._on_end(why)
