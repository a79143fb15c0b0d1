"""What ranks leave behind: it becomes this process's, and is killed at the end of the run."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Collection
from pathlib import Path

from orcalike.launcher import bootstrap
from orcalike.launcher.reaper import NAME

#: How long the reaper of a run that was killed may take to clean up.
REAP_SECONDS = 5


def adopt_orphans() -> None:
    """Make what the ranks leave behind this process's children, so that it finds them."""
    bootstrap.prctl(bootstrap.SET_CHILD_SUBREAPER, 1)


def kill_orphans(spared: Collection[int]) -> None:
    """Kill and reap all children but the spared ones, and theirs, which come here then.

    The reaper of a run that was inside of this one ends by itself, when it has cleaned up.
    """
    while orphans := _children() - set(spared):
        for pid in orphans:
            pidfd = os.pidfd_open(pid)
            ended = select.poll()
            ended.register(pidfd, select.POLLIN)
            if not (_is_reaper(pid) and ended.poll(1000 * REAP_SECONDS)):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            has_ended = ended.poll(1000)
            os.close(pidfd)
            if not has_ended:  # stuck in the kernel: its end cannot be waited for
                return
            os.waitpid(pid, 0)


def _children() -> set[int]:
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
    except OSError:  # a kernel without the list: the reaper kills the ranks' groups
        return set()
    return {int(pid) for pid in text.split()}


def _is_reaper(pid: int) -> bool:
    """Whether it cleans up after a launcher, or an agent."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == NAME
    except OSError:  # it has ended
        return False
