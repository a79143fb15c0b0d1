"""Compiles the limit of a write that waits, `pingpong.c`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from orcalike.bench.harness import BenchError, Lacking

FRAME = 73
"""Bytes of a frame that carries one small write."""


def compiled(folder: Path) -> Path:
    """The ping-pong; raises Lacking if there is no C compiler, and BenchError if it does not compile."""
    compiler = shlex.split(os.environ.get("CC", "cc"))  # as make takes it: "ccache gcc"
    if not compiler or shutil.which(compiler[0]) is None:
        raise Lacking("no C compiler: install one, or name it in CC")
    program = folder / "pingpong"
    source = Path(__file__).with_name("pingpong.c")
    # What a compiler says that is killed, as the time is over, would come after the line that says so.
    ended = subprocess.run(
        [*compiler, "-O2", "-o", program, source], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise BenchError(f"{source.name} does not compile: {ended.stderr.strip()}")
    return program
