"""What a test that fails has left behind fails no other test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = """
from tests.lib.leftovers import no_process_left, pytest_runtest_teardown, started_processes
"""
TESTS = """
import gc, socket, subprocess, sys

kept = []

class Knot:
    def __init__(self):
        self.itself = self
        self.socket = socket.socket()
        self.file = open(__file__)

def begin():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, stdout=-1)
    print("pid", process.pid)
    return process, Knot()

def test_that_asserts():
    process, knot = begin()
    assert not process

def test_after_it():
    gc.collect()

def test_that_raises():
    process, knot = begin()
    try:
        raise KeyError
    except KeyError:
        raise ValueError

def test_after_that():
    gc.collect()

def test_that_leaves_a_process():
    process, knot = begin()
    knot.socket.close()
    knot.file.close()
    kept.append(process)

def test_after_all():
    gc.collect()
"""
OUTCOMES = {
    ("FAILED", "test_that_asserts"), ("ERROR", "test_that_asserts"), ("PASSED", "test_after_it"),
    ("FAILED", "test_that_raises"), ("ERROR", "test_that_raises"), ("PASSED", "test_after_that"),
    ("PASSED", "test_that_leaves_a_process"), ("ERROR", "test_that_leaves_a_process"),
    ("PASSED", "test_after_all"),
}  # fmt: skip
"""An ERROR is that of the end of a test: it left a process."""


def test_a_failure_is_that_of_its_own_test_alone(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SHARED)
    (tmp_path / "test_them.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-W", "error", "-rA", "--tb=short"]
    command += [f"-pno:{plugin}" for plugin in ("asyncio", "xdist", "hypothesispytest")]
    done = subprocess.run(
        [*command, f"--rootdir={tmp_path}", "-c", "/dev/null", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S*::(\w+)", done.stdout, re.MULTILINE)
    assert set(found) == OUTCOMES, done.stdout + done.stderr
    assert done.stdout.count("AssertionError: the test left processes behind: ") >= 3
    pids = re.findall(r"^pid (\d+)", done.stdout, re.MULTILINE)
    assert len(pids) >= 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
