"""A wall clock that is off, for the processes of one host: a library in front of the system's own (LD_PRELOAD).

The kernel's time namespaces have no wall clock of their own.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long off;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("WALL_CLOCK_OFF");
    off = text ? atol(text) : 0;
}

int clock_gettime(clockid_t id, struct timespec *out) {
    int failed = syscall(SYS_clock_gettime, id, out);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        out->tv_sec += off;
    return failed;
}

int gettimeofday(struct timeval *out, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
"""


def wall_clock(directory: Path) -> Path:
    """The library, built in this directory; skips the test where there is no C compiler."""
    if shutil.which("cc") is None:
        pytest.skip("a wall clock that is off needs a C compiler, cc")
    source, library = directory / "wall_clock.c", directory / "wall_clock.so"
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def variables(library: Path, hours: int) -> dict[str, str]:
    """Those of a process whose wall clock is off by so many hours."""
    return {"LD_PRELOAD": str(library), "WALL_CLOCK_OFF": str(3600 * hours)}
