"""What a process of this host has used, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

from orcalike.launcher.child import Usage

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def usage_of(pid: int) -> Usage:
    """Of the process of that number; nothing is known of one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return Usage()
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    age = max(uptime - int(fields[19]) / _TICKS, 0.0)
    return Usage(cpu, int(fields[21]) * _PAGE, round(age, 2))
