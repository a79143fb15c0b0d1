"""The pytest plugin as the tests of a user's program have it: in a run of pytest of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import NoReturn

import pytest

from orcalike.group import Group
from orcalike.testing import ProcessEnded, Processes, limits
from orcalike.testing.limits import TimeLimit
from tests.lib.processes import DEADLINE

pytest_plugins = ["pytester"]

OBJECTS = """
import threading

import pytest

import orcalike as orca


@orca.shared
class Votes:
    def __init__(self) -> None:
        self.votes: dict[str, int] = {}

    @orca.write
    def vote(self, name: str) -> int:
        self.votes[name] = self.votes.get(name, 0) + 1
        return self.votes[name]

    @orca.write
    def close(self, least: int) -> str:
        return max(self.votes, key=lambda name: self.votes[name])

    @close.when
    def _(self, least: int) -> bool:
        return sum(self.votes.values()) >= least

    @orca.read
    def count(self) -> dict[str, int]:
        return dict(self.votes)


def vote(group, name):
    return group.share(Votes, "votes").vote(name)


def close(group):
    group.share(Votes, "votes").close(3)
"""

WELL = """
def test_members_in_one_process(orcalike_group):
    members = orcalike_group(3)
    assert [member.rank for member in members] == [0, 1, 2]
    votes = members.share(Votes, "votes")
    for each in votes:
        each.vote("tea")
    members.fence()
    assert [each.count() for each in votes] == [{"tea": 3}] * 3
    members.leave(0)
    assert votes[1].vote("tea") == 4
    members.fence()
    assert votes[2].count() == {"tea": 4}
    with pytest.raises(orca.GroupClosed, match="rank 0 has left"):
        members.share(Votes, "others")
    with pytest.raises(TimeoutError):
        members[1].find(Votes, "others", timeout=0.01)


async def test_members_in_coroutines(orcalike_group):
    one, other = orcalike_group(2)
    mine, theirs = await one.share.aio(Votes, "votes"), await other.find.aio(Votes, "votes")
    await mine.vote.aio("tea")
    await theirs.vote.aio("tea")
    assert theirs.count() == {"tea": 2}


def test_two_groups(orcalike_group):
    (one,), (other,) = orcalike_group(1), orcalike_group(1)
    assert one.share(Votes, "votes").vote("tea") == other.share(Votes, "votes").vote("tea") == 1


def test_a_group_may_take_longer_to_leave(orcalike_group, _orcalike_limit):
    from orcalike.testing import Members

    def close_slowly(members, close=Members.close):
        Members.close = close
        threading.Event().wait(0.5)
        close(members)

    Members.close = close_slowly
    orcalike_group(1)
    _orcalike_limit.seconds = 0.1  # from here on


def fail(group):
    raise LookupError("on purpose")


def secret(group):
    return lambda: None


def meet(group):
    group.barrier()
    return group.size


def test_processes_that_are_paused_and_killed(orcalike_processes):
    processes = orcalike_processes(3)
    assert sorted(processes.run(vote, "tea")) == [1, 2, 3]
    with pytest.raises(LookupError, match="on purpose") as caught:
        processes[2].call(fail)
    assert "in fail" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match="function cannot be sent to the test"):
        processes[2].call(secret)
    processes.pause(2)
    late = processes[2].start(vote, "late")
    meetings = [processes[rank].start(meet) for rank in (0, 1)]
    assert [meeting.result() for meeting in meetings] == [2, 2]  # it held them up
    assert processes[0].call(vote, "tea") == 4
    processes.resume(2)
    with pytest.raises(orca.Expelled):
        late.result()
    processes.kill(1)
    assert processes[0].call(vote, "tea") == 5
    with pytest.raises(Exception, match="rank 1 has ended, with -9"):
        processes[1].call(vote, "tea")
"""

ENDLESS = """
pytestmark = pytest.mark.orcalike_timeout("1s")


@pytest.fixture
def votes(orcalike_group):
    return orcalike_group(2)[1].share(Votes, "votes")


def test_guard(votes):
    votes.close(3)


def test_thread(votes):
    thread = threading.Thread(target=lambda: pytest.raises(orca.GroupClosed, votes.close, 3))
    thread.start()
    thread.join()


async def test_coroutine(votes):
    await votes.close.aio(3)


def test_process(orcalike_processes, _orcalike_limit):
    processes = orcalike_processes(2)
    _orcalike_limit.restart(60)
    processes[1].call(ready)
    processes.pause(0)
    _orcalike_limit.restart()
    processes[1].call(lasting)


def ready(group):  # the process has imported this module
    return True


def lasting(group):
    threading.Event().wait()


def test_no_group(orcalike_group):
    threading.Event().wait()


@pytest.mark.orcalike_timeout("200ms")
def test_mark(orcalike_group):
    orcalike_group(1)[0].share(Votes, "votes").close(3)
"""

#: An operation ends with the test if it runs in the test's own thread, and not where messages are received.
OPERATION = """
import threading

@orca.shared
class Endless:
    @orca.write
    def go_on(self) -> None:
        while threading.current_thread() is threading.main_thread():  # orca: unchecked
            pass


def test_operation(orcalike_group):
    endless = orcalike_group(1)[0].share(Endless, "endless")
    while True:
        endless.go_on()


@pytest.mark.orcalike_timeout("100s")
def test_ctrl_c(orcalike_group):
    import signal

    orcalike_group(2)
    signal.raise_signal(signal.SIGINT)
"""


#: Other plugins, beside which the first of these runs is, take long to load.
ALONE = ("-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:xdist.looponfail")


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """The result of tests, in a pytest of their own, whose plugins are those that are installed."""
    pytester.makepyfile(test_votes=OBJECTS + tests)
    loops = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
    return pytester.runpytest_subprocess("-W", "error", *loops, *options, timeout=250)


def test_members_and_processes(pytester: pytest.Pytester) -> None:
    run(pytester, WELL, "--import-mode=importlib").assert_outcomes(passed=5)


def test_a_test_that_waits_for_good_fails_and_shows_why(pytester: pytest.Pytester) -> None:
    """On a thread, in another thread, in a coroutine, and in another process."""
    ended = run(pytester, ENDLESS, *ALONE)
    ended.assert_outcomes(failed=6)
    shown = "\n".join(line.removeprefix("E").strip() for line in ended.outlines)
    for name in ("guard", "thread", "coroutine", "no_group", "process"):
        assert f"Failed: test_{name} did not end within 1 s" in shown
    assert "Failed: test_mark did not end within 0.2 s" in shown
    assert shown.count("Votes.close of 'votes' waits: its guard is false; no other") >= 3
    assert "s: guard Votes.close on 'votes'" in shown
    assert "task Task-" in shown
    assert "rank 0 (pid" in shown
    assert "paused" in shown
    assert "in lasting" in shown
    stack = shown.partition("stack of thread MainThread")[2].partition("in test_guard")[0]
    assert "pluggy" not in stack


def test_what_does_not_end_and_what_is_interrupted(pytester: pytest.Pytester) -> None:
    ended = run(pytester, OPERATION, *ALONE, "-o", "orcalike_timeout=300ms")
    ended.stdout.fnmatch_lines(["*test_operation did not end within 0.3 s"])
    ended.assert_outcomes(failed=1)
    assert ended.ret == pytest.ExitCode.INTERRUPTED


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """One process, for several tests."""
    processes = Processes(1, DEADLINE)
    yield processes
    processes.close()


def rank(group: Group) -> int:
    return group.rank


def skip(group: Group) -> None:
    pytest.skip("on purpose")


def leave(group: Group) -> None:
    sys.exit("on purpose")


def start_child(group: Group) -> int:
    """A child that has the process's end of the connection, as a forked one has."""
    return subprocess.Popen(["sleep", "1000"], close_fds=False).pid


def sleep(group: Group) -> None:
    time.sleep(1000)


def test_a_call_in_a_process_cannot_be_cancelled(processes: Processes) -> None:
    future: Future[int] = processes[0].start(rank)
    assert not future.cancel()
    assert future.result(DEADLINE) == 0
    assert processes[0].start(rank).result(DEADLINE) == 0


def test_what_a_function_raises_ends_no_process(processes: Processes) -> None:
    with pytest.raises(TypeError, match=r"Skipped cannot be sent to the test: .*on purpose"):
        processes[0].start(skip).result(DEADLINE)
    with pytest.raises(SystemExit, match="on purpose"):
        processes[0].start(leave).result(DEADLINE)
    assert processes[0].start(rank).result(DEADLINE) == 0


class TakesTwo(Exception):
    """One that is pickled, and cannot be made again from that."""

    def __init__(self, text: str, more: int) -> None:
        super().__init__(text)


def raise_two(group: Group) -> None:
    raise TakesTwo("on purpose", 2)


def test_an_exception_that_cannot_be_made_again_is_shown(processes: Processes) -> None:
    with pytest.raises(
        TypeError, match=r"TakesTwo cannot be sent to the test: .*on purpose"
    ) as seen:
        processes[0].start(raise_two).result(DEADLINE)
    assert "in raise_two" in seen.value.__notes__[0]


def test_a_function_of_a_module_without_a_file(processes: Processes) -> None:
    assert processes[0].start(callable).result(DEADLINE) is False


def test_a_report_does_not_wait_for_a_call_that_is_being_sent(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orcalike.testing.processes.REPORT_WITHIN", 0.1)
    with processes[0]._lock:
        assert "no answer within 0.1 s" in processes.report()


def test_a_process_whose_children_go_on_is_closed() -> None:
    processes = Processes(1, DEADLINE)
    child = processes[0].start(start_child).result(DEADLINE)
    try:
        waiting = processes[0].start(sleep)
        processes.kill(0)
        with pytest.raises(ProcessEnded):
            waiting.result(DEADLINE)
        closing = threading.Thread(target=processes.close, daemon=True)
        closing.start()
        closing.join(DEADLINE)
        assert not closing.is_alive()
    finally:
        os.kill(child, signal.SIGKILL)


def test_reporters_that_fail_and_hang_keep_no_test_from_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "REPORT_WITHIN", 0.1)
    never = threading.Event()

    def stop(text: str) -> NoReturn:
        raise TimeoutError(text)

    def fail() -> str:
        raise LookupError("lost")

    def hang() -> str:
        never.wait()
        return ""

    before = signal.getsignal(signal.SIGINT)
    limit = TimeLimit(0.1, stop, "test")
    limit.reporters += [fail, hang, lambda: "well"]
    with pytest.raises(TimeoutError) as caught, limit:
        never.wait(DEADLINE)
    text = str(caught.value)
    assert "no report: LookupError('lost')\nno report within 0.1 s\nwell" in text
    assert signal.getsignal(signal.SIGINT) is before
    never.set()
