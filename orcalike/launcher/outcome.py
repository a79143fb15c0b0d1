"""How a run ended: which rank failed first, with which exit code, and the line that reports it.

Exit codes are those of docs/command-line.md.
"""

from __future__ import annotations

import signal
from typing import Literal

from orcalike.launcher.child import Exit
from orcalike.launcher.group_status import DEFAULT_NAME, Loss, names_of
from orcalike.transport.record import Record
from orcalike.transport.wording import counted

SIGNALLED = 128
USAGE = 2
OUTPUT_LOST = 73
STATE_LOST = 74
TIMED_OUT = 124
INTERNAL = 70

#: What a rank's first lines on its report pipe are (`orcalike.launcher.bootstrap`).
Kind = Literal["error", "consequence", "usage"]


class Report(Record):
    """What a rank reported about its uncaught exception."""

    kind: Kind
    text: str

    @classmethod
    def parse(cls, data: bytes) -> Report | None:
        """Read what came through the pipe; None if the rank reported nothing."""
        kind, _, text = data.decode(errors="replace").partition("\n")
        match kind:
            case "error" | "consequence" | "usage":
                return cls(kind, text)
        return None


class RankExit(Record):
    """One rank's end."""

    rank: int
    pid: int
    #: As `subprocess` has it: negative for a signal.
    returncode: int
    #: Seconds since the run began.
    after: float
    report: Report | None = None
    #: How often it had been started again before.
    restarts: int = 0
    #: The name of its host, in a run over several.
    host: str = ""
    #: Why nothing is known of it any more, if its host is lost.
    lost: str = ""

    @property
    def code(self) -> int:
        """The exit code as a shell would give it."""
        return exit_code(self.returncode)

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise than with 0."""
        return self.returncode != 0

    @property
    def hopeless(self) -> bool:
        """Whether it would end like this again, and each other rank too."""
        return self.report is not None and self.report.kind == "usage"

    @property
    def consequence(self) -> bool:
        """Whether it failed because another one went away."""
        return self.report is not None and self.report.kind == "consequence"


class Outcome(Record):
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
    return f"by {signal_name(-returncode)} (exit code {exit_code(returncode)})"


def signal_name(number: int) -> str:
    """`SIGKILL`, or `signal 40` if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def place_of(host: str, pid: int) -> str:
    """`pid 4711`, or `host b, pid 4711`."""
    return f"host {host}, pid {pid}" if host else f"pid {pid}"


def describe_failure(rank_exit: RankExit, how: str = "") -> str:
    """`rank 2 (pid 4711) failed with exit code 1 after 0.42 s`; `how` stands after the verb."""
    if rank_exit.lost:
        return (
            f"rank {rank_exit.rank} ({place_of(rank_exit.host, rank_exit.pid)}) was lost{how} "
            f"after {rank_exit.after:.2f} s: {rank_exit.lost}"
        )
    verb = "failed" if rank_exit.returncode > 0 else "was killed"
    return (
        f"rank {rank_exit.rank} ({place_of(rank_exit.host, rank_exit.pid)}) {verb}{how} "
        f"{describe_end(rank_exit.returncode)} after {rank_exit.after:.2f} s"
    )


def failure(first: RankExit, others_stopped: int) -> Outcome:
    """The outcome of a run that rank `first` ended."""
    if first.report is not None and first.hopeless:
        return Outcome(USAGE, f"orcalike: {first.report.text}")
    message = f"orcalike: {describe_failure(first, '' if first.restarts else ' first')}"
    if first.restarts:
        message += f"; it had been started again {_times(first.restarts)}"
    if others_stopped:
        message += f"; {counted(others_stopped, 'other')} stopped"
    return Outcome(first.code, message)


def survived(rank_exit: RankExit, others: int) -> str:
    """The line about a rank that failed, and without which the others go on."""
    if others == 0:
        return f"orcalike: {describe_failure(rank_exit)}; no other is left"
    go_on = "1 other goes on" if others == 1 else f"{others} others go on"
    return f"orcalike: {describe_failure(rank_exit)}; {go_on}"


def started_again(what: str, restarts: int, limit: int, pause: float) -> str:
    """The line about a process that is started again: `what` is how it ended."""
    when = f"in {pause:g} s " if pause else ""
    return f"orcalike: {what}; restarting {when}({restarts + 1} of {limit})"


def all_failed(first: RankExit) -> Outcome:
    """The outcome of a run that went on until there was no rank left, and all had failed."""
    return Outcome(first.code, f"orcalike: all ranks failed; {describe_failure(first, ' first')}")


def blocked_for_good(loss: Loss) -> Outcome:
    """The outcome of a run whose group cannot go on: what it knew is lost."""
    group = "the group" if loss.group == DEFAULT_NAME else f"the group {loss.group!r}"
    if loss.needed:
        why = f"{group} waits for more members than there are ranks left: {loss.rule}"
    elif not loss.missed and loss.rule:
        why = f"each member that {group} misses has ended ({loss.rule})"
    elif not loss.missed:
        why = f"all processes that were in {group} have ended"
    else:
        have = "has" if len(loss.missed) == 1 else "have"
        why = f"{group} waits for {names_of(loss.missed)}, which {have} ended"
        if loss.rule:
            why += f" ({loss.rule})"
    return Outcome(
        STATE_LOST,
        f"orcalike: blocked for good: {why}; the ranks were stopped. A higher resilience degree "
        "survives more; with --restart a lost rank is replaced before the next one is lost",
    )


def cannot_start(error: OSError, nprocs: int, host: str = "") -> Outcome:
    """The outcome of a run for which the system, on that host, had no room."""
    where = f" on host {host}" if host else ""
    return Outcome(
        INTERNAL,
        f"orcalike: cannot start {counted(nprocs, 'rank')}{where}: {error.strerror}; "
        "raise the limits (ulimit -n, ulimit -u) or lower -n",
    )


def output_lost(error: OSError, running: int) -> Outcome:
    """The outcome of a run whose output cannot be written any more; so many ranks are still there."""
    if isinstance(error, ConnectionError):  # the reader has what it wanted
        return Outcome(SIGNALLED + signal.SIGPIPE)
    message = f"orcalike: standard output cannot be written: {error.strerror}"
    return Outcome(OUTPUT_LOST, f"{message}; the ranks were stopped" if running else message)


def describe_witness(pid: int, end: Exit) -> str:
    """`the witness (pid 4711) ended by SIGKILL (exit code 137)`."""
    if end.lost:
        return f"the witness was lost: {end.lost}"
    return f"the witness (pid {pid}) ended {describe_end(end.returncode)}"


def go_on_without_witness(what: str, *, orders: bool, keeps: bool) -> str:
    """The line for a run that goes on without its witness, which ordered, or kept the state; `what` is how it ended."""
    ordered = ", and one of them orders" if orders else ""
    kept = "; if all end at once, their state is lost" if keeps else ""
    return f"orcalike: {what}; the ranks go on{ordered}{kept}"


def witness_lost(pid: int, end: Exit) -> Outcome:
    """The outcome of a run whose sequencer ended while ranks still needed it."""
    how = f"was lost: {end.lost}" if end.lost else f"ended {describe_end(end.returncode)}"
    return Outcome(
        INTERNAL,
        f"orcalike: the witness (pid {pid}), which orders the writes, {how}; the ranks were stopped",
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
