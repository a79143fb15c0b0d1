"""The folder in which the processes of a job on one host have their sockets.

Each process holds a lock on it, which ends with the process. The last one that ends removes the folder; if that is
killed, the next job of this user on the host does, as with all folders that are locked no more.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
from pathlib import Path

from orcalike.errors import OrcalikeError
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.runtime_folders import runtime_base
from orcalike.transport.wire.digest import blake2b

_NAME = re.compile("w[0-9a-f]{16}")
_held: dict[Path, int] = {}
"""The folders that this process holds, and by which descriptors."""


def hold(job: str) -> Path:
    """The folder of a job, made if it is not there; it stays while any process holds it.

    Raises OrcalikeError if this user can have none.
    """
    try:
        base = runtime_base()
    except LaunchError as error:
        raise OrcalikeError(str(error)) from None
    path = base / f"w{blake2b(job.encode(), digest_size=8).hexdigest()}"
    while path not in _held:
        path.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if _is_there(path, descriptor):
                _held[path] = descriptor
                atexit.register(_let_go, path, os.getpid())
            else:  # another process took it for an old one, and removed it
                os.close(descriptor)
    _remove_old(base)
    return path


def _let_go(path: Path, pid: int) -> None:
    """This process ends, and removes the folder if it is the last; a forked child has no say in it."""
    descriptor = _held.pop(path, None)
    if descriptor is None or os.getpid() != pid:
        return
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
    os.close(descriptor)


def _is_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_old(base: Path) -> None:
    """Remove the folders that no process holds."""
    for path in base.iterdir():
        if _NAME.fullmatch(path.name) and path not in _held:
            with contextlib.suppress(OSError):
                _remove_if_free(path)


def _remove_if_free(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
    finally:
        os.close(descriptor)
