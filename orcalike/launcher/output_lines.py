"""The ranks' output: cut into lines, marked with the rank, and written without mixing lines.

A `Stream` is one output of one rank; a `Destination` is where several of them end up. Rules:

- A line goes out whole when its newline has come. What has come without a newline goes out
  after `PARTIAL_SECONDS`, so that prompts and progress are seen; not before its stream was looked at
  once more, as a launcher that was held up finds the rest there.
- A line that was shown in part goes on where it was. If another stream's line comes first, it
  begins a new line, and the rest of the cut line gets its prefix again.
- Bytes stay as they are; nothing is decoded, nothing lost.
- Nothing here blocks: a destination that cannot take more keeps a queue, and the launcher
  stops reading the ranks while one is long.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time

from orcalike.launcher.nonblocking import reopen

#: How long what has no newline yet is held back.
PARTIAL_SECONDS = 0.2
#: A line longer than this is shown in parts.
LINE_MAX = 1 << 20
#: The ranks are not read while more than this waits to be written.
QUEUE_MAX = 1 << 18
#: What a pipe that is writable takes at once (PIPE_BUF), if no other process writes to it.
WRITE_SIZE = 4096
#: When what is writable, and took nothing, is tried again.
RETRY_SECONDS = 0.05

_COLORS = (36, 33, 32, 35, 34, 31)


class Destination:
    """One file that output goes to: the launcher's stdout, its stderr, or both in one."""

    def __init__(self, fd: int, *, color: bool = False) -> None:
        self.fd = reopen(fd, os.O_WRONLY)
        self.color = color
        #: Why it takes no more: a ConnectionError if its reader has gone. What is written from then on is dropped.
        self.error: OSError | None = None
        #: When to try again, if it took nothing though it was writable.
        self.retry_at: float | None = None
        self._queue = bytearray()
        self._unfinished: Stream | None = None
        self._poll = select.poll()
        self._poll.register(self.fd, select.POLLOUT)

    def __len__(self) -> int:
        """How many bytes wait to be written."""
        return len(self._queue)

    def put(self, stream: Stream, text: bytes) -> None:
        """Queue whole lines of `stream`, or whole lines and the beginning of one more."""
        goes_on = self._unfinished is stream
        if not goes_on:
            self.end_line()
            if stream.cut and text.startswith(b"\n"):
                text = text[1:]  # the cut line has been ended already
            stream.cut = False
            if not text:
                return
        ends = text.endswith(b"\n")
        body = text[:-1] if ends else text
        marked = body.replace(b"\n", b"\n" + stream.prefix) if stream.prefix else body
        self._queue += marked if goes_on else stream.prefix + marked
        if ends:
            self._queue += b"\n"
        self._unfinished = None if ends else stream

    def end_line(self) -> None:
        """End the line that is shown in part, if there is one."""
        if self._unfinished is not None:
            self._queue += b"\n"
            self._unfinished.cut = True
            self._unfinished = None

    def clear(self) -> None:
        """Drop output that is not written yet."""
        self._queue.clear()

    def drain(self) -> None:
        """Write as much of the queue as can be written now."""
        self.retry_at = None
        while self._queue and self._poll.poll(0):
            try:
                written = os.write(self.fd, self._queue[:WRITE_SIZE])
            except BlockingIOError:
                # Another process was faster; or a terminal has room for one byte, and a newline is two there.
                self.retry_at = time.monotonic() + RETRY_SECONDS
                return
            except OSError as error:
                self.error = self.error or self._as_gone(error)
                written = len(self._queue)
            del self._queue[:written]

    def _as_gone(self, error: OSError) -> OSError:
        """The same; a terminal that has gone is a reader that has."""
        if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(self.fd).st_mode):
            return BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        return error


class Stream:
    """One output of one rank, on its way from bytes to marked lines."""

    def __init__(self, destination: Destination, prefix: bytes = b"") -> None:
        self.destination = destination
        self.prefix = prefix
        #: A line of this stream was shown in part and then ended by another stream's.
        self.cut = False
        #: When what has no newline yet is to be shown, or None.
        self.deadline: float | None = None
        #: When it was fed last.
        self.fed_at = 0.0
        self._partial = bytearray()

    def feed(self, data: bytes, now: float) -> None:
        """Take what was read from the rank; whole lines go on at once."""
        self.fed_at = now
        end = data.rfind(b"\n") + 1
        if end:
            self.destination.put(self, bytes(self._partial) + data[:end])
            self._partial = bytearray(data[end:])
            self.deadline = now + PARTIAL_SECONDS if self._partial else None
            return
        self._partial += data
        if len(self._partial) > LINE_MAX:
            self.flush()
        elif self.deadline is None and self._partial:
            self.deadline = now + PARTIAL_SECONDS

    def flush(self) -> None:
        """Show what has no newline yet."""
        self.deadline = None
        if self._partial:
            self.destination.put(self, bytes(self._partial))
            self._partial.clear()


def prefix(label: str, *, color: bool) -> bytes:
    """`[2] `, in the color of its number if colors are wanted."""
    if not color:
        return f"[{label}] ".encode()
    number = _COLORS[int(label) % len(_COLORS)] if label.isdecimal() else 37
    return f"\x1b[{number}m[{label}]\x1b[0m ".encode()


def destinations(color: bool | None) -> tuple[Destination, Destination]:
    """The launcher's stdout and stderr; one destination if they are the same file.

    `color` forces colors on or off; None asks NO_COLOR, FORCE_COLOR and the terminal.
    """
    stdout = Destination(1, color=_wants_color(1, color))
    if _same_file(1, 2):
        return stdout, stdout
    return stdout, Destination(2, color=_wants_color(2, color))


def _wants_color(fd: int, color: bool | None) -> bool:
    if color is not None:
        return color
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.isatty(fd) and os.environ.get("TERM") != "dumb"


def _same_file(one: int, other: int) -> bool:
    return os.path.sameopenfile(one, other)
