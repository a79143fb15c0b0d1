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


OF_ANOTHER_USER = """
import os, signal, time
from orcalike.launcher import orphans

orphans.adopt_orphans()
kill, theirs = signal.pidfd_send_signal, set()
children = []
for number in range(3):
    if (pid := os.fork()) == 0:
        time.sleep(1000)
    children.append(pid)

def refuse(pidfd, number):
    text = open(f"/proc/self/fdinfo/{pidfd}").read()
    if f"Pid:\\t{children[0]}\\n" in text:
        raise PermissionError(1, "Operation not permitted")
    kill(pidfd, number)

signal.pidfd_send_signal = refuse
left = orphans.kill_orphans([])
print(left == {children[0]}, orphans._children() == {children[0]})
print(orphans.describe_left(children[0]).replace(str(children[0]), "PID"))
os.kill(children[0], signal.SIGKILL)
"""


def test_one_of_another_user_is_spared_and_named() -> None:
    command = [sys.executable, "-c", OF_ANOTHER_USER]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    name = Path(sys.executable).name[:15]
    assert ended.stdout.splitlines() == [
        "True True",
        f"process PID ({name}), which a rank has left behind, belongs to another user and goes on",
    ]


STUCK = """
import os, signal, time
from orcalike.launcher import orphans

orphans.adopt_orphans()
children = []
for number in range(3):
    if (pid := os.fork()) == 0:
        time.sleep(1000)
    children.append(pid)
kill, stuck = orphans._kill, []

def kill_but_the_first(pid, pidfd):
    if not stuck:
        stuck.append(pid)
    return pid not in stuck and kill(pid, pidfd)

orphans._kill = kill_but_the_first
print(orphans.kill_orphans([]), orphans._children() == set(stuck))
for pid in orphans._children():
    os.kill(pid, signal.SIGKILL)
"""


def test_one_that_is_stuck_in_the_kernel_keeps_no_other_alive() -> None:
    command = [sys.executable, "-c", STUCK]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    assert ended.stdout == "set() True\n"
