"""C programs over the order in shared memory (`transport/ring`), compiled where they are tested."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.campaign.mutants import load
from tests.lib.processes import DEADLINE

ROOT = Path(__file__).parents[2]
HEADERS = ROOT / "transport" / "ring"
PROGRAMS = Path(__file__).parent / "ring"
WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")


def compiler() -> list[str] | None:
    """The command of the C compiler, or None if there is none."""
    command = shlex.split(os.environ.get("CC", "cc"))
    return command if command and shutil.which(command[0]) else None


def lacks(*flags: str) -> str:
    """Why programs with these flags cannot be run here; "" if they can."""
    if compiler() is None:
        return "there is no C compiler"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "empty"
        done = subprocess.run(
            [*(compiler() or ()), *flags, "-x", "c", "-", "-o", str(program)],
            input="int main(void) { return 0; }",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0 and subprocess.run([program], check=False).returncode == 0:
            return ""
    return f"the C compiler has not all that {' '.join(flags)} needs"


def compiled(
    name: str,
    folder: Path,
    *flags: str,
    headers: Path = HEADERS,
    optimize: str = "-O2",
    cc: str | None = None,
) -> Path:
    """Compile one of the programs into a folder; raises AssertionError with what the compiler says."""
    program = folder / name
    source = PROGRAMS / f"{name}.c"
    command = [
        *([cc] if cc else compiler() or ()),
        *WARNINGS,
        optimize,
        "-g",
        *flags,
        f"-I{headers}",
    ]
    done = subprocess.run(
        [*command, "-o", str(program), str(source), "-pthread"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return program


def with_mutant(name: str, folder: Path) -> Path:
    """A copy of the headers that has one of the mutants of tests/campaign/mutants/ring.toml."""
    (mutant,) = (each for each in load(name) if each.name == name)
    headers = folder / name
    shutil.copytree(HEADERS, headers)
    source = headers / Path(mutant.file).name
    source.write_text(mutant.apply(source.read_text()))
    return headers


def run(
    program: Path,
    *arguments: object,
    timeout: float = DEADLINE,
    emulator: str | None = None,
    **env: str,
) -> dict[str, Any]:
    """Run a program that prints a line of JSON; its exit code is in it, what it says on stderr too."""
    done = subprocess.run(
        [*([emulator] if emulator else []), str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=os.environ | env,
    )
    lines = done.stdout.splitlines()
    facts: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return facts | {"code": done.returncode, "stderr": done.stderr}
