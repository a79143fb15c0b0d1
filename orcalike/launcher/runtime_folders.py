"""Where a run has its sockets: a folder of its own, in one that is private to this user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from orcalike.launcher.errors import LaunchError

#: A Unix socket's path in bytes: the kernel's bound is 108 with the final zero.
SOCKET_PATH_MAX = 107
#: The longest path below the runtime directory of the user: an endpoint's datagram socket.
_LONGEST = "/orcalike/01234567.123/0123456789abcdef.12345~"


def make_run_folder(name: str) -> Path:
    """A new folder of that name, for this user alone.

    Raises LaunchError if none can be made.
    """
    directory = runtime_base() / name
    try:
        directory.mkdir(mode=0o700)
    except OSError as error:
        raise _no_folder(f"{directory}: {error.strerror}") from None
    return directory


def runtime_base() -> Path:
    """The directory, private to this user, that holds the jobs' directories.

    Raises LaunchError if neither `$XDG_RUNTIME_DIR` nor `/tmp` gives one.
    """
    problem = None
    for base in _runtime_bases():
        problem = _make_private(base)
        if problem is None:
            return base
    raise _no_folder(problem)


def _no_folder(problem: str | None) -> LaunchError:
    return LaunchError(
        f"no directory for the run's sockets: {problem}; "
        "set XDG_RUNTIME_DIR to a directory of yours with a short path"
    )


def job_directories() -> list[Path]:
    """The directories of this user's runs; of what has ended in no good way, too."""
    bases = [base for base in _runtime_bases() if _why_not_private(base) is None]
    return sorted(path for base in bases for path in base.iterdir() if path.is_dir())


def _runtime_bases() -> list[Path]:
    """Where `runtime_base` can be, the best first."""
    user_directory = os.environ.get("XDG_RUNTIME_DIR", "")
    fits = len(os.fsencode(user_directory + _LONGEST)) <= SOCKET_PATH_MAX
    bases = [Path("/tmp") / f"orcalike-{os.getuid()}"]
    if os.path.isabs(user_directory) and fits:
        bases.insert(0, Path(user_directory) / "orcalike")
    return bases


def _make_private(directory: Path) -> str | None:
    """Make the directory for this user alone; says what is wrong with one that is there."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return f"{directory}: {error.strerror}"
    problem = _why_not_private(directory)
    if problem is None and not os.access(directory, os.W_OK):
        return f"{directory}: Read-only file system"
    return problem


def _why_not_private(directory: Path) -> str | None:
    try:
        found = directory.lstat()
    except OSError as error:
        return f"{directory}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return f"{directory} is not a directory of yours; remove it"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"{directory} is open to others; chmod 700 it"
    return None
