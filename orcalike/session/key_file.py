"""The file of a cluster's keys: made by `orcalike keygen`, read by each member (S3).

    # the first key seals, all open
    3f9c2a7718b0c4de 8b1f...64 digits...77 2026-11-23

One line for each key: its public id, the key in hexadecimal, and the day it was made. A file that holds 32
bytes, or 64 digits alone, is one key, too. The file must be its owner's alone.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from collections.abc import Sequence
from typing import NamedTuple

from orcalike.errors import InsecureConfig, OrcalikeError
from orcalike.transport.drivers.key_ring import KEY_SIZE, KEYS_MAX, Key, key_of

SIZE_MAX = 16_384
TRY_AGAIN = 1.0
"""Seconds after which a file that has changed, and could not be read, is tried again."""
_HEAD = "# the keys of an orcalike cluster: the first seals, all open; see orcalike keygen --help\n"

_log = logging.getLogger("orcalike")


class Entry(NamedTuple):
    """A line of the file."""

    key: Key
    made: str
    """The day, as `2026-11-23`; "" if the file does not say."""

    def __repr__(self) -> str:
        return f"Entry({self.key!r}, {self.made!r})"


def default_path() -> str | None:
    """Where `orcalike keygen` writes and a member looks; None for a user without a home."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.config")
    return os.path.join(base, "orcalike", "key") if os.path.isabs(base) else None


def parse(data: bytes, where: str) -> list[Entry]:
    """The keys in a file's bytes; raises ValueError, which names `where` and never a key."""
    if len(data) == KEY_SIZE:
        return [Entry(key_of(data), "")]
    entries = []
    for number, line in enumerate(data.decode("ascii", "replace").splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            entries.append(_entry(words, f"{where}, line {number}"))
    if not 1 <= len(entries) <= KEYS_MAX:
        raise ValueError(f"{where}: it has {len(entries)} keys; 1 to {KEYS_MAX} are allowed")
    return entries


def _entry(words: Sequence[str], where: str) -> Entry:
    secret = words[1] if len(words) > 1 else words[0]
    try:
        key = key_of(bytes.fromhex(secret))
    except ValueError:
        raise ValueError(f"{where}: a key has {KEY_SIZE} bytes, raw or in hexadecimal") from None
    if len(words) > 1 and words[0] != key.id.hex():
        raise ValueError(f"{where}: the key's id is not {words[0][:32]}: the line is damaged")
    return Entry(key, words[2] if len(words) > 2 else "")


def read(path: str | os.PathLike[str]) -> list[Entry]:
    """The keys in a file.

    Raises InsecureConfig if others than this user can read the file, but root and a group of this process's
    by root's will, ValueError if it holds no key, OrcalikeError if it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if why := _why_insecure(status):
                raise InsecureConfig(f"the key {path} {why}")
            data = file.read(SIZE_MAX + 1)
    except OSError as error:
        remedy = (
            f"; it is a file that `orcalike keygen {path}` makes"
            if error.errno == errno.ENOENT
            else ""
        )
        raise OrcalikeError(f"the key {path} cannot be read: {error.strerror}{remedy}") from None
    if len(data) > SIZE_MAX:
        raise ValueError(f"{path}: it has more than {SIZE_MAX} bytes")
    return parse(data, os.fspath(path))


def _why_insecure(status: os.stat_result) -> str:
    """Why a file of this status is no place for a key; "" if it is one.

    Root can read all files, so one of root's does as well as one's own (as with StrictModes of OpenSSH). A
    Secret of Kubernetes is such a file: a container that does not run as root reads it by its group.
    """
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    if status.st_uid not in (os.getuid(), 0):
        return "is a file of neither this user nor root"
    allowed = 0o640 if status.st_uid == 0 else 0o600
    if mode & 0o077 & ~allowed:
        return "is open to others: chmod 600 it"
    if mode & 0o040 and status.st_gid not in {os.getegid(), *os.getgroups()}:
        return "is open to others, a group of which this process is none: chmod 600 it"
    return ""


def write(path: str | os.PathLike[str], entries: Sequence[Entry]) -> None:
    """Put these keys into the file in one step, for its owner alone; raises OSError."""
    folder, name = os.path.split(path)
    os.makedirs(folder or ".", mode=0o700, exist_ok=True)
    lines = "".join(f"{key.id.hex()} {key.secret.hex()} {made}\n" for key, made in entries)
    beside = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(_HEAD + lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def draw() -> Entry:
    """A new key, made today."""
    return Entry(key_of(os.urandom(KEY_SIZE)), time.strftime("%Y-%m-%d"))


class Reread:
    """Gives the keys of a file each time that it has changed; a file that is spoiled changes nothing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._seen = self._failed = _stamp(path)
        self._next = 0.0

    def __call__(self) -> list[Key] | None:
        """The keys, or None if the file is as it was, or could not be read less than a second ago."""
        seen = _stamp(self._path)
        now = time.monotonic()
        if seen == self._seen or now < self._next:
            return None
        try:
            keys = [entry.key for entry in read(self._path)]
        except (OrcalikeError, ValueError) as error:
            self._next = now + TRY_AGAIN
            if seen != self._failed:
                _log.warning("the keys stay as they were: %s", error)
            self._failed = seen
            return None
        self._seen = seen
        return keys


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
