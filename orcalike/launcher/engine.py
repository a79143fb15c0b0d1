"""The launcher: one thread, one loop, from the first process to the exit code.

What happens comes in three ways: a file descriptor is ready (output, a process's end, what a
process reports, a signal's number), a timer is due, or nothing is left to wait for. The first thing
that decides the run's outcome wins: a rank that fails, a signal, the time limit, the witness's
end, a group that is blocked for good. After that the ranks are only brought to their end: a
signal, a grace period, a stronger signal.

With `--restart` a process that fails is started again first; with `--keep-going` (and what
`--restart` does not cover) its failure is shown and decides nothing, until no rank is left.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher import orphans, outcome
from orcalike.launcher.chaos import Chaos
from orcalike.launcher.child import Child, Exit, Stream
from orcalike.launcher.control_socket import Answer, ControlSocket
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.group_status import Loss
from orcalike.launcher.input_relay import InputRelay
from orcalike.launcher.job import Job, Options, check_number
from orcalike.launcher.loss_watch import LossWatch
from orcalike.launcher.outcome import Outcome, RankExit, Report
from orcalike.launcher.output_relay import OutputRelay
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.reaper import Reaper, guarded_run_folder
from orcalike.launcher.remote_child import RemoteChild
from orcalike.launcher.remote_host import LEASE
from orcalike.launcher.signals import watch_signals
from orcalike.launcher.standard_files import open_standard_files
from orcalike.launcher.starting import Starting
from orcalike.launcher.status import Status
from orcalike.launcher.stopping import END, INTERRUPT, Stopping
from orcalike.launcher.terminal_modes import TerminalModes
from orcalike.launcher.timers import Timers
from orcalike.transport.wording import listed

#: How long a failure that looks like another's consequence waits for that other one.
SETTLE_SECONDS = 1.0
#: How long the ranks have to print their stacks, and the witness to end, when asked to.
ASK_SECONDS = 1.0
#: A rank of a lost host is started elsewhere when the host has certainly ended it: after the lease.
LEASE_OVER_SECONDS = LEASE + 2.0
#: How long a run over hosts may be stopped by Ctrl-Z.
PAUSE_SECONDS = 3600.0

#: How long what a rank has left behind, and has ended, is not reaped at the most.
REAP_SECONDS = 1.0
#: The longest wait at a time: the kernel takes 24.8 days at the most, and a limit may be longer.
WAIT_SECONDS = 3600.0


def launch(options: Options) -> int:
    """Run a program as the options say; returns the exit code (docs/command-line.md).

    The calling process must have one thread and no children: it is the launcher from here on.

    Raises LaunchError if it cannot start.
    """
    open_standard_files()
    check_number(options)
    job = Job.create(options)
    directory, reaper = guarded_run_folder(job.identity)
    try:
        return _Launcher(job, directory, reaper).run()
    finally:
        reaper.close()


class _Observer:
    """What one process of the run does, passed on to the launcher."""

    def __init__(self, launcher: _Launcher, role: Role, child: Child) -> None:
        self._launcher, self._role, self._child = launcher, role, child

    def line(self, line: str) -> None:
        self._launcher.receive(self._role, line)

    def output(self, stream: Stream, data: bytes) -> None:
        self._launcher.relay.feed(self._child, stream, data)

    def output_ended(self, stream: Stream) -> None:
        self._launcher.relay.end(self._child, stream)

    def member_ended(self, incarnation: int) -> None:
        self._launcher.member_ended(incarnation, self._child.host)

    def ended(self, end: Exit) -> None:
        if self._role is None:
            self._launcher.witness_ended(end)
        else:
            self._launcher.rank_ended(self._role, end)

    def failed_to_start(self, error: OSError) -> None:
        self._launcher.table.remove(self._role)
        self._launcher.cannot_start(error, self._child.host)


class _Launcher:
    def __init__(self, job: Job, directory: Path, reaper: Reaper) -> None:
        self.job = job
        self.options = job.options
        self.directory = directory
        self.began = time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.relay = OutputRelay(self.selector, prefix=job.options.prefix, color=job.options.color)
        self.timers = Timers()
        self.terminal = TerminalModes()
        self.table = ProcessTable(job)
        self.starting = self._make_starting(reaper)
        self.input = InputRelay(self.selector, self.timers)
        self.chaos = Chaos(self.table, self.timers, self.relay.notice)
        self.status = Status(self.table, self.timers)
        self.loss_watch = LossWatch(self.status, self.timers, self._loss, self._give_up)
        self.stopping = Stopping(self.table, self.timers, job.options.grace)
        self.outcome: Outcome | None = None
        self.consequences: list[RankExit] = []
        #: Failures that the run went on after.
        self.survived: list[RankExit] = []
        #: How many ranks have ended with 0.
        self.well = 0

    def _make_starting(self, reaper: Reaper) -> Starting:
        starting = Starting(
            self.job,
            self.directory,
            table=self.table,
            selector=self.selector,
            timers=self.timers,
            reaper=reaper,
            notice=self.relay.notice,
        )
        starting.on_started = self._attend
        starting.on_no_room = self.cannot_start
        starting.on_not_connected = self._not_connected
        starting.on_member_ended = self.member_ended
        return starting

    # The course of a run

    def run(self) -> int:
        """From the start to the last line of output."""
        watch_signals(self.selector, self._signalled)
        orphans.adopt_orphans()
        self._begin()
        while self.starting.connecting or self.table.ranks or self.starting.again - {None}:
            self._turn()
        self._wind_up()
        while self.table.witness or self.relay.reading:
            self._turn()
        self._part()
        # Ranks that were not ended leave the terminal as they want it.
        if self.outcome is not None:
            self.terminal.put_back()
        self._say_goodbye()
        self._write_rest()
        return self.outcome.code if self.outcome else 0

    def _begin(self) -> None:
        if not self.options.quiet:
            self.relay.notice(self.job.describe())
            self.relay.write()
        if self.options.timeout is not None:
            self.timers.at("timeout", self.options.timeout, self._time_is_up)
        try:
            self.starting.prepare()
            ControlSocket(self.directory, self.selector, self.timers, self._answer)
            self.starting.begin()
        except OSError as error:
            self.cannot_start(error)

    def _not_connected(self, error: LaunchError) -> None:
        """The hosts of the run cannot be had."""
        self._decide(Outcome(error.code, f"orcalike: {error}"))

    def _part(self) -> None:
        """Leave the other hosts, on which nothing is left."""
        if self.starting.hosts is not None:
            self.starting.hosts.close()
            while not self.starting.hosts.closed:
                self._turn()

    def _answer(self, question: object, reply: Callable[[Answer], None]) -> None:
        """A question on the control socket."""
        if question == {"do": "status"} or question == {"do": "status", "objects": True}:
            self.status.ask(reply, objects="objects" in question)
        else:
            reply(self.chaos.answer(question))

    def _attend(self, role: Role, child: Child) -> None:
        """Take what a process prints and reports from now on, and notice its end."""
        child.observe(_Observer(self, role, child))
        self.relay.attend(child, "witness" if role is None else str(role))
        if role == 0 and isinstance(child, RemoteChild):
            self.input.attend(child)

    def cannot_start(self, error: OSError, host: str = "") -> None:
        """A host has no room for a process: the run ends."""
        self._decide(outcome.cannot_start(error, self.options.nprocs, host))
        self.stopping.stop()

    def _wind_up(self) -> None:
        """The ranks have ended: end the witness, and what the ranks left behind."""
        if self.consequences:
            self._fail(self.consequences[0])
        if self.survived and not self.well:
            self._decide(outcome.all_failed(self.survived[0]))
        self.timers.clear()
        if (witness := self.table.witness) is not None:
            witness.signal(signal.SIGTERM)  # it has nothing to do any more, whatever it is doing
            self.timers.at("witness", ASK_SECONDS, partial(witness.signal, signal.SIGKILL))
        for host in self.table.placement.hosts:
            host.kill_rest()
        self.timers.at("output", 2 * ASK_SECONDS, self.relay.give_up_reading)

    def _say_goodbye(self) -> None:
        self.relay.finish()
        if self.outcome is None and not self.options.quiet:
            failed = ", ".join(f"rank {rank_exit.rank} failed" for rank_exit in self.survived)
            took = f"{time.monotonic() - self.began:.1f} s"
            self.relay.notice(f"[orcalike] done in {took}{' · ' if failed else ''}{failed}")
        elif self.outcome is not None and self.outcome.message:
            self.relay.notice(self.outcome.message)
        self.relay.write()

    def _write_rest(self) -> None:
        """Write the rest, after the last line. That this cannot be done may be the run's outcome, too."""
        before = self.outcome
        while self.relay.writing:
            self._turn()
        self._check_output()
        if self.outcome is not before and self.outcome is not None and self.outcome.message:
            self.relay.notice(self.outcome.message)
            self.relay.write()
            while self.relay.writing:
                self._turn()

    def _turn(self) -> None:
        """Wait for something to happen, and let it."""
        registered = self.selector.get_map()
        looked_at = time.monotonic()
        for key, _ in self.selector.select(self._until_next()):
            if registered.get(key.fd) is key:  # it was not closed in this same turn
                key.data()
        self.timers.expire(time.monotonic())
        self.relay.show_partial(looked_at)
        self.relay.write()
        self._check_output()

    def _check_output(self) -> None:
        """If what the ranks print cannot be written any more, the run ends."""
        error = self.relay.error
        if error and self._decide(outcome.output_lost(error, len(self.table.ranks))):
            self.stopping.stop()

    def _until_next(self) -> float | None:
        times = [at for at in (self.timers.next(), self.relay.next_deadline()) if at is not None]
        if not times:
            return None
        return min(max(0.0, min(times) - time.monotonic()), WAIT_SECONDS)

    # Ends

    def rank_ended(self, rank: int, end: Exit) -> None:
        """A rank has ended: the run does with it, goes on, or starts it again."""
        after = time.monotonic() - self.began
        child = self.table.remove(rank, seen=not end.lost)
        self.table.exits[rank] = child, end
        rank_exit = RankExit(
            rank,
            child.pid,
            end.returncode,
            after,
            Report.parse(end.report),
            child.restarts,
            child.host if self.starting.hosts is not None else "",
            end.lost,
        )
        self.well += not rank_exit.failed
        if rank_exit.failed and self.outcome is None and self._may_restart(rank_exit):
            self._show_report(rank_exit)
            pause = LEASE_OVER_SECONDS if end.lost else None
            self.starting.start_soon(
                rank, outcome.describe_failure(rank_exit), child.restarts, pause
            )
        else:
            self.table.give_up(rank, seen=not end.lost)
            if rank_exit.failed and self.outcome is None:
                self._take_failure(rank_exit)
        self._look_for_loss()

    def _may_restart(self, rank_exit: RankExit) -> bool:
        if rank_exit.restarts >= self.options.restart or rank_exit.hopeless:
            return False
        return not rank_exit.lost or self.table.placement.move(rank_exit.rank)

    def _take_failure(self, rank_exit: RankExit) -> None:
        """A rank has failed that is not started again."""
        if self.options.keep_going and not rank_exit.hopeless:
            self._show_report(rank_exit)
            self.survived.append(rank_exit)
            others = len({*self.table.ranks, *self.starting.again} - {None})
            self.relay.notice(outcome.survived(rank_exit, others))
        elif not rank_exit.consequence:
            self._fail(rank_exit)
        else:
            self.consequences.append(rank_exit)
            if len(self.consequences) == 1:
                self.timers.at("settle", SETTLE_SECONDS, partial(self._fail, rank_exit))

    def _fail(self, first: RankExit) -> None:
        """The run fails with this rank: show its traceback, and stop the others."""
        if not self._decide(outcome.failure(first, len(self.table.ranks))):
            return
        if not first.hopeless:
            self._show_report(first)
        self.stopping.stop()

    def _show_report(self, rank_exit: RankExit) -> None:
        if rank_exit.report is not None:
            self.relay.show(str(rank_exit.rank), rank_exit.report.text)

    def witness_ended(self, end: Exit) -> None:
        """The witness has ended: it was asked to, the ranks go on without it, or the run ends."""
        witness = self.table.remove(None, seen=not end.lost)
        self.table.exits[None] = witness, end
        if self.outcome is not None or not (
            self.table.ranks or self.starting.again or self.starting.connecting
        ):
            return
        what = outcome.describe_witness(witness.pid, end)
        if witness.restarts < self.options.restart and not end.lost:
            self.starting.start_soon(None, what, witness.restarts)
        elif self.options.outlives_failures:
            orders, keeps = not self.options.shares_memory, self.options.restart > 0
            self.relay.notice(outcome.go_on_without_witness(what, orders=orders, keeps=keeps))
        else:
            self._decide(outcome.witness_lost(witness.pid, end))
            self.stopping.stop()
        self._look_for_loss()

    def _decide(self, outcome: Outcome) -> bool:
        """Make this the run's outcome, if it has none yet."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        self.starting.give_up()
        return True

    # What the processes report of their groups

    def receive(self, role: Role, line: str) -> None:
        """A process reports something of its groups."""
        self.table.receive(role, line)
        self._look_for_loss()

    def member_ended(self, incarnation: int, host: str) -> None:
        """What a rank has started was this member, and was seen to end on that host."""
        self.table.end_started(incarnation, host)
        self._look_for_loss()

    def _look_for_loss(self) -> None:
        """Begin to doubt, or no longer, that the run can go on."""
        self.loss_watch.look()

    def _loss(self) -> Loss | None:
        """A group that no process of this run can let go on."""
        if self.outcome is not None:
            return None
        return self.table.groups.loss(self.table.ranks, len(self.starting.again - {None}))

    def _give_up(self, loss: Loss) -> None:
        """A group is blocked for good: the run ends."""
        if self._decide(outcome.blocked_for_good(loss)):
            self.stopping.stop()

    # Stopping

    def _time_is_up(self) -> None:
        limit = f"{self.options.timeout:g} s"
        if not self._decide(Outcome(outcome.TIMED_OUT, f"orcalike: timed out after {limit}")):
            return
        ranks = listed(self.table.ranks) or "none"
        self.relay.notice(
            f"orcalike: timed out after {limit}; ranks still running: {ranks}; stacks:"
        )
        self._ask_for_stacks()
        self.timers.at("stop", ASK_SECONDS, self.stopping.stop)

    def _ask_for_stacks(self) -> None:
        for child in self.table.ranks.values():
            child.signal_alone(signal.SIGUSR1)

    # Signals to the launcher

    def _signalled(self, number: int) -> None:
        if number == signal.SIGUSR1:
            self._ask_for_stacks()
        elif number == signal.SIGCHLD:
            if "reap" not in self.timers:
                self.timers.at("reap", REAP_SECONDS, self.starting.local.reap_rest)
        elif number == signal.SIGTSTP:
            self._pause()
        else:
            self._end_by(signal.Signals(number))

    def _end_by(self, number: signal.Signals) -> None:
        """Ctrl-C, or a signal that ends: gracefully at first, at once the second time."""
        if self._decide(Outcome(outcome.SIGNALLED + number)):
            again = "Ctrl-C again" if number == signal.SIGINT else f"{number.name} again"
            self.relay.notice(f"stopping … ({again} to kill)")
            self.stopping.stop(INTERRUPT if number == signal.SIGINT else END)
        elif self.table.ranks:
            self.stopping.stop((signal.SIGKILL,))
        else:
            self.relay.abandon()

    def _pause(self) -> None:
        """Ctrl-Z: the ranks stop with the launcher, and go on with it."""
        children = self.table.children()
        for _, child in children:
            child.signal(signal.SIGSTOP)
        if self.starting.hosts is not None:
            self.starting.hosts.extend_leases(PAUSE_SECONDS)
        os.kill(os.getpid(), signal.SIGSTOP)
        if self.starting.hosts is not None:
            self.starting.hosts.resume()
        for _, child in children:
            child.signal(signal.SIGCONT)
