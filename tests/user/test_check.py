"""`orcalike check`: all that is wrong with a program's classes, before anything of it runs."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from orcalike.cli.verbs import cli as cli_of_orcalike

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
    assert "2 shared classes and atomic functions; 5 faults, 1 note" in ended.stderr


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
    assert "1 shared class or atomic function; nothing found" in ended.stderr


LOOKS_AT_THE_TIME = """
import orcalike as orca

@orca.shared
class Gate:
    def __init__(self):
        self.opens = orca.now() + 1.0

    def _is_open(self):
        return orca.now() >= self.opens

    @orca.read
    def left(self):
        return self.opens - orca.now() if not self._is_open() else 0.0

    @orca.write
    def enter(self):
        self.opens = orca.now()

    @enter.when
    def _(self):
        return orca.now() >= self.opens  # directly

    @orca.write
    def pass_by(self):
        pass

    @pass_by.when
    def _(self):
        return self._is_open()

    @property
    @orca.read
    def waits(self):
        return self.left() > 0

    @orca.write
    def follow(self):
        pass

    @follow.when
    def _(self):
        return not self.waits

@orca.atomic
def both(one, other):
    return orca.now()

@both.when
def _(one, other):
    return orca.now() >= one.opens
"""


def test_a_guard_that_looks_at_the_time_is_noted(cli: Cli) -> None:
    """It is not tried again as time passes; but another write may come."""
    program = cli.write(LOOKS_AT_THE_TIME)
    ended = check(program)
    assert ended.returncode == 0, ended.stdout
    assert "2 shared classes and atomic functions; 4 notes" in ended.stderr
    said = (
        " uses orcalike.now(), and is tried after writes of the object, not as time passes: wait "
    )
    for label in (
        "the guard of Gate.enter",
        "Gate._is_open, which the guard of Gate.pass_by calls,",
        "Gate.left, which the guard of Gate.follow calls,",
        "the guard of atomic both",
    ):
        assert f": {label}{said}" in ended.stdout
    assert all(line.endswith("(note)") for line in ended.stdout.splitlines())


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
    assert "1 shared class or atomic function; nothing found" in ended.stderr


#: What no Python reads, by the line at fault and some words of why.
NO_PYTHON = {
    b"x = 1\ndef f(:\n": (":2: ", "invalid syntax"),
    b"x = 1\nif x:\n": (":2: ", "expected an indented block"),
    b"x = 1\ny = \0\n": (": ", "null bytes"),
    b'x = "\xff"\n': (":1: ", "can't decode byte 0xff"),
    b"# -*- coding: klingon -*-\n": (": ", "klingon"),
    b"x = 1\nclass C:\n    def f(self):\n        nonlocal x\n": (":4: ", "nonlocal 'x'"),
    b"x = 1\nreturn x\n": (":2: ", "'return' outside function"),
    b"x = " + b"-" * 100_000 + b"1\n": (": ", "nested too deeply"),
}


@pytest.mark.parametrize("source", NO_PYTHON, ids=lambda source: repr(source[:20]))
def test_what_is_no_python(tmp_path: Path, source: bytes) -> None:
    """It is refused in one line, with the file and the line at fault."""
    program = tmp_path / "prog.py"
    program.write_bytes(source)
    ended = CliRunner().invoke(cli_of_orcalike, ["check", str(program)])
    where, why = NO_PYTHON[source]
    assert (ended.exit_code, ended.stdout) == (2, ""), ended.output
    assert ended.stderr.startswith(f"orcalike: {program}{where}")
    assert why in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "head", [b"\xef\xbb\xbf", b'# -*- coding: latin-1 -*-\nNAME = "\xe9"\n'], ids=["bom", "latin-1"]
)
def test_each_encoding_that_python_takes(tmp_path: Path, head: bytes) -> None:
    program = tmp_path / "prog.py"
    source = (
        b"import orcalike as orca\n\n@orca.shared\nclass C:\n    def f(self):\n        return 1\n"
    )
    program.write_bytes(head + source)
    ended = check(str(program))
    assert ended.returncode == 1, ended.stderr
    assert "C.f is public, and no operation" in ended.stdout


def test_a_module_that_ends_the_program_when_it_is_imported(cli: Cli) -> None:
    """The rest is checked all the same."""
    cli.write("raise SystemExit('no display')", "screen.py")
    program = cli.write(
        "import screen\nimport orcalike as orca\n\n@orca.shared\nclass C:\n    def f(self): return 1\n"
    )
    ended = check(program)
    assert ended.returncode == 1, ended.stderr
    assert "C.f is public, and no operation" in ended.stdout
    assert (
        "import screen raised SystemExit('no display'), and is not checked (note)" in ended.stdout
    )


REFUSED_AT_ONCE = """import orcalike as orca

@orca.shared
class Refused:
    @orca.read
    @property
    def size(self): return 1

@orca.shared
class Guarded:
    @orca.write
    def put(self): pass

    @put.when
    def put(self): return True

@orca.shared
class Fine:
    def f(self): return 1
"""


def test_what_a_decorator_refuses_at_once_is_a_fault(cli: Cli) -> None:
    cli.write("import orcalike as orca\n\nput = orca.write(3)\n", "other.py")
    program = cli.write(REFUSED_AT_ONCE + "\nimport other\n")
    lines = Path(program).read_text().splitlines()
    ended = check(program)
    assert ended.returncode == 1, ended.stderr
    found = ended.stdout.splitlines()
    assert found[0].startswith(
        f"{program}:{lines.index('    @orca.read') + 1}: @read needs a plain"
    )
    at = lines.index("    @put.when") + 1
    assert found[1].startswith(f"{program}:{at}: the guard of Guarded.put has its name")
    other = cli.directory / "other.py"
    assert found[3].startswith(f"{other}:5: @write needs a plain function, not 3")
    assert found[2].endswith("decorate it with @read, @write or @local")
    assert len(found) == 4


def test_a_program_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root reads all files: the system call fails instead."""
    program = tmp_path / "prog.py"
    program.touch()

    read_bytes = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == program:  # pytest reads what is imported meanwhile
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    ended = CliRunner().invoke(cli_of_orcalike, ["check", str(program)])
    assert (ended.exit_code, ended.output) == (2, f"orcalike: {program}: Permission denied\n")
