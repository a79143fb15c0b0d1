"""The order in shared memory under sanitizers: damaged at random, and with members as threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.ring_programs import compiled, lacks, run

ASAN = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TSAN = ("-fsanitize=thread", "-Wno-tsan")  # it does not know fences, and says so
NAMED = range(1, 11)
"""The faults of `enum ring_fault` that damage can lead to."""


def test_a_damaged_segment_leads_to_a_named_fault_or_to_nothing(tmp_path: Path) -> None:
    if reason := lacks(*ASAN):
        pytest.skip(reason)
    facts = run(compiled("hostile", tmp_path, *ASAN, optimize="-O0"), 10_000, 1)
    assert facts["stderr"] == ""
    assert facts["code"] == 0
    assert facts["unnamed"] == facts["outside"] == 0
    assert facts["entries"] > 10_000
    for code in set(NAMED) - {3}:  # a packet that is too large is the caller's own
        assert facts["faults"][code], f"fault -{code} never came"


@pytest.mark.parametrize("flags", [TSAN, ASAN], ids=["thread", "address"])
def test_members_in_threads_race_for_nothing(tmp_path: Path, flags: tuple[str, ...]) -> None:
    if reason := lacks(*flags):
        pytest.skip(reason)
    facts = run(compiled("threads", tmp_path, *flags, optimize="-O0"), 1_000)
    assert facts["stderr"] == ""
    assert facts["code"] == 0
    assert facts["entries"] == 3_000
    assert facts["same"] == 1
    assert facts["broken"] == 0
