"""Programs after the manual of `multiprocessing`, which run unchanged but for the import of `Manager`.

Each ends with what it prints, as a comment; with `multiprocessing.Manager` it prints the same.
"""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.objects import manager_groups, proxies
from orcalike.objects.steps import BoundMethod
from tests.lib.programs import complaints

PROGRAMS = sorted((Path(__file__).parent / "manager").glob("*.py"))
MAIN = 'if __name__ == "__main__":\n'
SECONDS = 250


def output(path: Path) -> str:
    """What a program prints; it must end well."""
    ended = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (ended.returncode, complaints(ended.stderr)) == (0, "")
    return ended.stdout


DRIVER = """
import json, multiprocessing.pool, os, runpy, sys
import concurrent.futures.process
import orcalike.objects.proxies

def run(program, output):
    for stream in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    runpy.run_path(program, run_name="__main__")

codes = []
for program, output in json.loads(sys.argv[1]):
    child = multiprocessing.get_context("fork").Process(target=run, args=(program, output))
    child.start()
    child.join()
    codes.append(child.exitcode)
print(json.dumps(codes))
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """What each program prints, in a process forked from one that has imported orcalike."""
    folder = tmp_path_factory.mktemp("outputs")
    runs = [(str(program), str(folder / program.stem)) for program in PROGRAMS]
    printed = subprocess.check_output(
        [sys.executable, "-c", DRIVER, json.dumps(runs)], text=True, timeout=SECONDS
    )
    codes = json.loads(printed)
    return {
        program: Path(output).read_text() + (f"exit code {code}" if code else "")
        for program, (_, output), code in zip(PROGRAMS, runs, codes, strict=True)
    }


def promised(source: str) -> str:
    """What a program says that it prints: its comments at the beginning of a line."""
    return "".join(f"{line[2:]}\n" for line in source.splitlines() if line.startswith("# "))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program(outputs: dict[Path, str], program: Path) -> None:
    assert outputs[program] == promised(program.read_text())


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start_processes(tmp_path: Path, method: str) -> None:
    (program,) = [path for path in PROGRAMS if path.stem == "nested"]
    source = program.read_text()
    start = f'{MAIN}    __import__("multiprocessing").set_start_method({method!r})\n'
    (tmp_path / "program.py").write_text(source.replace(MAIN, start))
    assert output(tmp_path / "program.py") == promised(source)


DEATHS = """
import os
from multiprocessing import Process

import orcalike

def hold(lock, states):
    lock.acquire()
    states.append("held")
    os._exit(0)

if __name__ == "__main__":
    with orcalike.Manager() as manager:
        lock, states = manager.Lock(), manager.list()
        children = [Process(target=hold, args=(lock, states)) for _ in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print(states, lock.acquire(timeout=100))
        try:
            states.append(lambda: None)
        except orcalike.NotSerializable as error:
            print("function" in str(error))
        try:
            manager.Barrier(2, print)
        except TypeError as error:
            print(error)

# ['held', 'held', 'held', 'held'] True
# True
# this barrier takes no action: call it if `wait` has returned 0, and wait again
"""


def test_children_that_die_release_what_they_hold(tmp_path: Path) -> None:
    """Which a server process does not do; and the manager's group goes on without them."""
    (tmp_path / "program.py").write_text(DEATHS)
    assert output(tmp_path / "program.py") == promised(DEATHS)


def test_a_manager_that_is_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_groups, "JOIN_WITHIN", 1000.0)
    with pytest.raises(orca.JoinFailed, match="was shut down, or has ended"):
        len(proxies.ListProxy("unix:/tmp/orcalike-none/manager", "list"))


def test_a_manager_that_is_shut_down_leaves_nothing_in_its_process() -> None:
    before = {*manager_groups._members}, {*manager_groups._locks}
    with orca.Manager() as manager:
        numbers = manager.list([1])
        group = weakref.ref(manager_groups._members[manager.address].group)
    assert ({*manager_groups._members}, {*manager_groups._locks}) == before
    while group() is not None:  # its threads end
        gc.collect()
    with pytest.raises(orca.JoinFailed, match="was shut down, or has ended"):
        len(numbers)
    manager.shutdown()


def test_a_block_that_a_signal_interrupts_as_it_begins_holds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        raise Interrupted

    call = BoundMethod.__call__

    def interrupted(method: Any, *args: Any) -> Any:
        outcome = call(method, *args)
        if method.__name__ == "acquire":
            signal.raise_signal(signal.SIGUSR1)
        return outcome

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with orca.Manager() as manager:
            made = manager.Lock(), manager.RLock(), manager.Condition(), manager.Semaphore()
            with monkeypatch.context() as patch:
                patch.setattr(BoundMethod, "__call__", interrupted)
                for each in made:
                    with pytest.raises(Interrupted), each:
                        pass
            assert [each.acquire(timeout=0) for each in made] == [True] * 4
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_manager_that_cannot_be_made_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(joining: object) -> None:
        raise orca.JoinFailed("on purpose")

    monkeypatch.setattr(manager_groups, "open_until_exit", fail)
    monkeypatch.setattr("tempfile.mkdtemp", lambda **options: str(tmp_path / "folder"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(orca.JoinFailed, match="on purpose"):
        orca.Manager()
    assert not any(tmp_path.iterdir())
