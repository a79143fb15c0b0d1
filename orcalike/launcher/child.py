"""A process of a run as the launcher sees it, on whichever host it is.

What a process does comes by calls of an `Observer`: its output, its lines (`launch_protocol.control_lines`),
and last its end. A process of this host is a `LocalChild`; one of another host, of which an agent
reports, a `RemoteChild`.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from orcalike.launch_protocol.control_lines import Role, ToProcess
from orcalike.transport.record import Record

#: What is kept of a traceback.
REPORT_MAX = 1 << 20

#: An output of a process: stdout or stderr, by its descriptor there.
Stream: TypeAlias = Literal[1, 2]
STREAMS: tuple[Stream, Stream] = (1, 2)


class Usage(Record):
    """What a process has used; None for what is not known."""

    #: Processor time, in seconds.
    cpu: float | None = None
    #: Resident memory, in bytes.
    memory: int | None = None
    #: Seconds since it began.
    age: float | None = None


class Exit(Record):
    """How a process ended."""

    #: As `subprocess` has it: negative for a signal.
    returncode: int
    #: What a rank has reported of its uncaught exception.
    report: bytes = b""
    #: Why nothing is known of the process any more, if its host is lost; "" for an end that was seen.
    lost: str = ""


class Observer(Protocol):
    """What is called with what one process does."""

    def line(self, line: str) -> None:
        """The process has sent a line."""

    def output(self, stream: Stream, data: bytes) -> None:
        """It, or what it has started, has printed this."""

    def output_ended(self, stream: Stream) -> None:
        """Nothing more comes there; it may be after the end of the process, whose children print too."""

    def member_ended(self, incarnation: int) -> None:
        """A process that it has started and that was this member was seen to end; it may be after the end of it."""

    def ended(self, end: Exit) -> None:
        """It has ended, and all that it has sent and printed itself has come."""

    def failed_to_start(self, error: OSError) -> None:
        """Its host had no room for it; nothing else comes."""


class Child(Protocol):
    """A process of this run, in a session of its own.

    In its own session a terminal's Ctrl-C does not reach it, and the launcher's signals reach it and what
    it started.
    """

    @property
    def pid(self) -> int:
        """Its number on its host; 0 while that is not known."""

    @property
    def host(self) -> str:
        """The name of its host."""

    @property
    def restarts(self) -> int:
        """How often it was started again."""

    @property
    def usage(self) -> Usage:
        """What it has used, as far as it is known here."""

    def observe(self, observer: Observer) -> None:
        """Call the observer from now on; it is called once."""

    def send(self, report: ToProcess) -> None:
        """Say it to the process; nothing happens if it has gone, or never reads."""

    def signal(self, number: int) -> None:
        """Send a signal to the process, as long as it has not ended, and to all that it started."""

    def signal_alone(self, number: int) -> None:
        """Send a signal to the process and to nothing that it started."""

    def pause_output(self) -> None:
        """Let it wait with its output from now on; little may still come."""

    def resume_output(self) -> None:
        """The end of that."""

    def close_output(self) -> None:
        """Take no more output, whatever has it open; `output_ended` is called for each stream."""


class Start(Record, kw_only=True):
    """One process that a host shall start."""

    role: Role
    #: Its place among the ranks of its host, and how many these are.
    slot: int = 0
    slots: int = 1
    #: The number of its host.
    node: int = 0
    #: Where it listens.
    listen: str
    #: Where the group can be joined: first at its first member, the witness or rank 0.
    seeds: tuple[str, ...]
    #: How often it was started again.
    restarts: int = 0
    #: The groups that were made before, which it must join and not make.
    formed: tuple[str, ...] = ()

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Start:
        """What `named` and JSON have made of one; raises TypeError for what is none."""
        start = cls(**values)
        return start.replace(seeds=tuple(start.seeds), formed=tuple(start.formed))


class Host(Protocol):
    """Where processes of a run are started."""

    @property
    def name(self) -> str:
        """As the user calls it."""

    def start(self, start: Start) -> Child:
        """Start a process; raises OSError if the system has no room for it."""

    def kill_rest(self) -> None:
        """Kill what the ranks have left behind: all but the processes that run."""

    def close(self) -> None:
        """The run is over: remove what was made for it."""
