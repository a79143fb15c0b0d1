"""A group's key: 32 bytes that its members have, and others do not (for TCP).

`orcalike run --tcp` draws one for the run, and passes it to the ranks and the witness on an
inherited descriptor: `ORCALIKE_KEY_FD=FD:PID` names it, and no text holds it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from orcalike.errors import InsecureConfig, OrcalikeError
from orcalike.transport.drivers.proof import KEY_SIZE

REMEDY = (
    "a TCP port is open to every user of this machine: give key=PATH of a file of mode 0600 with "
    f"{KEY_SIZE} random bytes (or the bytes), or use unix:PATH"
)


def read_key(key: bytes | str | os.PathLike[str]) -> bytes:
    """The key that `join(key=...)` means: itself, or what a file holds, raw or in hexadecimal.

    Raises InsecureConfig if others than this user can read the file, ValueError if it holds
    no key, OrcalikeError if it cannot be read.
    """
    if isinstance(key, bytes):
        return _checked(key, "key=")
    path = Path(key)
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
                raise InsecureConfig(f"the key {path} is not a file of yours")
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise InsecureConfig(f"the key {path} is open to others: chmod 600 it")
            data = file.read(4 * KEY_SIZE)
    except OSError as error:
        raise OrcalikeError(f"the key {path} cannot be read: {error.strerror}") from None
    return _checked(data, str(path))


def _checked(data: bytes, where: str) -> bytes:
    if len(data) != KEY_SIZE:
        try:
            data = bytes.fromhex(data.decode("ascii").strip())
        except ValueError:
            data = b""
    if len(data) != KEY_SIZE:
        raise ValueError(f"{where}: a key has {KEY_SIZE} bytes, raw or in hexadecimal")
    return data


def find_key(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """The key that the launcher has passed to this very process; None if it has not.

    Raises OrcalikeError if the descriptor holds no key.
    """
    first, _, second = environ.get("ORCALIKE_KEY_FD", "").partition(":")
    if not (first.isdigit() and second.isdigit()) or int(second) != os.getpid():
        return None
    try:
        return _checked(os.pread(int(first), 4 * KEY_SIZE, 0), "ORCALIKE_KEY_FD")
    except (OSError, ValueError) as error:
        raise OrcalikeError(f"the launcher's key cannot be read: {error}") from None
