"""Ctrl-C, or another signal, while a run starts: it ends, says nothing of where it was, and leaves nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lib.processes import DEADLINE, until

#: The command of the arguments after the first two, a signal and a module's name. The signal comes as that module is looked
#: for, or as the reaper is forked; in a callback, of which Python shows what it raises, and goes on.
INTERRUPTED = """
import os, signal, sys, weakref

class Thing:
    pass

def interrupt(*rest):
    os.kill(os.getpid(), number)

class Finder:
    def find_spec(self, name, path, target=None):
        if name == module:
            thing = Thing()
            reference = weakref.ref(thing, interrupt)
            del thing

number, module = int(sys.argv.pop(1)), sys.argv.pop(1)
if module == "fork":
    os.register_at_fork(before=interrupt)
sys.meta_path.insert(0, Finder())

from orcalike.__main__ import main
main()
"""


def interrupted(at: str, directory: Path, number: signal.Signals) -> tuple[int, str, str]:
    """How a run ends that this signal interrupts there: its exit code, and what it prints."""
    program = directory / "prog.py"
    program.write_text("print('it ran')")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            INTERRUPTED,
            str(number.value),
            at,
            "run",
            "-q",
            "-n1",
            str(program),
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "module",
    ["click", "orcalike.cli.run", "orcalike.environments.finding", "orcalike.launcher.engine"],
)
def test_ctrl_c_is_not_lost_while_modules_are_loaded(tmp_path: Path, module: str) -> None:
    assert interrupted(module, tmp_path, signal.SIGINT) == (130, "", "")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_a_signal_leaves_no_folder_before_there_is_a_reaper(
    own_runs: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    assert interrupted("fork", tmp_path, number) == (code, "", "")
    until(lambda: not list((own_runs / "orcalike").iterdir()), "the reaper removes the folder")
