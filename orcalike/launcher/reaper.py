"""A small process that outlives the launcher by a moment and cleans up after it.

The kernel kills the ranks when the launcher is killed with -9, but not what the ranks have
started, and it leaves the runtime directory behind. The reaper is forked from the launcher
before anything else, reads a pipe whose other end the launcher holds, and acts when that end
closes, however the launcher came to its end. A rank has that end, too, until it has named its group there
(`bootstrap`): a launcher that is killed just then has named the others only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from pathlib import Path
from typing import NoReturn

from orcalike.launcher.errors import LaunchError
from orcalike.launcher.runtime_folders import make_run_folder
from orcalike.launcher.signals import none_ends

#: How the process is called, so that a launcher around this one lets it do its work (`orphans`).
NAME = "orcalike-reaper"

#: What a person or a terminal may send to all that looks like the launcher.
IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Reaper:
    """The launcher's side: it reports which process groups there are."""

    def __init__(self, directory: Path) -> None:
        """Fork the reaper, and wait until it is one; at the end it removes `directory`.

        It must be called before threads, sockets and ranks exist, for the reaper keeps none.
        Before it has its name and ignores signals, whatever ends the launcher might end it, too.
        Raises OSError if the system has no room for it.
        """
        with contextlib.ExitStack() as opened:
            reader, self._writer = os.pipe()
            opened.callback(_close_all, reader, self._writer)
            is_ready, becoming = os.pipe()
            opened.callback(_close_all, is_ready, becoming)
            #: The reaper's process, a child of this one.
            self.pid = os.fork()
            opened.pop_all()
        if self.pid == 0:
            _become_guard(reader, directory)
        os.close(reader)
        os.close(becoming)
        os.read(is_ready, 1)  # the end: the reaper has closed all that it does not need
        os.close(is_ready)

    def fileno(self) -> int:
        """The end of the pipe that says which groups there are."""
        return self._writer

    def watch(self, group: int) -> None:
        """Kill this process group at the end, if `forget` is not called before."""
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """The group's leader was reaped: its number may come to mean another group."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the reaper clean up, and wait until it has."""
        os.close(self._writer)
        os.waitpid(self.pid, 0)

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the reaper was killed
            os.write(self._writer, line.encode())


def guarded_run_folder(name: str) -> tuple[Path, Reaper]:
    """A new runtime folder, and the reaper that removes it, whatever ends this process. Raises LaunchError."""
    with none_ends():
        directory = make_run_folder(name)
        return directory, start_reaper(directory)


def start_reaper(directory: Path) -> Reaper:
    """A reaper that removes `directory` at the end; raises LaunchError, without the directory, if there is no room for one."""
    try:
        return Reaper(directory)
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise LaunchError(
            f"no process can be started: {error.strerror}; raise the limits (ulimit -n, ulimit -u)"
        ) from None


def _become_guard(reader: int, directory: Path) -> NoReturn:
    """Wait for the launcher's end, then kill and remove; never returns to the caller's code."""
    try:
        os.setsid()
        Path("/proc/self/comm").write_text(NAME)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.closerange(3, reader)
        os.closerange(reader + 1, os.sysconf("SC_OPEN_MAX"))
        for group in _read_groups(reader):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os._exit(0)


def _close_all(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _read_groups(reader: int) -> set[int]:
    """The groups that are left when the launcher's end of the pipe has closed."""
    groups: set[int] = set()
    with open(reader, encoding="ascii") as lines:
        for line in lines:
            if line.startswith("+"):
                groups.add(int(line[1:]))
            else:
                groups.discard(int(line[1:]))
    return groups
