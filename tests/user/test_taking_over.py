"""An operation that does not end holds up its own object: another thread receives meanwhile."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lib.orders import IN_MEMORY, OVER_RANK, OVER_WITNESS
from tests.lib.warm import WarmCli, python

if TYPE_CHECKING:
    from tests.lib.command import Cli

OBJECTS = """
import hashlib, threading
import orcalike as orca

opened = threading.Event()
began = threading.Event()

# A member's threads contend with no other member's: one that computes is enough, the others wait.
computes = rank in (-1, int(os.environ.get("COMPUTES", "0")))

def spin():
    while not opened.is_set():
        if not computes:
            opened.wait()

@orca.shared
class Slow:
    def __init__(self) -> None:
        self.log = []

    def _note(self, what):
        self.log.append((what, orca.now(), orca.random().random(), orca.caller().rank))

    @orca.write
    def spin(self, what: str) -> int:
        self._note(what)
        began.set()  # orca: unchecked
        spin()  # orca: unchecked
        self._note(what)
        return len(self.log)

    @orca.write
    def wait(self, what: str) -> int:
        self._note(what)
        began.set()  # orca: unchecked
        opened.wait()  # orca: unchecked
        self._note(what)
        return len(self.log)

    @orca.write
    def fail(self, what: str) -> None:
        began.set()  # orca: unchecked
        opened.wait()  # orca: unchecked
        raise ValueError(what)

    @orca.write
    def add(self, what: str) -> int:
        self._note(what)
        return len(self.log)

    @orca.read
    def seen(self) -> list:
        return list(self.log)

@orca.atomic
def both(one: Slow, other: Slow, what: str) -> int:
    one.add(what)
    began.set()  # orca: unchecked
    opened.wait()  # orca: unchecked
    return other.add(what)

LONG = 200.0

class Apart:
    # Over an order in shared memory the thread that calls runs the operation, as a rule.
    def __init__(self, call, *args):
        self.invocations = []
        self.thread = threading.Thread(target=lambda: self.invocations.append(call(*args)), daemon=True)
        self.thread.start()

    def result(self, timeout):
        self.thread.join(timeout)
        return self.invocations[0].result(timeout)

def gather(group, caller):
    # Only the caller waits: a thread that writes may come to its operation, over shared memory, and stays in it.
    if rank == caller:
        group.barrier(timeout=LONG)
    else:
        Apart(group.barrier.nowait)

def is_slow(object, what):
    try:
        object.add.options(timeout=0.2)(what)
    except orca.InvocationTimeout:
        return True
    return False
"""

EVERYWHERE = """
def go_on(group, how):
    slow, other, fast = (group.share(Slow, name) for name in (how, how + " other", how + " fast"))
    gather(group, 2)
    calls = []
    if rank == 2:
        if how == "atomic":
            calls = [Apart(both.nowait, slow, other, "long")]
        elif how == "own":  # this thread waits for it, and so may be the one that runs it
            result = []
            thread = threading.Thread(target=lambda: result.append(slow.wait("long")))
            thread.start()
        else:
            calls = [Apart(getattr(slow, how).nowait, "long")]
    assert began.wait(LONG)
    if rank == 2:
        calls += [slow.add.nowait("behind") for _ in range(3)]
    for number in range(20):
        fast.add.options(timeout=LONG)(f"{rank} {number}")
    group.barrier(timeout=LONG)
    assert len(fast.seen()) == 60
    assert is_slow(slow, "withdrawn"), "the other objects waited, or this one did not"
    group.barrier(timeout=LONG)
    opened.set()
    if rank == 2:
        if how == "own":
            thread.join(LONG)
            assert result == [2], result
        elif how == "fail":
            try:
                calls.pop(0).result(LONG)
            except ValueError as error:
                assert str(error) == "long"
            else:
                raise AssertionError("it did not fail")
        print("results", how, [call.result(LONG) for call in calls], flush=True)
    group.fence(timeout=LONG)
    group.barrier(timeout=LONG)
    text = repr([each.seen() for each in (slow, other, fast)])
    print("state", how, hashlib.sha1(text.encode()).hexdigest(), flush=True)
    began.clear(), opened.clear()
    group.barrier(timeout=LONG)

with orca.join() as group:
    for how in sys.argv[1:]:
        go_on(group, how)
"""

RESULTS = {
    "spin": "[2, 3, 4, 5]",
    "wait": "[2, 3, 4, 5]",
    "fail": "[1, 2, 3]",
    "own": "[3, 4, 5]",
    "atomic": "[1, 2, 3, 4]",
}

COMES_BACK = """
with orca.join(freshness="60s") as group:
    slow, fast = group.share(Slow, "slow"), group.share(Slow, "fast")
    group.barrier(timeout=LONG)
    if rank == 1:
        Apart(slow.wait.nowait, "long")
        assert began.wait(LONG)
        print("began", flush=True)
    else:
        sys.stdin.readline()
        fast.add.options(timeout=LONG)("behind it")
        print("came back", flush=True)
        sys.stdin.readline()
    opened.set()
    group.barrier(timeout=LONG)
"""

LEAVES = """
try:
    with orca.join() as group:
        slow, fast = group.share(Slow, "slow"), group.share(Slow, "fast")
        gather(group, 1)
        if rank == 1:
            Apart(slow.spin.nowait, "long")
        assert began.wait(LONG)
        for number in range(20):
            fast.add.options(timeout=LONG)(number)
        group.barrier(timeout=LONG)
        raise KeyError("it does not wait for its calls")
except KeyError:
    print("left", flush=True)
"""

LOSES_ONE = """
with orca.join() as group:
    slow, fast = group.share(Slow, "slow"), group.share(Slow, "fast")
    gather(group, 2)
    if rank == 2:
        Apart(slow.wait.nowait, "long")
    assert began.wait(LONG)
    fast.add.options(timeout=LONG)(rank)
    group.barrier(timeout=LONG)
    if rank == 2:
        os.kill(os.getpid(), 9)
    while len(group.view.replicas) > 2:
        fast.add.options(timeout=LONG)(rank)
    fast.add.options(timeout=LONG)("after")
    group.barrier(timeout=LONG)
    opened.set()
    slow.add.options(timeout=LONG)("last")
    group.barrier(timeout=LONG)
    print("state", hashlib.sha1(repr([slow.seen(), fast.seen()]).encode()).hexdigest(), flush=True)
    group.barrier(timeout=LONG)
"""

ON_LOOPS = """
import asyncio

async def main():
    async with orca.join() as group:
        slow, fast = await group.share.aio(Slow, "slow"), await group.share.aio(Slow, "fast")
        # The loop's thread is the one that runs it: the loop stands still, and the member does not.
        def write():
            assert began.wait(LONG)
            for number in range(15):
                fast.add.options(timeout=LONG)(f"{rank} {number}")
            while len(fast.seen()) < 45:
                time.sleep(0.01)
            opened.set()
        writer = threading.Thread(target=write)
        writer.start()  # before the loop may stand still
        await group.barrier.aio()
        if rank == 2:
            slow.wait.nowait("long")
        await slow.add.aio(f"behind {rank}")
        await asyncio.to_thread(writer.join)
        await group.barrier.aio()
        text = repr([slow.seen(), fast.seen()])
        print("state", hashlib.sha1(text.encode()).hexdigest(), flush=True)
        await group.barrier.aio()

asyncio.run(main())
"""

INTERRUPTED = """
with orca.join() as group:
    slow, fast = group.share(Slow, "slow"), group.share(Slow, "fast")
    gather(group, 1)
    if rank == 1:
        Apart(slow.spin.nowait, "long")
    assert began.wait(LONG)
    fast.add.options(timeout=LONG)(rank)
    print("others go on", flush=True)
    time.sleep(1000)
"""


ALONE = """
with orca.join() as group:
    slow, fast = group.share(Slow, "slow"), group.share(Slow, "fast")
    thread = threading.Thread(target=slow.spin, args=("long",))
    thread.start()
    assert began.wait(LONG)
    for number in range(100):
        fast.add.options(timeout=LONG)(number)
    assert not opened.is_set() and is_slow(slow, "withdrawn")
    opened.set()
    thread.join(LONG)
    assert [each[0] for each in slow.seen()][:2] == ["long", "long"]
    print("went on", len(fast.seen()))
"""

ALONE_ON_A_LOOP = """
import asyncio

async def main():
    async with orca.join() as group:
        slow, fast = await group.share.aio(Slow, "slow"), await group.share.aio(Slow, "fast")
        if sys.argv[1] == "thread":  # the coroutines wait for it
            thread = threading.Thread(target=slow.spin, args=("long",))
            thread.start()
            assert await asyncio.to_thread(began.wait, LONG)
            for number in range(100):
                await fast.add.aio(number)
            opened.set()
        else:  # a thread waits for the loop's own
            def others():
                assert began.wait(LONG)
                for number in range(100):
                    fast.add.options(timeout=LONG)(number)
                opened.set()
            thread = threading.Thread(target=others)
            thread.start()
            await slow.spin.aio("long")
        await asyncio.to_thread(thread.join, LONG)
        await fast.add.aio("last")
        assert [each[0] for each in slow.seen()][:2] == ["long", "long"]
        print("went on", len(fast.seen()) - 1)

asyncio.run(main())
"""

TRIED_AGAIN = """
from orcalike.session import long_operations

refused, relieve = [], long_operations.relieve
def only_then(*args):
    if len(refused) < 2:
        refused.append(1)
        return False
    return relieve(*args)
long_operations.relieve = only_then

with orca.join() as group:
    slow, fast = group.share(Slow, "slow"), group.share(Slow, "fast")
    gather(group, 1)
    if rank == 1:
        Apart(slow.wait.nowait, "long")
    assert began.wait(LONG)
    fast.add.options(timeout=LONG)(rank)
    group.barrier(timeout=LONG)
    opened.set()
    assert len(refused) == 2
    print("went on", flush=True)
"""


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


def said(output: str, word: str) -> list[str]:
    """What the ranks have printed after a word."""
    return [line.partition(f"{word} ")[2] for line in output.splitlines() if f"] {word} " in line]


@pytest.mark.parametrize(
    ("order", "computes", "hows"),
    [
        (IN_MEMORY, "1", tuple(RESULTS)),  # one that neither orders nor calls
        (OVER_RANK, "0", tuple(RESULTS)),  # the one that orders
        (OVER_WITNESS, "2", ("spin",)),  # the one that calls
    ],
    ids=["memory", "rank", "witness"],
)
def test_other_objects_go_on(
    cli: Cli, order: tuple[str, ...], computes: str, hows: tuple[str, ...]
) -> None:
    """At all members, and what came for the object meanwhile runs afterwards in its order."""
    program = cli.write(OBJECTS + EVERYWHERE)
    run = cli.run("-n3", "-x", f"COMPUTES={computes}", *order, program, *hows)
    assert run.returncode == 0, run.stdout + run.stderr
    assert said(run.stdout, "results") == [f"{how} {RESULTS[how]}" for how in hows]
    for how in hows:
        states = said(run.stdout, f"state {how}")
        assert len(states) == 3
        assert len(set(states)) == 1, run.stdout + run.stderr
        waits = f"of '{how}' .*what is for its object waits until it has"
        assert len(re.findall(waits, run.stderr)) >= 3


@pytest.mark.parametrize("order", [IN_MEMORY, OVER_RANK])
def test_a_write_with_a_time_limit_comes_back(cli: Cli, order: tuple[str, ...]) -> None:
    """Its thread does not run what another member wrote before, and is not held up if that does not end."""
    with cli.started("-n2", *order, cli.write(OBJECTS + COMES_BACK)) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        for line in ("[1] began\n", "[0] came back\n"):
            assert run.stdout.readline() == line
            run.stdin.write("\n")
            run.stdin.flush()
        assert run.wait(cli.deadline) == 0


@pytest.mark.parametrize("order", [IN_MEMORY, OVER_RANK])
def test_the_group_can_be_left_meanwhile(cli: Cli, order: tuple[str, ...]) -> None:
    """And the program ends, whatever its threads are in."""
    run = cli.run("-n2", *order, cli.write(OBJECTS + LEAVES))
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("left") == 2


@pytest.mark.parametrize("order", [IN_MEMORY, OVER_RANK])
def test_a_member_can_be_lost_meanwhile(cli: Cli, order: tuple[str, ...]) -> None:
    """The others form their view, also if the loss is in the midst of it."""
    run = cli.run("-n3", *order, "--keep-going", cli.write(OBJECTS + LOSES_ONE))
    states = said(run.stdout, "state")
    assert len(states) == 2, run.stdout + run.stderr
    assert len(set(states)) == 1


@pytest.mark.parametrize("order", [IN_MEMORY, OVER_RANK])
def test_members_on_event_loops(cli: Cli, order: tuple[str, ...]) -> None:
    """The loop's thread runs the operation: another one receives until it is back."""
    run = cli.run("-n3", *order, cli.write(OBJECTS + ON_LOOPS))
    assert run.returncode == 0, run.stdout + run.stderr
    states = said(run.stdout, "state")
    assert len(states) == 3
    assert len(set(states)) == 1


@pytest.mark.parametrize("how", ["threads", "thread", "loop"])
def test_a_group_of_one(cli: Cli, how: str) -> None:
    """No heartbeat looks there: what has to wait for the operation has another thread go on."""
    program = cli.write(OBJECTS + (ALONE if how == "threads" else ALONE_ON_A_LOOP))
    run = python(program, how)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "went on 100"
    assert "Slow.spin of 'slow' has run for" in run.stderr


@pytest.mark.parametrize("order", [IN_MEMORY, OVER_RANK])
def test_what_cannot_be_at_one_moment_is_tried_again(cli: Cli, order: tuple[str, ...]) -> None:
    """An operation that goes on for ever may have begun when its place could not be taken yet."""
    run = cli.run("-n2", *order, cli.write(OBJECTS + TRIED_AGAIN))
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("went on") == 2
    assert run.stderr.count("another thread receives; what is for 'slow' waits for Slow.wait") == 2


def test_ctrl_c_ends_the_run(cli: Cli, tmp_path: Path) -> None:
    """While the operation goes on at all members."""
    program = cli.write(OBJECTS + INTERRUPTED)
    with cli.started("-n2", program) as process:
        assert process.stdout is not None
        seen = 0
        while seen < 2:
            line = process.stdout.readline()
            assert line, "it ended by itself"
            seen += "others go on" in line
        process.send_signal(signal.SIGINT)
        assert process.wait(cli.deadline) != 0
