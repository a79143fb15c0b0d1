"""What ranks leave behind: it becomes this process's, and is killed at the end of the run."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Collection
from pathlib import Path

from orcalike.launcher import bootstrap


def adopt_orphans() -> None:
    """Make what the ranks leave behind this process's children, so that it finds them."""
    bootstrap.prctl(bootstrap.SET_CHILD_SUBREAPER, 1)


def kill_orphans(spared: Collection[int]) -> None:
    """Kill and reap all children but the spared ones, and theirs, which come here then."""
    while orphans := _children() - set(spared):
        for pid in orphans:
            pidfd = os.pidfd_open(pid)
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            ended = select.poll()
            ended.register(pidfd, select.POLLIN)
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
