"""Compiles the limit of a write that waits, `pingpong.c`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from orcalike.bench.harness import Lacking

FRAME = 73
"""Bytes of a frame that carries one small write."""


def compiled(folder: Path) -> Path:
    """The ping-pong; raises Lacking if there is no C compiler."""
    compiler = shlex.split(os.environ.get("CC", "cc"))  # as make takes it: "ccache gcc"
    if not compiler or shutil.which(compiler[0]) is None:
        raise Lacking("no C compiler: install one, or name it in CC")
    program = folder / "pingpong"
    subprocess.run(
        [*compiler, "-O2", "-o", program, Path(__file__).with_name("pingpong.c")], check=True
    )
    return program
