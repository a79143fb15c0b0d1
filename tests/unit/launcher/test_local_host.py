"""What a rank starts ends with the launcher, even if that is killed before it could name the rank to the reaper."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lib.processes import is_alive, until

PROGRAM = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "1000"])
with open(f"pid{os.environ['ORCALIKE_RANK']}", "w") as file:
    print(os.getpid(), child.pid, file=file)
time.sleep(1000)
"""

LAUNCHER = """
import selectors, sys, time
from pathlib import Path
from orcalike.launcher.child import Start
from orcalike.launcher.local_host import LocalHost
from orcalike.launcher.orphans import adopt_orphans
from orcalike.launcher.reaper import Reaper
from orcalike.launcher.run_plan import RunPlan

class Silent(Reaper):
    def watch(self, group):
        "Nothing: the launcher is killed before."

folder, ranks = Path(sys.argv[1]), int(sys.argv[2])
here = folder / "run"
here.mkdir()
reaper = Silent(here)
adopt_orphans()
plan = RunPlan(
    identity="j", seed=1, program="program.py", directory=folder, nprocs=ranks, sequencer="rank"
)
host = LocalHost("here", plan, here, reaper, selectors.DefaultSelector())
host.load_template(ranks)
addresses = host.reserve(range(ranks))
for rank, address in enumerate(addresses):
    host.start(Start(role=rank, listen=address, seeds=(addresses[0],), slots=ranks))
time.sleep(1000)
"""


@pytest.mark.parametrize("ranks", [1, 2], ids=["alone", "forked"])
def test_what_a_rank_starts_is_known_before_the_program_begins(tmp_path: Path, ranks: int) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(tmp_path), str(ranks)])
    processes = list[int]()

    def all_have_begun() -> bool:
        texts = [path.read_text() for path in tmp_path.glob("pid*")]
        processes[:] = [int(pid) for text in texts if text.endswith("\n") for pid in text.split()]
        return len(processes) == 2 * ranks

    try:
        until(all_have_begun, "the ranks and what they start")
    finally:
        launcher.kill()
        launcher.wait()
    until(lambda: not any(map(is_alive, processes)), "the ranks and their children have ended")
    until(lambda: not (tmp_path / "run").exists(), "the runtime directory is removed")
