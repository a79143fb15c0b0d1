"""How a process that has spoken PMI-1 ends: it says so, or `mpiexec` takes its end for a crash, and kills all.

It cannot be said before: an MPI library that the program loads later could not begin any more. If one has begun, it
says it by itself.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import fcntl
import os
import re
import stat
import sys
import termios
import time
from collections.abc import Collection
from pathlib import Path

OUTPUT = (1, 2)
"""The descriptors of what `mpiexec` shows."""
READ_WITHIN, LOOK_AGAIN = 1.0, 0.002
"""Seconds that are waited for `mpiexec` to read it, at the most, and between two looks."""

_LIBRARY = re.compile(r"/\S*/libmpi[\w.+-]*\.so[\d.]*$", re.MULTILINE)


def say_at_the_end(descriptor: int) -> None:
    """Have `mpiexec` know by this descriptor when this process ends, and whether an error has ended it."""
    atexit.register(_say, descriptor, os.getpid())


def _say(descriptor: int, pid: int) -> None:
    if os.getpid() != pid or _is_initialized():
        return
    with contextlib.suppress(OSError):
        if hasattr(sys, "last_value"):  # an exception that no handler took, and that was shown
            wait_until_read(OUTPUT, READ_WITHIN)
            os.write(descriptor, b"cmd=abort exitcode=1\n")
        else:
            os.write(descriptor, b"cmd=finalize\n")
            os.read(descriptor, 4096)  # until it is known there


def wait_until_read(pipes: Collection[int], within: float) -> None:
    """Wait until nothing is left in these pipes: MPICH's `mpiexec` shows nothing any more that it reads after an abort."""
    until = time.monotonic() + within
    while any(map(_unread, pipes)) and time.monotonic() < until:
        time.sleep(LOOK_AGAIN)


def _unread(pipe: int) -> int:
    """How many bytes are in a pipe; 0 for what is none."""
    count = array.array("i", [0])
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def _is_initialized() -> bool:
    """Whether an MPI library has been loaded and initialised, by whatever module."""
    for path in set(_LIBRARY.findall(Path("/proc/self/maps").read_text())):
        flag = ctypes.c_int()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(path, mode=os.RTLD_NOLOAD).MPI_Initialized(ctypes.byref(flag))
        if flag.value:
            return True
    return False
