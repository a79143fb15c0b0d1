"""Members that get signals, whatever they are doing; members that stand still for a while."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pexpect import TIMEOUT

from tests.lib.orders import IN_MEMORY, OVER_RANK, OVER_WITNESS
from tests.lib.processes import DEADLINE, state_of, until
from tests.lib.programs import OVER_SOCKETS, complaints
from tests.lib.terminal import Terminal

if TYPE_CHECKING:
    from tests.lib.processes import Facts
    from tests.lib.programs import Programs

WAITS = {
    "thread": r"thread MainThread [^\n]* waits \d+\.\d s: [^\n]*(Gate\.walk of 'gate'|on 'gate')",
    "loop": r"task Task-1 [^\n]* in on_loop",
    "read": r"thread MainThread [^\n]* waits \d+\.\d s: [^\n]*Gate\.above[^\n]*'gate'",
    "barrier": r"thread MainThread [^\n]* waits \d+\.\d s: [^\n]*barrier",
}
"""What a rank shows, by the way in which it waits."""

WAYS = [*WAITS]
RUN = ["-m", "orcalike", "run", "-n", "2", "--no-prefix", "-q"]


def pids(lines: list[str]) -> list[int]:
    """The ranks' processes, as their lines say."""
    return [json.loads(line)["pid"] for line in lines]


@pytest.mark.parametrize(
    ("way", "order"),
    [*zip(WAYS, [OVER_WITNESS, OVER_RANK] * 2, strict=True), *((way, IN_MEMORY) for way in WAYS)],
    ids=[*WAYS, *(f"{way}-memory" for way in WAYS)],
)
def test_ranks_that_wait_show_it_at_sigusr1_and_end_by_ctrl_c(
    programs: Programs, way: str, order: tuple[str, ...]
) -> None:
    # A second signal, if it took one, would not come in time.
    command = [*RUN, "--grace", "1h", *order, programs.path("waiter.py"), way]
    terminal = Terminal(sys.executable, *command, env=programs.environment, dimensions=(24, 1000))
    lines = []
    for _ in range(2):
        terminal.expect(r'\{"rank[^}]*\}')
        lines.append(terminal.after)
    (pid,) = (fact["pid"] for fact in map(json.loads, lines) if fact["rank"] == 1)
    shows = rf"rank 1 \(pid {pid}\):\r\n(  [^\n]*\n)*?  [^\n]*{WAITS[way]}"

    def waits() -> bool:  # what it has printed comes before it waits
        os.kill(pid, signal.SIGUSR1)
        return bool(terminal.expect([shows, TIMEOUT], timeout=1) == 0)

    until(waits, "rank 1 waits")
    terminal.sendintr()
    status = terminal.ended()
    assert terminal.before
    assert "stopping … (Ctrl-C again to kill)" in terminal.before
    assert terminal.before.count('{"tidied": true}') == 2
    assert "Traceback" not in terminal.before
    assert status == 130
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids(lines))


@pytest.mark.parametrize("slow", ["member", "sequencer"])
def test_a_member_that_stands_still_grows_no_memory(programs: Programs, slow: str) -> None:
    """The window bounds what others keep for it; it goes on where it was, if it is not expelled."""
    programs.environment["ORCALIKE_DETECTION"] = "600"
    members = [programs.start("flooder.py", "make", f"unix:{programs.directory}/maker")]
    address = str(members[0].next_fact()["address"])
    for _ in range(2):
        members.append(programs.start("flooder.py", "join", address))
        members[-1].next_fact()
    for member in members:
        assert member.next_fact() == {"ready": True}
    time.sleep(0.2)
    standing = members[0 if slow == "sequencer" else 2]
    moving = [member for member in members if member is not standing]
    standing.pause()
    before = [member.resident() for member in moving]
    until(lambda: all(state_of(member.pid) == "S" for member in moving), "they wait for it")
    time.sleep(0.5)
    grown = [member.resident() - was for member, was in zip(moving, before, strict=True)]
    assert max(grown) < 64 << 20
    standing.resume()
    time.sleep(0.1)
    programs.call("stop")
    facts = [member.next_fact() for member in members]
    for fact in facts:
        assert fact["counts"] == {str(each["pid"]): each["written"] for each in facts}
        assert fact["digest"] == facts[0]["digest"]
    for member in members:
        assert member.end() == 0
        assert member.complaints() == ""


def hit(programs: Programs, members: int, *options: str) -> list[list[Facts]]:
    """What the members of a group tell that signals hit while they call everything there is."""
    programs.environment["SIGNALLED_DEADLINE"] = str(DEADLINE / 2)
    address = f"unix:{programs.directory}/maker"
    how = [str(members), *options]
    processes = [programs.start("signalled.py", "make", address, *how)]
    until(lambda: Path(address.removeprefix("unix:")).exists(), "there is a group")
    for number in range(1, members):
        more = ["--seed", str(1 + number)]
        processes.append(programs.start("signalled.py", "join", address, *how, *more))
    codes = [process.end() for process in processes]
    assert codes == [0] * members, "\n".join(process.stderr() for process in processes)
    assert all(process.process.stdout for process in processes)
    return [[json.loads(line) for line in process.process.stdout or ()] for process in processes]


@pytest.mark.parametrize("stack", [None, OVER_SOCKETS], ids=["memory", "unix"])
@pytest.mark.parametrize("early", [["--early"], []], ids=["before", "after"])
def test_a_handler_that_raises_ends_the_call_and_nothing_else(
    programs: Programs, early: list[str], stack: str | None
) -> None:
    """Whatever the member calls: it can go on, and all members have the same in the end."""
    if stack is not None:
        programs.environment["STACK"] = stack
    said = hit(programs, 2, "--hits", "4", *early)
    ends = [next(fact for fact in facts if "digest" in fact) for facts in said]
    kinds = [fact["kind"] for fact in said[0] if "kind" in fact]
    assert len(kinds) > 20
    for end in ends:
        assert end["hits"] >= 4 * len(kinds)
        assert end["disorder"] == 0
        assert (end["digest"], end["states"]) == (ends[0]["digest"], ends[0]["states"])
        assert end["view"] == ends[0]["view"]


ALONE = """
import asyncio, os, signal, sys, threading, time
import orcalike as orca
{runner}

@orca.shared
class Gate:
    def __init__(self): self.up = False; self.passed = 0
    @orca.write
    def lift(self): self.up = True
    @orca.write
    def walk(self): self.passed += 1
    @walk.when
    def _(self): return self.up
    @orca.read
    def count(self): return self.passed

def strike(group):
    while group._runtime.load()[1] == 0:  # calls that wait for their guards
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

"""

LOOPS = {
    "asyncio": "from asyncio import run",
    "uvloop": "from uvloop import run",
    "thread": "",
}


@pytest.mark.parametrize("way", LOOPS)
def test_ctrl_c_withdraws_what_is_waited_for(programs: Programs, way: str) -> None:
    """Under plain python with Python's own handler: the program catches it, and goes on."""
    waiting = """
with orca.join() as group:
    gate = group.share(Gate, "gate")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    threading.Thread(target=strike, args=(group,)).start()
    try:
        gate.walk()
    except KeyboardInterrupt:
        print("caught")
    gate.lift()
    gate.walk()
    print(gate.count())
"""
    coroutines = """
async def main():
    async with orca.join() as group:
        gate = await group.share.aio(Gate, "gate")
        threading.Thread(target=strike, args=(group,)).start()
        try:
            await gate.walk.aio()
        except asyncio.CancelledError:
            print("caught")
        await gate.lift.aio()
        await gate.walk.aio()
        print(gate.count())

try:
    run(main())
except KeyboardInterrupt:
    pass
"""
    after = "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    after += "assert signal.signal.__module__ == 'signal'\nprint('ended')\n"
    program = programs.directory / "alone_.txt"
    body = waiting if way == "thread" else coroutines
    program.write_text(ALONE.format(runner=LOOPS[way]) + body + after)
    result = programs.python(str(program))
    assert (result.stdout.split(), complaints(result.stderr)) == (["caught", "1", "ended"], "")


def test_ctrl_c_that_is_not_caught_ends_the_program(programs: Programs) -> None:
    program = programs.directory / "alone_.txt"
    body = """
with orca.join() as group:
    threading.Thread(target=strike, args=(group,)).start()
    group.share(Gate, "gate").walk()
"""
    program.write_text(ALONE.format(runner="") + body)
    result = programs.python(str(program))
    assert result.returncode == -signal.SIGINT
    assert result.stderr.splitlines()[-1] == "KeyboardInterrupt"


def test_a_handler_that_does_not_raise_may_call_objects(programs: Programs) -> None:
    """It runs where the call waits, as if the program had called it there."""
    program = programs.directory / "alone_.txt"
    body = """
with orca.join() as group:
    gate = group.share(Gate, "gate")
    signal.signal(signal.SIGINT, lambda number, frame: gate.lift())
    threading.Thread(target=strike, args=(group,)).start()
    gate.walk()
    print(gate.count())
"""
    program.write_text(ALONE.format(runner="") + body)
    result = programs.python(str(program))
    assert (result.stdout.split(), complaints(result.stderr)) == (["1"], "")


def test_no_handler_runs_inside_an_operation(programs: Programs) -> None:
    """Neither in a write nor in a read, however long it takes; then it runs at once."""
    program = programs.directory / "alone_.txt"
    body = """
@orca.shared
class Slow:
    def __init__(self): self.done = 0
    @orca.write
    def write(self): work()
    @orca.read
    def read(self): work()

trace = []
tools = [signal.raise_signal, signal.SIGINT, signal.SIGUSR2]

def work():
    tools[0](tools[1])
    tools[0](tools[2])
    sum(range(1000))
    trace.append("worked")

def handle(number, frame):
    trace.append("handled")
    raise LookupError

with orca.join() as group:
    slow = group.share(Slow, "slow")
    for number in (signal.SIGINT, signal.SIGUSR2):
        signal.signal(number, handle)
    for call in (slow.write, slow.read):
        try:
            try:
                call()
                trace.append("returned")
            except LookupError:
                trace.append("raised")
            sum(range(1000))
        except LookupError:
            trace.append("raised")
    group.fence()
    print(*trace)
"""
    program.write_text(ALONE.format(runner="") + body)
    result = programs.python(str(program))
    one = ["worked", "handled"]
    seen = result.stdout.split()
    assert (seen[:2], seen.count("worked"), seen.count("handled")) == (one, 2, 4), result.stderr
    assert "returned" not in seen
    assert complaints(result.stderr) == ""
