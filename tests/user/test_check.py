"""`orcalike check`: all that is wrong with a program's classes, before anything of it runs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lib.command import Cli

HELPERS = """
    def stamp():
        return time.time()


    def store(board, text):
        board.texts.append(text)
"""
PROGRAM = """
    import numpy

    import orcalike as orca
    from helpers import stamp

    print("it runs")
    RANK = int(os.environ.get("RANK", 0))
    group = orca.join()


    @orca.shared
    class Board:
        def __init__(self):
            self.texts = []
            self.at = 0.0

        @orca.write
        def put(self, text):
            self.texts.append(text)
            self.at = stamp()
            later(self)

        @orca.write
        def norm(self, text):
            self.at = float(numpy.linalg.norm([1.0]))
            return RANK

        def forgotten(self):
            return 1


    @orca.atomic
    def both(one, other):
        one.put("a")
        time.sleep(1)


    def later(board):
        print(board)


    if __name__ == "__main__":
        print("it runs")
    with group:
        board = group.share(Board, "board")
"""


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orcalike", "check", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_all_is_printed_before_anything_runs(cli: Cli) -> None:
    helpers, program = cli.write(HELPERS, "helpers.py"), cli.write(PROGRAM)
    ended = check(program)
    assert ended.returncode == 1, ended.stderr
    assert "it runs" not in ended.stdout
    lines = ended.stdout.splitlines()

    def line_of(file: str, text: str) -> int:
        with open(file) as source:
            return next(n for n, line in enumerate(source, 1) if text in line)

    for file, text, said in (
        (helpers, "time.time()", "stamp, which Board.put calls, uses time.time"),
        (program, "print(board)", "later, which Board.put calls, uses print"),
        (program, "return RANK", "uses RANK, which is int(os.environ.get('RANK', 0))"),
        (program, "def forgotten", "Board.forgotten is public, and no operation"),
        (program, "time.sleep", "atomic both uses time.sleep"),
        (program, "numpy.linalg", "uses numpy.linalg.norm, which is not checked (note)"),
    ):
        found = [line for line in lines if said in line]
        assert found, (said, lines)
        assert found[0].startswith(f"{file}:{line_of(file, text)}: ")
    assert "2 shared classes and atomic functions, 5 found" in ended.stderr


def test_a_program_in_order(cli: Cli) -> None:
    program = cli.write(
        """
        import orcalike as orca

        @orca.shared
        class Counter:
            def __init__(self):
                self.value = 0

            @orca.write
            def add(self):
                self.value += 1

        raise SystemExit(3)
        """
    )
    ended = check(program)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "1 shared classes and atomic functions, 0 found, 0 not known" in ended.stderr


def test_no_such_program(cli: Cli) -> None:
    ended = check(str(cli.directory / "nothing.py"))
    assert ended.returncode == 2
    assert "there is no file" in ended.stderr


def test_a_function_that_a_module_got_by_its_name(cli: Cli) -> None:
    """`getattr` changes nothing, so it is called, and what it gives is known."""
    program = cli.write(
        """
        import orcalike as orca

        clock = getattr(time, "time")

        @orca.shared
        class Stamped:
            def __init__(self):
                self.at = 0.0

            @orca.write
            def stamp(self):
                self.at = clock()
        """
    )
    ended = check(program)
    assert ended.returncode == 1, ended.stderr
    assert "Stamped.stamp uses clock (time.time)" in ended.stdout


def test_a_class_that_is_registered_by_a_call(cli: Cli) -> None:
    """`orcalike.register` gives the class itself, so it is called, and the name is known."""
    program = cli.write(
        """
        import enum
        import orcalike as orca

        Colour = orca.register(enum.Enum("Colour", "RED GREEN"))

        @orca.shared
        class Light:
            def __init__(self, colour=Colour.RED):
                self.colour = colour
        """
    )
    ended = check(program)
    assert ended.returncode == 0, ended.stdout
    assert "1 shared classes and atomic functions, 0 found, 0 not known" in ended.stderr
