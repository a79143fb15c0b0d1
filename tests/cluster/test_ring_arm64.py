"""The order in shared memory, compiled for arm64 and run by an emulator.

It shows that the C is right for another processor's sizes, alignments and atomic instructions. It says nothing of weak memory:
an emulator on x86-64 executes loads and stores in that processor's order (`tests/protocol/test_ring_weak_memory.py` does).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lib.ring_programs import compiled, compiler, run

CC, EMULATOR = "aarch64-linux-gnu-gcc", shutil.which("qemu-aarch64-static")

pytestmark = [
    pytest.mark.skipif(shutil.which(CC) is None, reason=f"there is no {CC}"),
    pytest.mark.skipif(EMULATOR is None, reason="there is no qemu-aarch64-static"),
]


def for_arm64(name: str, folder: Path) -> Path:
    return compiled(name, folder, "-static", cc=CC)


def test_a_seed_is_the_same_run_on_both(tmp_path: Path) -> None:
    if compiler() is None:
        pytest.skip("there is no C compiler")
    there = run(for_arm64("simulator", tmp_path), 2_000, 1, emulator=EMULATOR)
    assert there["violation"] == "", there["stderr"]
    here = run(compiled("simulator", tmp_path), 2_000, 1)
    assert there == here


def test_members_are_killed_while_all_write_at_full_speed(tmp_path: Path) -> None:
    facts = run(for_arm64("killload", tmp_path), 50, 1, emulator=EMULATOR)
    assert facts["code"] == 0, facts["stderr"]
    assert facts["kills"] == 50
    assert facts["packets"] > 1_000
    for each in ("lost", "differ", "broken"):
        assert facts[each] == 0, each


def test_members_in_threads_agree(tmp_path: Path) -> None:
    facts = run(for_arm64("threads", tmp_path), 1_000, emulator=EMULATOR)
    assert facts["code"] == 0, facts["stderr"]
    assert facts["entries"] == 3_000
    assert (facts["same"], facts["broken"]) == (1, 0)


def test_a_damaged_order_leads_to_a_named_fault_or_to_nothing(tmp_path: Path) -> None:
    facts = run(for_arm64("hostile", tmp_path), 5_000, 1, emulator=EMULATOR)
    assert (facts["code"], facts["stderr"]) == (0, "")
    assert facts["unnamed"] == facts["outside"] == 0
