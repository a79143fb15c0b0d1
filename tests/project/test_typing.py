"""What `mypy --strict` knows of a user's program, without a plugin (design 4)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import orcalike

PROGRAM = Path(__file__).with_name("typed_program.py")
PACKAGE_PARENT = Path(orcalike.__file__).parent.parent
CACHE = Path(__file__).parents[2] / "build" / "tests" / "mypy"
"""What mypy has read of the library and of Python's own stubs, by their contents, for the next time."""


def planted_errors(text: str) -> set[tuple[int, str]]:
    """Line and code of each error that a comment `# error: code, code` announces."""
    return {
        (number, code.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if (comment := re.search(r"# error: ([a-z, -]+)$", line))
        for code in comment[1].split(",")
    }


def found_errors(output: str) -> set[tuple[int, str]]:
    """Line and code of each error that mypy reports of the program."""
    pattern = re.compile(rf"{re.escape(PROGRAM.name)}:(\d+): error: .*\[([a-z-]+)\]$", re.MULTILINE)
    return {(int(line), code) for line, code in pattern.findall(output)}


def test_mypy_finds_the_planted_errors_and_no_others() -> None:
    arguments = ["--strict", "--config-file=", f"--cache-dir={CACHE}", PROGRAM.name]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments],
        cwd=PROGRAM.parent,
        env={**os.environ, "MYPYPATH": str(PACKAGE_PARENT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.stderr == ""
    assert found_errors(checked.stdout) == planted_errors(PROGRAM.read_text()), checked.stdout
