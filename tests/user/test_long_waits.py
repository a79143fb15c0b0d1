"""A call that waits for long says why, in the log: threads, coroutines, and calls that wait for each other."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.lib.programs import complaints

if TYPE_CHECKING:
    from tests.lib.command import Cli

LOCKS = """
import asyncio, logging, threading
import orcalike as orca
logging.basicConfig(level=logging.INFO, format="log: %(message)s", stream=sys.stdout)

@orca.shared
class Lock:
    def __init__(self) -> None:
        self.locked = False

    @orca.write
    def acquire(self) -> None:
        self.locked = True

    @acquire.when
    def _(self) -> bool:
        return not self.locked
"""

CYCLE = """
with orca.join() as group:
    locks = [group.share(Lock, "one"), group.share(Lock, "two")]
    locks[rank].acquire()
    group.barrier()
    thread = threading.Thread(target=locks[1 - rank].acquire)
    thread.start()
    thread.join()  # so both threads wait
"""

COROUTINES = """
async def main() -> None:
    async with orca.join() as group:
        lock = await group.share.aio(Lock, "lock")
        await lock.acquire.aio()
        found = asyncio.ensure_future(group.find.aio(Lock, "other"))
        await lock.acquire.aio()

asyncio.run(main())
"""

REASONS = """
def seek() -> None:
    try:
        group.find(Lock, "nothing")
    except orca.OrcalikeError:
        pass

with orca.join() as group:
    if rank:
        time.sleep(1000)
    threading.Thread(target=seek, daemon=True).start()
    group.barrier()
"""


def unheard(process: subprocess.Popen[str], *patterns: str) -> list[str]:
    """Read lines until all of these have been there: those that never were."""
    assert process.stdout is not None
    missing = list(patterns)
    for line in process.stdout:
        print(line, end="")  # pytest shows it if the test fails
        missing = [pattern for pattern in missing if not re.search(pattern, line)]
        if not missing:
            break
    return missing


def test_why_calls_wait(cli: Cli) -> None:
    """All of it in one go: each takes ten seconds."""
    limit = f"--timeout={cli.deadline:g}s"
    alone = [sys.executable, cli.write(LOCKS + COROUTINES, "coroutines.py")]
    cycle, reasons = cli.write(LOCKS + CYCLE, "cycle.py"), cli.write(LOCKS + REASONS, "reasons.py")
    with (
        cli.started("-q", "-n2", limit, cycle) as locked,
        cli.started("-q", "-n2", limit, reasons) as waiting,
        subprocess.Popen(alone, stdout=subprocess.PIPE, text=True) as coroutines,
    ):
        try:
            never = unheard(
                locked,
                "Lock.acquire of 'two' waits: its guard is false",
                "calls wait for each other: rank 0 .* in Lock.acquire of 'two'; rank 1 .* in "
                "Lock.acquire of 'one'; nothing can let them go on: all threads of all members wait",
            )
            assert never == []
            never = unheard(
                waiting,
                "find 'nothing' waits: no member has shared an object of that name",
                "barrier waits: rank 1 .* did not come to the barrier yet",
            )
            assert never == []
            never = unheard(
                coroutines,
                "Lock.acquire of 'lock' waits: its guard is false; no other call waits for one",
            )
            assert never == []
        finally:
            coroutines.kill()


def test_views_end_when_the_group_is_left(cli: Cli) -> None:
    program = cli.write(
        LOCKS
        + """
async def follow(group: orca.Group) -> None:
    print("coroutine", [view.number async for view in group.aviews()])

async def main() -> None:
    async with orca.join() as group:
        task = asyncio.ensure_future(follow(group))
        await asyncio.sleep(0)
    await task

with orca.join() as group:
    thread = threading.Thread(target=lambda: print("thread", [v.number for v in group.views()]))
    thread.start()
thread.join()
asyncio.run(main())
"""
    )
    result = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=100, check=False
    )
    assert (result.returncode, complaints(result.stderr)) == (0, "")
    assert "thread []\n" in result.stdout
    assert "coroutine []\n" in result.stdout
