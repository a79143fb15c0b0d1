"""What the launcher and the agent of a host send each other: frames on a stream of bytes.

A frame is its kind (1 byte), the process that it is about (4 bytes; 0 for none), the length of what follows (4 bytes),
big-endian, so many bytes, and a newline: Open MPI's `mpiexec` passes output on when a line is complete, and keeps the
rest until the process ends. The launcher numbers the processes of a host by their starts, from 1.

| to the agent | |
| --- | --- |
| `PROBE` | JSON, a list of addresses: connect to each of them |
| `START` | JSON, a `Start`: start a process |
| `SIGNAL` | a signal's number, and 1 if it is for the process alone, else 0: 2 bytes |
| `LINE` | a line for the process |
| `INPUT` | for the standard input of the process; nothing: its end |
| `CREDIT` | stdout or stderr (1 byte), and how many more bytes of it may come (4 bytes) |
| `CLOSE` | take no more output of the process |
| `PING` | how many seconds the agent may go on with nothing received (4 bytes) |
| `KILL_REST` | kill what processes have left behind |
| `QUIT` | the run is over |

| to the launcher | |
| --- | --- |
| `HELLO` | JSON, a `HostReport`: the first frame |
| `PROBED` | JSON, why each address cannot be reached, "" for one that can be |
| `STARTED` | the process's number on its host (4 bytes) |
| `REFUSED` | JSON, the system's number and text of an error: the process was not started |
| `OUT`, `ERR` | what the process has printed on stdout or stderr; nothing: its end |
| `LINE` | a line of the process |
| `CREDIT` | 0 (1 byte), and how many bytes of its input the process has taken (4 bytes) |
| `ENDED` | the exit status (4 bytes, signed, negative for a signal), and the report of an exception |
| `DIED` | a member whose process was seen to end, which a process here had started: its incarnation (8 bytes) |
| `PONG` | JSON, what each process has used, by number: seconds of processor time, bytes of memory, its age in seconds |

Each side takes only its own kinds; what is longer than `FRAME_MAX` or no kind at all ends the connection.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import NamedTuple

from orcalike.launcher.child import REPORT_MAX

HEADER = struct.Struct("!BII")
END = b"\n"
#: The longest content: a report of an exception, or a `HELLO`.
FRAME_MAX = REPORT_MAX + 64

CREDIT = struct.Struct("!BI")
NUMBER = struct.Struct("!I")
STATUS = struct.Struct("!i")
SIGNAL = struct.Struct("!BB")
MEMBER = struct.Struct("!Q")

#: How much of a stream may be under way, so that a slow reader of the launcher slows the process down.
WINDOW = 1 << 18


class FrameError(Exception):
    """What has come is no frame; the connection cannot go on."""


class Kind(enum.IntEnum):
    """What a frame is."""

    HELLO = 1
    PROBE = 2
    PROBED = 3
    START = 4
    STARTED = 5
    REFUSED = 6
    SIGNAL = 7
    LINE = 8
    INPUT = 9
    OUT = 10
    ERR = 11
    CREDIT = 12
    CLOSE = 13
    ENDED = 14
    PING = 15
    PONG = 16
    KILL_REST = 17
    QUIT = 18
    DIED = 19


class Frame(NamedTuple):
    """One frame."""

    kind: Kind
    process: int = 0
    data: bytes = b""

    def encode(self) -> bytes:
        """Its bytes."""
        return HEADER.pack(self.kind, self.process, len(self.data)) + self.data + END


class FrameReader:
    """Cuts what comes into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with this; raises FrameError."""
        self._rest += data
        while len(self._rest) >= HEADER.size:
            kind, process, length = HEADER.unpack_from(self._rest)
            if length > FRAME_MAX:
                raise FrameError(f"a frame of {length} bytes")
            try:
                kind = Kind(kind)
            except ValueError:
                raise FrameError(f"a frame of kind {kind}") from None
            end = HEADER.size + length
            if len(self._rest) < end + len(END):
                return
            if not self._rest.startswith(END, end):
                raise FrameError("a frame without its end")
            content = bytes(self._rest[HEADER.size : end])
            del self._rest[: end + len(END)]
            yield Frame(kind, process, content)
