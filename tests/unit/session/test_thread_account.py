"""A thread that waits for a processor has not run, however much time has passed."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from orcalike.session.thread_account import RUN_NS, ThreadAccount


class Kernel:
    """An account that the test writes, of the thread that runs it."""

    def __init__(self, tasks: Path) -> None:
        self.tasks = tasks
        self.folder = tasks / str(threading.get_native_id())
        self.folder.mkdir(parents=True)
        self.say(0, "R")

    def say(self, used: int, state: str) -> None:
        (self.folder / "schedstat").write_text(f"{used} 123456789 42\n")
        (self.folder / "stat").write_text(f"7 (a ) name) {state} 1 2 3\n")


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.mark.parametrize(
    ("used", "state", "runs"),
    [
        (0, "R", False),
        (RUN_NS - 1, "R", False),
        (RUN_NS, "R", True),
        (0, "S", True),
        (0, "D", True),
    ],
)
def test_a_thread_without_a_processor_has_not_run(
    kernel: Kernel, used: int, state: str, runs: bool
) -> None:
    account = ThreadAccount(threading.get_ident(), kernel.tasks)
    kernel.say(used, state)
    assert account.has_run() is runs


def test_a_name_may_be_cut_in_the_middle_of_a_character(kernel: Kernel) -> None:
    """As the kernel cuts it, after 15 bytes: the account was a UnicodeDecodeError."""
    account = ThreadAccount(threading.get_ident(), kernel.tasks)
    (kernel.folder / "stat").write_bytes(b"7 (" + ("x" * 14 + "ä").encode()[:15] + b") S 1 2 3\n")
    assert account.has_run()


def test_without_an_account_time_alone_counts(tmp_path: Path, kernel: Kernel) -> None:
    assert ThreadAccount(None).has_run()
    assert ThreadAccount(threading.get_ident(), tmp_path / "none").has_run()
    account = ThreadAccount(threading.get_ident(), kernel.tasks)
    (kernel.folder / "schedstat").unlink()
    assert account.has_run()


def test_the_kernels_own_account_of_a_thread_that_computes_and_of_one_that_sleeps() -> None:
    sleeps, ends = threading.Event(), threading.Event()

    def sleep() -> None:
        sleeps.set()
        ends.wait()

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    sleeps.wait()
    asleep = ThreadAccount(sleeper.ident)
    own = ThreadAccount(threading.get_ident())
    until = time.thread_time_ns() + 2 * RUN_NS
    while time.thread_time_ns() < until:
        pass
    try:
        assert own.has_run()
        assert asleep.has_run()
    finally:
        ends.set()
        sleeper.join()
