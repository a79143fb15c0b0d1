"""The examples of fewer than forty lines, as people run them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.lib.processes import DEADLINE
from tests.lib.programs import complaints
from tests.lib.warm import python

ROOT = Path(__file__).parents[2]
RUN = ("-m", "orcalike", "run", "-q", "--no-prefix", "-n")
SHORT = (
    *(
        "averaging",
        "chat",
        "collatz",
        "knapsack",
        "lock_service",
        "pipeline",
        "test_auction",
        "web_cache",
    ),
    "word_count",
)


def output(*arguments: str) -> str:
    """What a program prints; on standard error, no more than a busy machine brings about."""
    ended = python(*arguments, cwd=ROOT)
    assert (ended.returncode, complaints(ended.stderr)) == (0, "")
    return ended.stdout


def test_they_are_short() -> None:
    lengths = {
        name: len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) for name in SHORT
    }
    assert {name for name, length in lengths.items() if length >= 40} == set()


def best_load() -> int:
    """The answer of `knapsack.py`, by dynamic programming."""
    path = ROOT / "examples" / "knapsack.py"
    spec = importlib.util.spec_from_file_location("knapsack", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    best = [0] * 501
    for weight, value in program.THINGS:
        for room in range(500, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[500]


def test_search_with_a_shared_bound() -> None:
    printed = output(*RUN, "3", "examples/knapsack.py")
    assert printed == f"the best load is worth {best_load()}\n"


@pytest.mark.parametrize("launcher", [(), (*RUN, "2")], ids=["python", "run"])
def test_workers_that_a_program_starts(
    launcher: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert output(*launcher, "examples/collatz.py") == "77031 takes 351 steps\n"


def test_a_cache_under_two_web_workers() -> None:
    assert output(*RUN, "2", "examples/web_cache.py") == "20 requests, 5 pages made\n"


def test_averaging_of_a_vector() -> None:
    pytest.importorskip("numpy")
    printed = output(*RUN, "2", "examples/averaging.py")
    assert printed == "found [ 3. -2.] close: True\n"


def test_a_pipeline_with_back_pressure() -> None:
    assert output(*RUN, "3", "examples/pipeline.py") == "100 numbers, 11 primes\n"


def test_a_lock_service_whose_holders_die() -> None:
    printed = output("examples/lock_service.py")
    assert printed == "tokens grow: True · survivors had their turns: True\n"


def test_a_port_of_a_manager_program() -> None:
    counted = "42 words, 26 different ones\nthe 7, a 3, and 3\n"
    assert output("examples/word_count.py") == counted


def test_tests_of_a_class() -> None:
    pytest_command = ("-m", "pytest", "-q", "-W", "ignore", "-p", "no:hypothesispytest")
    printed = output(*pytest_command, "examples/test_auction.py")
    assert "3 passed" in printed


@pytest.mark.parametrize("arguments", [(), ("/tmp/room",), ("/tmp/room", "ada", "eve")])
def test_a_chat_says_what_it_takes(arguments: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "examples/chat.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "usage: python chat.py PLACE NAME\n"


def test_a_chat(tmp_path: Path) -> None:
    """The first one in makes the room; it leaves, and the second one says the last word."""
    pipe = subprocess.PIPE
    people: list[subprocess.Popen[str]] = []

    def enter(name: str) -> subprocess.Popen[str]:
        person = subprocess.Popen(
            [sys.executable, "examples/chat.py", str(tmp_path / "room"), name],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdin=pipe,
            stdout=pipe,
            text=True,
        )
        people.append(person)
        return person

    def say(person: subprocess.Popen[str], line: str) -> None:
        assert person.stdin is not None
        person.stdin.write(line + "\n")
        person.stdin.flush()

    def reads(person: subprocess.Popen[str], *lines: str) -> None:
        assert person.stdout is not None
        limit = threading.Timer(DEADLINE, person.kill)
        limit.start()
        try:
            assert [person.stdout.readline() for _ in lines] == [f"{line}\n" for line in lines]
        finally:
            limit.cancel()

    try:
        ada = enter("ada")
        reads(ada, "* ada is here")
        bob = enter("bob")
        reads(bob, "* ada is here", "* bob is here")
        say(ada, "hello")
        reads(bob, "ada: hello")
        reads(ada, "* bob is here", "ada: hello")
        ada.communicate(timeout=DEADLINE)
        assert ada.returncode == 0
        reads(bob, "* ada has left")
        say(bob, "so I am alone")
        reads(bob, "bob: so I am alone")
        bob.communicate(timeout=DEADLINE)
        assert bob.returncode == 0
    finally:
        for person in people:
            person.kill()
            person.communicate()
