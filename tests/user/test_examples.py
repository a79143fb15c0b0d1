"""The example programs as people run them: alone and launched, to answers known otherwise.

`ORCALIKE_TSPLIB` names a folder with TSPLIB's files, which are not part of orcalike; without it
the tests of their published optima say that they are skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lib.warm import python

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TSPLIB = os.environ.get("ORCALIKE_TSPLIB", "")
ALONE: list[str] = []
LAUNCHED = ["-m", "orcalike", "run", "-n", "4"]
SECONDS = 280


def end(command: list[str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A program that has ended, with all that it said."""
    return python(*command, *arguments, cwd=ROOT)


def run(command: list[str], *arguments: str | Path) -> str:
    """What a program printed that ended well; one that did not is shown."""
    ended = end(command, *arguments)
    assert ended.returncode == 0, f"{ended.args}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def held_karp(path: Path) -> int:
    """The optimum of an instance, proven by the dynamic program."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES)}
    program = Path(__file__).with_name("held_karp.py")
    printed = subprocess.check_output(
        [sys.executable, program, path], env=environment, text=True, timeout=SECONDS
    )
    return int(printed)


def test_the_salesman_on_four_processes_finds_the_proven_optimum() -> None:
    printed = run(LAUNCHED, "examples/tsp.py")
    optimum = held_karp(EXAMPLES / "silkroad.tsp")
    assert f"length: {optimum}\n" in printed
    assert "check: ok, each city once, the steps add up, optimal, as the file tells" in printed
    assert "21 cities, 4 processes" in printed
    assert re.search(r"rank [0-3] found a tour of \d+", printed)
    assert re.search(r"time: \d+\.\d\d s", printed)
    assert re.search(r"rates: [\d,]+ reads/s, [\d,]+ writes/s", printed)
    assert len(re.findall("length:", printed)) == 1, "one process alone tells the result"


@pytest.mark.parametrize("command", [ALONE, LAUNCHED], ids=["alone", "launched"])
def test_the_salesman_finds_what_the_dynamic_program_finds(
    command: list[str], tmp_path: Path
) -> None:
    places = "\n".join(f"{i} {i * 7919 % 101} {i * 104729 % 97}" for i in range(1, 14))
    path = tmp_path / "scattered.tsp"
    path.write_text(
        f"NAME: scattered\nDIMENSION: 13\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{places}\n"
    )
    printed = run(command, "examples/tsp.py", path)
    assert f"length: {held_karp(path)}\n" in printed
    assert "check: ok, each city once, the steps add up, optimal\n" in printed


@pytest.mark.parametrize("cities", [1, 2, 3, 9])
def test_the_salesman_on_a_random_instance(cities: int) -> None:
    printed = run(ALONE, "examples/tsp.py", "--cities", str(cities), "--seed", "5")
    assert f"random 5: {cities} cities, 1 processes" in printed
    assert "check: ok" in printed


@pytest.mark.skipif(not TSPLIB, reason="ORCALIKE_TSPLIB names no folder with TSPLIB's files")
@pytest.mark.parametrize(
    ("name", "optimum", "command"),
    [
        pytest.param("burma14", 3323, ALONE, id="burma14-alone"),
        pytest.param("gr17", 2085, LAUNCHED, id="gr17-launched"),
        pytest.param("gr21", 2707, ALONE, id="gr21-alone"),
    ],
)
def test_the_salesman_finds_a_published_optimum(
    name: str, optimum: int, command: list[str]
) -> None:
    printed = run(command, "examples/tsp.py", Path(TSPLIB, f"{name}.tsp"))
    assert f"length: {optimum}\n" in printed
    assert "check: ok" in printed


def test_a_wrong_optimum_in_a_file_fails_the_check(tmp_path: Path) -> None:
    path = tmp_path / "wrong.tsp"
    path.write_text(
        "COMMENT: optimum: 11\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\n"
        "NODE_COORD_SECTION\n1 0 0\n2 3 0\n3 3 4\n"
    )
    ended = end(ALONE, "examples/tsp.py", path)
    assert ended.returncode == 1
    assert "length: 12\n" in ended.stdout
    assert "check: FAILED, the file tells an optimum of 11" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["missing.tsp"], 1, "tsp.py: [Errno 2] No such file or directory: 'missing.tsp'"),
        (["examples/README.md"], 1, "tsp.py: examples/README.md: "),
        (["--cities", "0"], 2, "--cities takes a number from 1 on"),
        (["examples/silkroad.tsp", "--cities", "5"], 2, "no file beside it"),
    ],
)
def test_the_salesman_says_what_is_wrong_with_its_arguments(
    arguments: list[str], status: int, says: str
) -> None:
    ended = end(ALONE, "examples/tsp.py", *arguments)
    assert ended.returncode == status
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", [ALONE, LAUNCHED], ids=["alone", "launched"])
@pytest.mark.parametrize("cities", [2, 60], ids=["fewer-rows-than-ranks", "60"])
def test_shortest_paths_equal_the_serial_answer(command: list[str], cities: int) -> None:
    printed = run(command, "examples/asp.py", "--cities", str(cities))
    assert "check: ok, equal to the serial answer, bit for bit" in printed
    assert f"{cities} cities, {1 if command is ALONE else 4} processes" in printed


DIES = """
import os, pathlib, signal, sys, time
import asp
again, step, improved = pathlib.Path(sys.argv.pop()), int(sys.argv.pop()), asp.improved
def dies_once(row, k, through):
    if os.environ["ORCALIKE_RANK"] != "1":
        while k == 29 and not again.exists():
            time.sleep(0.001)
    elif os.environ["ORCALIKE_RESTART_COUNT"] == "1":
        again.touch()
    elif k == step:
        os.kill(os.getpid(), signal.SIGKILL)
    return improved(row, k, through)
asp.improved = dies_once
asp.main()
"""


@pytest.mark.parametrize(
    ("step", "others"),
    [
        pytest.param(14, ["--keep-going"], id="14-keep-going"),
        *(pytest.param(step, ["--restart", "1"], id=f"{step}-restart") for step in (0, 14, 29)),
    ],
)
def test_shortest_paths_are_found_though_a_process_dies(
    tmp_path: Path, step: int, others: list[str]
) -> None:
    """Before, amid and after the steps of its own rows: 10 to 19 of 30.

    If it is started again, the others are there until it takes part.
    """
    program, again = tmp_path / "dies.py", tmp_path / "again"
    program.write_text(f"import sys\nsys.path.insert(0, {str(EXAMPLES)!r})\n{DIES}")
    if others == ["--keep-going"]:
        again.touch()
    command = ["-m", "orcalike", "run", "-n", "3", *others]
    ended = end(command, program, "--cities", "30", str(step), again)
    assert ended.returncode == 0, ended.stderr
    assert "rank 1 (pid" in ended.stderr, "it has died"
    assert ended.stdout.count("check: ok, equal to the serial answer, bit for bit") == 1


@pytest.mark.parametrize("command", [ALONE, LAUNCHED], ids=["alone", "launched"])
def test_the_bank_loses_no_money(command: list[str]) -> None:
    options = ["--accounts", "5", "--each", "200", "--transfers", "500"]
    printed = run(command, "examples/bank.py", *options)
    ranks = 1 if command is ALONE else 4
    assert printed.count("check: ok, 1000 in 5 accounts as in the beginning") == ranks
    moved = [int(number) for number in re.findall(r"rank \d: (\d+) of 500 transfers", printed)]
    assert len(moved) == ranks
    assert sum(moved) == 500, "each transfer is one process's, and none is done twice"


@pytest.mark.parametrize(
    "options", [["--accounts", "1"], ["--each", "0"], ["--transfers", "0"]], ids="-".join
)
def test_the_bank_says_what_is_wrong_with_its_arguments(options: list[str]) -> None:
    ended = end(ALONE, "examples/bank.py", *options)
    assert ended.returncode == 2
    assert "two accounts at the least, some money, and a transfer" in ended.stderr


def test_a_dead_workers_job_is_handed_out_again() -> None:
    """What the queue does when a member leaves, without a group."""
    program = (
        "import orcalike as orca\n"
        "from tsp import JobQueue\n"
        "queue = JobQueue()\n"
        "queue.fill([(0, 1), (0, 2), (0, 3)])\n"
        "queue.fill([(9, 9)])\n"
        "assert [queue.get(7), queue.get(8)] == [(0, 1), (0, 2)]\n"
        "queue.done(8)\n"
        "queue.member_left(orca.Member('', 7, 1))\n"
        "queue.member_left(orca.Member('', 8, 2))\n"
        "assert queue.get(7) is None, 'what the dead asked for comes late'\n"
        "queue.done(7)\n"
        "assert [queue.get(6), queue.progress()] == [(0, 1), (2, 3)]\n"
        "queue.done(6)\n"
        "assert queue.get(6) == (0, 3)\n"
        "try:\n"
        "    queue.get(9)\n"
        "except orca.GuardFalse:\n"
        "    queue.done(6)\n"
        "print(queue.get(9), queue.progress())\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{EXAMPLES}"}
    printed = subprocess.check_output(
        [sys.executable, "-c", program], env=environment, text=True, timeout=SECONDS
    )
    assert printed == "None (3, 3)\n"
