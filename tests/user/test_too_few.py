"""Programs with fewer members left than a degree takes: nothing waits for ever without a word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lib.orders import IN_MEMORY, OVER_RANK, OVER_WITNESS

if TYPE_CHECKING:
    from tests.lib.command import Cli

OBJECT = """
import logging, signal
import orcalike as orca
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)

@orca.shared(resilience=1)
class Counter:
    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self, amount: int) -> int:
        self.value += amount
        return self.value
"""

TWO = """
with orca.join() as group:
    counter = group.share(Counter, "counter")
    counter.add(1)
    group.barrier()
    if rank == 1 and sys.argv[1] == "lost":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        while group.size == 2:
            time.sleep(0.01)
        blocked = group.info().blocked
        print("blocked", [member.rank for member in blocked.missing], blocked.rule, flush=True)
        try:
            counter.add.options(timeout=0.5)(10)
        except orca.NotEnoughMembers as error:
            print("not sent:", error, flush=True)
        {then}
"""


def run(cli: Cli, how: str, *flags: str, then: str) -> tuple[int, str, str]:
    program = cli.write(OBJECT + TWO.replace("{then}", then))
    flags = ("-n2", "-q", "--timeout", f"{cli.deadline:g}s", *flags)
    result = cli.run(*flags, program, how)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("how", "order"),
    [("lost", OVER_WITNESS), ("gone", OVER_RANK), ("lost", IN_MEMORY)],
    ids=["witness", "rank", "memory"],
)
def test_the_last_of_two_ends_with_74(cli: Cli, how: str, order: tuple[str, ...]) -> None:
    code, said, errors = run(cli, how, "--keep-going", *order, then="counter.add(100)")
    assert code == 74, errors
    rule = "degree 1 takes 2 members with replicas, and the view has 1"
    assert f"blocked [1] {rule}" in said
    assert re.search(f"not sent: .*{rule}.*it was not sent", said)
    assert re.search(f"too few members: {rule}; such writes wait for rank 1", said)
    assert f"more members than there are ranks left: {rule}" in errors.splitlines()[-1]


@pytest.mark.parametrize("order", [OVER_RANK, IN_MEMORY], ids=["rank", "memory"])
def test_a_rank_that_leaves_is_not_blocked_for_good(cli: Cli, order: tuple[str, ...]) -> None:
    """Leaving takes as long as it may, since a call of another thread waits for members that have left."""
    then = """
        import threading
        threading.Thread(target=lambda: counter.add(100), daemon=True).start()
        group.close()
        print("has left", flush=True)
"""
    code, said, errors = run(cli, "gone", *order, then=then.strip())
    assert code == 0, errors
    assert "has left" in said
    assert "the group 'default' was left with calls under way" in said


def test_reset_goes_on_with_what_there_is(cli: Cli) -> None:
    """Nothing is lost by it, and what waited goes on; what was not sent never runs."""
    then = """
        waits = counter.add.nowait(100)
        group.reset(minimum=1)
        print("sum", waits.result(), counter.add(1000), group.info().blocked, group.info().lineage)
"""
    code, said, errors = run(cli, "lost", "--keep-going", then=then.strip())
    assert code == 0, errors
    assert "sum 102 1102 None 1" in said


@pytest.mark.parametrize("order", [OVER_WITNESS, IN_MEMORY], ids=["witness", "memory"])
def test_available_degrees_need_no_reset(cli: Cli, order: tuple[str, ...]) -> None:
    source = TWO.replace("orca.join()", 'orca.join(degree="available")').replace(
        "{then}", "print('sum', counter.add(1000))"
    )
    source = source.replace('print("blocked", [m', 'blocked and print("blocked", [m')
    program = cli.write(OBJECT + source)
    result = cli.run("-n2", "-q", "--keep-going", *order, program, "lost")
    assert result.returncode == 0, result.stderr
    assert "blocked" not in result.stdout
    assert "sum 1012" in result.stdout


def test_a_rank_that_is_started_again_when_the_others_have_finished(
    cli: Cli, tmp_path: Path
) -> None:
    """It is let in, alone, and its `share` takes two."""
    program = cli.write(
        OBJECT
        + f"""
gone = {str(tmp_path / "gone")!r}
if rank == 0 and not os.path.exists(gone):
    while not os.path.exists(gone + ".0"): time.sleep(0.01)
    open(gone, "w").close()
    time.sleep(0.2)
    sys.exit(1)
with orca.join("other", listen="unix:" + gone + ".sock") if rank else orca.join(resilience=1) as group:
    if rank == 0:
        print("again", flush=True)
        group.share(Counter, "counter")
    else:
        open(gone + ".0", "w").close()
"""
    )
    limit = f"{cli.deadline:g}s"
    result = cli.run(
        "-n2", "-q", "--restart", "1", "--sequencer", "witness", "--timeout", limit, program
    )
    assert result.returncode == 74, (result.stdout, result.stderr)
    assert "[0] again" in result.stdout
    assert "more members than there are ranks left" in result.stderr


MESSAGES = """
from orcalike import messages
group = messages.create_group(listen="unix:" + sys.argv[1], resilience=1)
try:
    messages.send_to_group(group, b"x", timeout=0.2)
except orca.NotEnoughMembers as error:
    print(error)
print(messages.get_info_group(group).blocked.rule)
messages.reset_group(group, 1)
messages.send_to_group(group, b"y")
print([event.data for event in [messages.receive_from_group(group)]])
print(messages.get_info_group(group).blocked)
messages.leave_group(group)
"""


def test_messages_of_a_degree(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(OBJECT + MESSAGES)
    command = [sys.executable, program, str(tmp_path / "group")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    rule = "degree 1 takes 2 members with replicas, and the view has 1"
    assert result.stdout.splitlines() == [
        f"a message of 1 byte was not sent within 0.2 s: {rule}",
        rule,
        "[b'y']",
        "None",
    ], result.stderr
