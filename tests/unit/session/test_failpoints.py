"""Failpoints: what `ORCALIKE_FAIL` may say, when they strike, and what has left by then."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.session import failpoints
from orcalike.session.failpoints import Failpoint, Trigger, install, parse
from orcalike.transport.drivers.partial import pending
from tests.lib.processes import state_of, until
from tests.lib.programs import OVER_SOCKETS
from tests.lib.shared_classes import Counter

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("W5:kill", (Failpoint("W5", 1, "kill"),)),
        ("W5@3:kill", (Failpoint("W5", 3, "kill"),)),
        ("V2@1:stop", (Failpoint("V2", 1, "stop"),)),
        ("W10@7#2:exit", (Failpoint("W10", 7, "exit", frames=2),)),
        ("J2:delay-250", (Failpoint("J2", 1, "delay", 250),)),
        ("L1#0:kill", (Failpoint("L1", 1, "kill", frames=0),)),
        (" W5@3:kill, V2:stop ", (Failpoint("W5", 3, "kill"), Failpoint("V2", 1, "stop"))),
    ],
)
def test_what_may_be_said(text: str, expected: tuple[Failpoint, ...]) -> None:
    assert parse(text) == expected
    assert parse(",".join(map(str, expected))) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("W5", "is no STEP"),
        ("W5:", "is no STEP"),
        ("W5:die", "the actions are kill, stop, exit and delay-MILLISECONDS"),
        ("w5:kill", "is no STEP"),
        ("W5@:kill", "is no STEP"),
        ("W5@-1:kill", "is no STEP"),
        ("W5@0:kill", "counted from 1"),
        ("W13:kill", "the core has no step W13; it has W1, W2, "),
        ("J3:kill", "the core has no step J3"),
        ("V10:kill", "the core has no step V10"),
        ("L2:kill", "the core has no step L2"),
        ("D3:kill", "the core has no step D3"),
        ("W5:delay", "needs its milliseconds"),
        ("W5:kill-5", "kill takes no number"),
        ("W5:kill;V2:stop", "is no STEP"),
        ("W5:kill,V2", "'V2' is no STEP"),
    ],
)
def test_what_may_not_be_said(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"^ORCALIKE_FAIL: ") as caught:
        parse(text)
    assert says in str(caught.value)


def test_what_may_be_named_is_what_the_core_passes_and_the_manual_says_so() -> None:
    """A fault at a step that no code passes would never strike, and the run would prove nothing."""
    sources = [*ROOT.glob("transport/**/*.py"), *ROOT.glob("transport/**/*.pyx")]
    passed = [re.findall(r"\b[mM]ark\(\"(\w+)\"\)", source.read_text()) for source in sources]
    assert set(chain.from_iterable(passed)) == set(failpoints.STEPS)
    manual = (ROOT / "docs/history.md").read_text()
    assert (
        dict(re.findall(r"^\| ([WVJL]\d+) \| (.*) \|$", manual, re.MULTILINE)) == failpoints.STEPS
    )


def test_join_refuses_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCALIKE_FAIL", "W99:kill")
    with pytest.raises(ValueError, match="no step W99"), orca.join():
        pass


def struck(text: str, *steps: str) -> list[str]:
    """What strikes while a core passes these steps."""
    events: list[str] = []

    class Witness:
        def fault(self, step: str, nth: int, action: str) -> None:
            events.append(f"recorded {step}@{nth} {action}")

    with orca.join() as group:
        trigger = Trigger(
            parse(text), group._session.stack, None, Witness(), lambda p: events.append(str(p))
        )
        for step in steps:
            trigger.passed(step)
    return events


def test_each_step_is_counted_for_itself() -> None:
    assert struck("W5@2:kill,V1:stop", "W5", "W4", "V2", "W5", "W5") == [
        "recorded W5@2 kill",
        "W5@2:kill",
    ]
    assert struck("W5@2:kill,V1:stop", "V1", "W5") == ["recorded V1@1 stop", "V1@1:stop"]
    assert struck("W5@3:kill", "W5", "W5") == []


PROGRAM = """
import logging, sys
import orcalike as orca
from orcalike.session import failpoints
from orcalike.session.failpoints import Trigger, act, parse
logging.basicConfig()
with orca.join() as group:
    runtime = group._runtime
    trigger = Trigger(parse(sys.argv[1]), group._session.stack, None, runtime.sender.history, act)
    print("before", flush=True)
    trigger.passed("W5")
    print("after", flush=True)
"""


def start(folder: Path, text: str) -> subprocess.Popen[str]:
    """A process whose core passes W5 once."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, text],
        cwd=ROOT,
        env=os.environ | {"ORCALIKE_HISTORY": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("action", "code", "says"),
    [
        ("kill", -signal.SIGKILL, "before\n"),
        ("exit", failpoints.EXIT_CODE, "before\n"),
        ("delay-20", 0, "before\nafter\n"),
    ],
)
def test_what_strikes_is_on_file(tmp_path: Path, action: str, code: int, says: str) -> None:
    process = start(tmp_path, f"W5:{action}")
    out, errors = process.communicate(timeout=250)
    assert (process.returncode, out) == (code, says), errors
    assert f"failpoint W5@1:{action}" in errors
    (path,) = tmp_path.iterdir()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    faults = [record for record in records if record["kind"] == "fault"]
    assert [(f["step"], f["nth"], f["action"]) for f in faults] == [("W5", 1, action)]
    if code:
        assert records[-1]["kind"] == "fault"


def test_a_process_that_stops_goes_on_when_it_is_continued(tmp_path: Path) -> None:
    process = start(tmp_path, "W5:stop")
    until(lambda: state_of(process.pid) == "T", "it stands still")
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=250)
    assert (process.returncode, out) == (0, "before\nafter\n")


def test_a_part_of_the_frames_leaves_first(tmp_path: Path) -> None:
    """Of three others, one has the write when the fault strikes; then all have it."""
    address = f"unix:{tmp_path}/a"
    with ExitStack() as block:
        first = block.enter_context(orca.join(listen=address, stack=OVER_SOCKETS))
        others = [block.enter_context(orca.join(seeds=address)) for _ in range(3)]
        counters = [group.share(Counter, "c") for group in (first, *others)]
        counters[0].add(1)
        first.barrier.nowait()
        for group in others:
            group.fence()
        seen: list[list[int]] = []
        stack, pump = first._session.stack, first._session.pump

        def look(point: Failpoint) -> None:
            assert pending(stack) == 0
            end = time.monotonic() + 250
            while not any(counter.get() == 2 for counter in counters[1:]):
                assert time.monotonic() < end
            time.sleep(0.05)  # longer than a frame takes
            seen.append([counter.get() for counter in counters[1:]])

        trigger = Trigger(parse("W5#1:kill"), stack, pump, None, look)

        def write(now: int) -> None:
            counters[0].add.nowait(1)
            stack.flush_packets(now)
            trigger.passed("W5")

        pump.call(write)
        assert [sorted(values) for values in seen] == [[1, 1, 2]]
        for group in others:
            group.fence()
        assert [counter.get() for counter in counters] == [2, 2, 2, 2]


def test_install_asks_for_marks() -> None:
    done: list[Failpoint] = []
    with orca.join() as group:
        install(parse("W4:kill"), group._session.stack, group._session.pump, None, done.append)
        group.fence()
    assert [point.step for point in done] == ["W4"]
