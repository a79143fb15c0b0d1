"""What ranks leave behind: it becomes this process's, which reaps it, and kills it at the end of the run."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from orcalike.launcher import bootstrap
from orcalike.launcher.reaper import NAME

#: How long the reaper of a run that was killed may take to clean up.
REAP_SECONDS = 5


def adopt_orphans() -> None:
    """Make what the ranks leave behind this process's children, so that it finds them."""
    bootstrap.prctl(bootstrap.SET_CHILD_SUBREAPER, 1)


def reap_orphans(spared: Collection[int]) -> None:
    """Reap the children that have ended, but for the spared ones: no other process waits for what was adopted.

    To be called when each child that is not an orphan is among the spared ones: one of those is reaped by what
    has started it.
    """
    for pid in _children() - set(spared):
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def kill_orphans(spared: Collection[int]) -> set[int]:
    """Kill and reap all children but the spared ones, and theirs, which come here then.

    The reaper of a run that was inside of this one ends by itself, when it has cleaned up. Returns those that
    go on: they have become another user's, as by `sudo`, and this one may not kill them.
    """
    left, stuck = set[int](), set[int]()
    while orphans := _children() - set(spared) - left - stuck:
        for pid in orphans:
            pidfd = os.pidfd_open(pid)
            try:
                has_ended = _kill(pid, pidfd)
            except PermissionError:
                left.add(pid)
                continue
            finally:
                os.close(pidfd)
            if has_ended:
                os.waitpid(pid, 0)
            else:  # in the kernel: its end cannot be waited for
                stuck.add(pid)
    return left


def describe_left(pid: int) -> str:
    """What is said of one that goes on."""
    return (
        f"process {pid} ({_name_of(pid)}), which a rank has left behind, "
        "belongs to another user and goes on"
    )


def _kill(pid: int, pidfd: int) -> bool:
    """Kill a child, and wait for its end; whether that has come.

    Raises PermissionError if it is another user's.
    """
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    if not (_is_reaper(pid) and ended.poll(1000 * REAP_SECONDS)):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    return bool(ended.poll(1000))


def _children() -> set[int]:
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
    except OSError:  # a kernel without the list: the reaper kills the ranks' groups
        return set()
    return {int(pid) for pid in text.split()}


def _is_reaper(pid: int) -> bool:
    """Whether it cleans up after a launcher, or an agent."""
    return _name_of(pid) == NAME


def _name_of(pid: int) -> str:
    """How the process is called; "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
