"""How a run ended: which rank failed first, with which exit code, and what is said of it.

Exit codes are those of USERS.md 2.6.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

SIGNALLED = 128
USAGE = 2
TIMED_OUT = 124
INTERNAL = 70

#: What a rank's first lines on its report pipe say (`orcalike.launch.rank`).
Kind = Literal["error", "consequence", "usage"]


@dataclass(frozen=True, slots=True)
class Report:
    """What a rank said about its uncaught exception."""

    kind: Kind
    text: str

    @classmethod
    def parse(cls, data: bytes) -> Report | None:
        """Read what came through the pipe; None where the rank said nothing."""
        kind, _, text = data.decode(errors="replace").partition("\n")
        match kind:
            case "error" | "consequence" | "usage":
                return cls(kind, text)
        return None


@dataclass(frozen=True, slots=True)
class Ending:
    """One rank's end."""

    rank: int
    pid: int
    #: As `subprocess` has it: negative for a signal.
    returncode: int
    #: Seconds since the run began.
    after: float
    report: Report | None = None

    @property
    def code(self) -> int:
        """The exit code as a shell would give it."""
        return exit_code(self.returncode)

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise than with 0."""
        return self.returncode != 0

    @property
    def consequence(self) -> bool:
        """Whether it failed because another one went away."""
        return self.report is not None and self.report.kind == "consequence"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run's own end: its exit code, and the last line on stderr ("" for none)."""

    code: int
    message: str = ""


def exit_code(returncode: int) -> int:
    """128 + S for a process that signal S killed, else its own code."""
    return SIGNALLED - returncode if returncode < 0 else returncode


def describe_end(returncode: int) -> str:
    """`with exit code 1`, or `by SIGKILL (exit code 137)`."""
    if returncode >= 0:
        return f"with exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"by {name} (exit code {exit_code(returncode)})"


def failure(first: Ending, others_stopped: int) -> Outcome:
    """The outcome of a run whose rank `first` failed first."""
    if first.report is not None and first.report.kind == "usage":
        return Outcome(USAGE, f"orcalike: {first.report.text}")
    verb = "failed first" if first.returncode > 0 else "was killed first"
    message = (
        f"orcalike: rank {first.rank} (pid {first.pid}) {verb} "
        f"{describe_end(first.returncode)} after {first.after:.2f} s"
    )
    if others_stopped:
        message += f"; {others_stopped} other{'s' if others_stopped > 1 else ''} stopped"
    return Outcome(first.code, message)


def cannot_start(error: OSError, nprocs: int) -> Outcome:
    """The outcome of a run for which the system had no room."""
    return Outcome(
        INTERNAL,
        f"orcalike: cannot start {nprocs} ranks: {error.strerror}; "
        "raise the limits (ulimit -n, ulimit -u) or lower -n",
    )


def witness_lost(pid: int, returncode: int) -> Outcome:
    """The outcome of a run whose sequencer ended while ranks still needed it."""
    return Outcome(
        INTERNAL,
        f"orcalike: the witness (pid {pid}), which orders the writes, ended "
        f"{describe_end(returncode)}; the ranks were stopped",
    )
