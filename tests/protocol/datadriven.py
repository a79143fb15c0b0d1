"""Tests as scripts: each command of a script, and below it what came of it.

    # A comment.
    cast a data=hello
    ----
    a: deliver 1 of a: hello

`pytest --rewrite` puts what happens now in the place of what was expected: read the difference,
and keep only what you can explain.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OPTION = re.compile(r"(\w+)=(.*)")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a script, and what is expected of it."""

    line: int
    text: str
    expected: str

    @property
    def words(self) -> list[str]:
        """The verb and what is no option."""
        return [word for word in shlex.split(self.text) if not OPTION.match(word)]

    @property
    def options(self) -> dict[str, str]:
        """The words of the form name=value."""
        matches = [OPTION.match(word) for word in shlex.split(self.text)]
        return {match[1]: match[2] for match in matches if match}


def parse(text: str) -> list[str | Command]:
    """The comments and blank lines of a script, as they are, and its commands."""
    parts: list[str | Command] = []
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            parts.append(line)
            continue
        rule = next(lines, (0, ""))[1]
        if rule != "----":
            raise ValueError(f"line {number + 1}: ---- should stand below {line!r}")
        expected = []
        for _, below in lines:
            if not below:
                break
            expected.append(below)
        parts += [Command(number, line, "\n".join(expected)), ""]
    while parts and parts[-1] == "":
        parts.pop()
    return parts


def run(path: Path, handle: Callable[[Command], str], *, rewrite: bool = False) -> None:
    """Run a script's commands through `handle`; raises AssertionError at the first other output."""
    out: list[str] = []
    for part in parse(path.read_text()):
        if isinstance(part, str):
            out.append(part)
            continue
        actual = handle(part).rstrip("\n") or "ok"
        where = f"{path.name}, line {part.line}: {part.text}"
        assert rewrite or actual == part.expected, f"{where}\n{actual}"
        out += [part.text, "----", actual]
    if rewrite:
        path.write_text("\n".join(out) + "\n")
