"""How a process that has spoken PMI-1 ends: it says so, or `mpiexec` takes its end for a crash, and kills all.

It cannot be said before: an MPI library that the program loads later could not begin any more. If one has begun, it
says it by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import re
import sys
from pathlib import Path

_LIBRARY = re.compile(r"/\S*/libmpi[\w.+-]*\.so[\d.]*$", re.MULTILINE)


def say_at_the_end(descriptor: int) -> None:
    """Have `mpiexec` know by this descriptor when this process ends, and whether an error has ended it."""
    atexit.register(_say, descriptor, os.getpid())


def _say(descriptor: int, pid: int) -> None:
    if os.getpid() != pid or _is_initialized():
        return
    with contextlib.suppress(OSError):
        if hasattr(sys, "last_value"):  # an exception that no handler took, and that was shown
            os.write(descriptor, b"cmd=abort exitcode=1\n")
        else:
            os.write(descriptor, b"cmd=finalize\n")
            os.read(descriptor, 4096)  # until it is known there


def _is_initialized() -> bool:
    """Whether an MPI library has been loaded and initialised, by whatever module."""
    for path in set(_LIBRARY.findall(Path("/proc/self/maps").read_text())):
        flag = ctypes.c_int()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(path, mode=os.RTLD_NOLOAD).MPI_Initialized(ctypes.byref(flag))
        if flag.value:
            return True
    return False
