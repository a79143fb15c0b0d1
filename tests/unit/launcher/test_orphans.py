"""What ranks leave behind is killed; what cleans up after a run inside of a rank is let do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILES = 3_000

AROUND = f"""
import os, sys, time
from pathlib import Path
from orcalike.launcher import orphans
from orcalike.launcher.reaper import Reaper

folder = Path(sys.argv[1])
folder.mkdir()
for number in range({FILES}):  # it takes a while to remove them
    (folder / str(number)).touch()
orphans.adopt_orphans()
reader, writer = os.pipe()
if os.fork() == 0:
    Reaper(folder)
    os.write(writer, b"ready")
    time.sleep(1000)
os.read(reader, 5)
orphans.kill_orphans([])
print(folder.exists())
"""


def test_the_reaper_of_a_run_that_is_killed_cleans_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", AROUND, str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    assert ended.stdout == "False\n"
