"""The launcher: one thread, one loop, from the first process to the exit code.

What happens comes in three ways: a file descriptor is ready (output, a process's end, a
signal's number), a timer is due, or nothing is left to wait for. The first thing that decides
the run's outcome wins: a rank that fails, a signal, the time limit, the witness's end. After
that the ranks are only brought to their end: a signal, a grace period, a stronger signal.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from orcalike.launch import processes, verdict
from orcalike.launch.guard import Guard
from orcalike.launch.job import Job, Options, threads_per_rank
from orcalike.launch.processes import Child
from orcalike.launch.pump import Pump
from orcalike.launch.verdict import Ending, Outcome, Report

#: How long a failure that looks like another's consequence waits for that other one.
SETTLE_SECONDS = 1.0
#: How long the ranks have to print their stacks, and the witness to end, when asked to.
ASK_SECONDS = 1.0

_STOP = (signal.SIGTERM, signal.SIGKILL)
_INTERRUPT = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def launch(options: Options) -> int:
    """Run a program as the options say; returns the exit code of USERS.md 2.6.

    The calling process must have one thread and no children: it is the launcher from here on.

    Raises LaunchError where it cannot start.
    """
    _open_standard_files()
    job = Job.create(options)
    guard = Guard(job.directory)
    try:
        return _Launcher(job, guard).run()
    finally:
        guard.close()


class _Launcher:
    def __init__(self, job: Job, guard: Guard) -> None:
        self.job = job
        self.options = job.options
        self.guard = guard
        self.began = time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.pump = Pump(self.selector, prefix=job.options.prefix, color=job.options.color)
        self.timers: dict[str, tuple[float, Callable[[], None]]] = {}
        self.ranks: dict[int, Child] = {}
        self.witness: Child | None = None
        self.outcome: Outcome | None = None
        self.consequences: list[Ending] = []

    # The course of a run

    def run(self) -> int:
        """From the start to the last line of output."""
        self._take_signals()
        processes.adopt_orphans()
        self._start()
        while self.ranks:
            self._turn()
        self._wind_up()
        while self.witness or self.pump.reading:
            self._turn()
        self._say_goodbye()
        while self.pump.writing:
            self._turn()
        return self.outcome.code if self.outcome else 0

    def _start(self) -> None:
        if not self.options.quiet:
            self.pump.notice(self._describe())
            self.pump.write()
        try:
            self.job.listen()
            if self.options.sequencer == "witness":
                self.witness = processes.start_witness(self.job)
                self._attend(self.witness, "witness", self._witness_ended)
            for rank in range(self.options.nprocs):
                child = self.ranks[rank] = processes.start_rank(self.job, rank)
                self._attend(child, str(rank), partial(self._rank_ended, rank))
        except OSError as error:
            self._decide(verdict.cannot_start(error, self.options.nprocs))
            self._stop(_STOP)
        finally:
            self.job.close_listener()
        signal.signal(signal.SIGUSR1, _wake_up)  # ignored until here, so the ranks begin so
        if self.options.timeout is not None:
            self._at("timeout", self.options.timeout, self._time_is_up)

    def _attend(self, child: Child, label: str, ended: Callable[[], None]) -> None:
        """Read what a process says from now on, and notice its end."""
        self.guard.watch(child.pid)
        self.selector.register(child.pidfd, selectors.EVENT_READ, ended)
        self.pump.attend(child, label)
        if child.report is not None:
            read = partial(self._read_report, child)
            self.selector.register(child.report, selectors.EVENT_READ, read)

    def _wind_up(self) -> None:
        """The ranks have ended: end the witness, and what the ranks left behind."""
        if self.consequences:
            self._fail(self.consequences[0])
        self.timers.clear()
        spared = {self.guard.pid}
        if self.witness is not None:
            spared.add(self.witness.pid)
            self.witness.dismiss()
            self._at("witness", ASK_SECONDS, partial(self.witness.signal, signal.SIGKILL))
        processes.kill_orphans(spared)
        self._at("output", 2 * ASK_SECONDS, self.pump.give_up_reading)

    def _say_goodbye(self) -> None:
        self.pump.finish()
        if self.outcome is None and not self.options.quiet:
            self.pump.notice(f"[orcalike] done in {time.monotonic() - self.began:.1f} s")
        elif self.outcome is not None and self.outcome.message:
            self.pump.notice(self.outcome.message)
        self.pump.write()

    def _turn(self) -> None:
        """Wait for something to happen, and let it."""
        registered = self.selector.get_map()
        for key, _ in self.selector.select(self._until_next()):
            if registered.get(key.fd) is key:  # nobody closed it in this same turn
                key.data()
        now = time.monotonic()
        for name, (at, callback) in list(self.timers.items()):
            if at <= now:
                del self.timers[name]
                callback()
        self.pump.show_partial(now)
        self.pump.write()
        if self.pump.reader_gone and self._decide(Outcome(verdict.SIGNALLED + signal.SIGPIPE)):
            self._stop(_STOP)

    def _until_next(self) -> float | None:
        times = [at for at, _ in self.timers.values()]
        if (deadline := self.pump.next_deadline()) is not None:
            times.append(deadline)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _at(self, name: str, seconds: float, callback: Callable[[], None]) -> None:
        """Call back once in so many seconds; a name has one timer."""
        self.timers[name] = (time.monotonic() + seconds, callback)

    # Ends

    def _rank_ended(self, rank: int) -> None:
        child = self.ranks.pop(rank)
        after = time.monotonic() - self.began
        orderer = self.witness or self.ranks.get(0)
        if orderer is not None:
            orderer.tell(f"ended {rank}\n")
        self.pump.read_rest(child)
        self._read_report(child)
        self._close_report(child)
        returncode = self._reap(child)
        report = Report.parse(bytes(child.reported))
        ending = Ending(rank, child.pid, returncode, after, report)
        if not ending.failed or self.outcome is not None:
            return
        if not ending.consequence:
            self._fail(ending)
            return
        self.consequences.append(ending)
        if len(self.consequences) == 1:
            self._at("settle", SETTLE_SECONDS, partial(self._fail, ending))

    def _read_report(self, child: Child) -> None:
        if not child.read_report():
            self._close_report(child)

    def _close_report(self, child: Child) -> None:
        if child.report is not None:
            self.selector.unregister(child.report)
            child.report.close()
            child.report = None

    def _reap(self, child: Child) -> int:
        self.selector.unregister(child.pidfd)
        returncode = child.reap()
        self.guard.forget(child.pid)
        return returncode

    def _fail(self, first: Ending) -> None:
        """The run fails with this rank: show its traceback, and stop the others."""
        if not self._decide(verdict.failure(first, len(self.ranks))):
            return
        if first.report is not None and first.report.kind != "usage":
            self.pump.show(str(first.rank), first.report.text)
        self._stop(_STOP)

    def _witness_ended(self) -> None:
        assert self.witness is not None
        witness, self.witness = self.witness, None
        self.pump.read_rest(witness)
        returncode = self._reap(witness)
        if self.ranks and self._decide(verdict.witness_lost(witness.pid, returncode)):
            self._stop(_STOP)

    def _decide(self, outcome: Outcome) -> bool:
        """Make this the run's outcome, if it has none yet."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        return True

    # Stopping

    def _stop(self, signals: tuple[signal.Signals, ...]) -> None:
        """Send the ranks the first signal now, and the next after each grace period."""
        number, *rest = signals
        for child in self.ranks.values():
            child.signal(number)
            if number == signal.SIGTERM:
                child.signal(signal.SIGCONT)  # a stopped process would never see it
        if rest:
            self._at("stop", self.options.grace, partial(self._stop, tuple(rest)))

    def _time_is_up(self) -> None:
        limit = f"{self.options.timeout:g} s"
        if not self._decide(Outcome(verdict.TIMED_OUT, f"orcalike: timed out after {limit}")):
            return
        numbers = ", ".join(map(str, self.ranks))
        self.pump.notice(f"orcalike: {limit} are over; still running: {numbers}; their stacks:")
        self._ask_for_stacks()
        self._at("stop", ASK_SECONDS, partial(self._stop, _STOP))

    def _ask_for_stacks(self) -> None:
        for child in self.ranks.values():
            child.signal_alone(signal.SIGUSR1)

    # Signals to the launcher

    def _take_signals(self) -> None:
        """Let signals arrive as numbers on a pipe that the loop reads."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
            if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _wake_up)
        pipe = os.fdopen(reader, "rb", buffering=0)
        self.selector.register(pipe, selectors.EVENT_READ, partial(self._signalled, pipe))

    def _signalled(self, pipe: BinaryIO) -> None:
        for number in pipe.read(64):
            if number == signal.SIGUSR1:
                self._ask_for_stacks()
            elif number == signal.SIGTSTP:
                self._pause()
            else:
                self._end_by(signal.Signals(number))

    def _end_by(self, number: signal.Signals) -> None:
        """Ctrl-C, or a signal that ends: gracefully at first, at once the second time."""
        if self._decide(Outcome(verdict.SIGNALLED + number)):
            again = "Ctrl-C again" if number == signal.SIGINT else f"{number.name} again"
            self.pump.notice(f"stopping … ({again} to kill)")
            self._stop(_INTERRUPT if number == signal.SIGINT else _STOP)
        elif self.ranks:
            self._stop((signal.SIGKILL,))
        else:
            self.pump.abandon()

    def _pause(self) -> None:
        """Ctrl-Z: the ranks stop with the launcher, and go on with it."""
        everybody = [*self.ranks.values(), *([self.witness] if self.witness else [])]
        for child in everybody:
            child.signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        for child in everybody:
            child.signal(signal.SIGCONT)

    def _describe(self) -> str:
        """The startup line."""
        count = self.options.nprocs
        parts = [
            f"{count} member{'s' if count > 1 else ''} on 1 host (local)",
            f"sequencer: {'witness' if self.options.sequencer == 'witness' else 'rank 0'}",
            "resilience 0",
            f"seed {self.job.seed}",
        ]
        if "OMP_NUM_THREADS" not in {*os.environ, *self.options.environment}:
            parts.append(f"OMP_NUM_THREADS {threads_per_rank(count)}")
        return f"[orcalike] {' · '.join(parts)}"


def _open_standard_files() -> None:
    """Give what a shell has closed (`<&-`) a file, or a pipe would get its number."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            os.set_inheritable(null, True)


def _wake_up(number: int, frame: object) -> None:
    """The number comes through the wakeup pipe; the handler has nothing to do."""
