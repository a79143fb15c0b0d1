"""The keys of a group: what its members have, and others do not (for TCP).

`orcalike run --tcp` draws one for the run, and passes it to the ranks and the witness on an
inherited descriptor: `ORCALIKE_KEY_FD` names it, and no text holds it. Elsewhere they are in a
file (`key_file.py`): the one that `join(key=...)` or `ORCALIKE_KEY_FILE` names, or the user's own.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import logging
import os
from collections.abc import Mapping

from orcalike.errors import InsecureConfig, OrcalikeError
from orcalike.launch_protocol.own_descriptor import own_descriptor
from orcalike.session import key_file
from orcalike.transport.drivers.key_ring import KEY_SIZE, KeyRing, key_of
from orcalike.transport.drivers.record_cipher import why_not_quick

_log = logging.getLogger("orcalike")

REMEDY = (
    "a TCP port is open to every user of this machine, and of others: make a key with "
    "`orcalike keygen`, or give key=PATH, or use unix:PATH"
)

OVER_HOSTS = (
    "the processes of this job may be on several hosts, and communicate under a key: make one with "
    "`orcalike keygen`, and have the file on each host, with mode 0600, at ~/.config/orcalike/key or at "
    "the path in ORCALIKE_KEY_FILE"
)


def read_keys(key: bytes | str | os.PathLike[str]) -> KeyRing:
    """The keys that `join(key=...)` means: one itself, or what a file holds.

    Raises TypeError for neither of them, InsecureConfig if others than this user can read the file, ValueError if it holds
    no key, OrcalikeError if it cannot be read.
    """
    if not isinstance(
        key, bytes | str | os.PathLike
    ):  # a number would be taken for an open file, and closed
        raise TypeError(f"key={key!r}: {KEY_SIZE} bytes, or the path of a file that holds them")
    if isinstance(key, bytes):
        try:
            return KeyRing([key_of(key)])
        except ValueError as error:
            raise ValueError(f"key=: {error}") from None
    reread = key_file.Reread(key)
    return KeyRing([entry.key for entry in key_file.read(key)], reread)


def find_keys(environ: Mapping[str, str] = os.environ) -> KeyRing | None:
    """The launcher's key for this very process, or those of the user's file; None if there are none.

    Raises as `read_keys` does; OrcalikeError if the launcher's descriptor holds no key.
    """
    try:
        memory = own_descriptor(environ.get("ORCALIKE_KEY_FD", ""))
        if memory is not None:
            return KeyRing([key_of(os.pread(memory, KEY_SIZE + 1, 0))])
    except (OSError, ValueError) as error:
        raise OrcalikeError(f"the launcher's key cannot be read: {error}") from None
    named = environ.get("ORCALIKE_KEY_FILE", "")
    if named:
        return read_keys(named)
    path = key_file.default_path()
    return read_keys(path) if path is not None and os.path.exists(path) else None


def passed_on(keys: KeyRing) -> int:
    """A descriptor of sealed memory that holds the key that seals now, for a process that is started."""
    memory = os.memfd_create("orcalike-key", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(memory, keys.first().secret)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    return memory


def require_keys(keys: KeyRing | None, remedy: str = REMEDY) -> None:
    """Raise InsecureConfig if there is no key for TCP, or no package that seals under one."""
    if keys is None:
        raise InsecureConfig(remedy)
    if importlib.util.find_spec("cryptography") is None:
        raise InsecureConfig(
            "TCP connections are encrypted with the package cryptography, which is not installed: "
            "pip install 'orcalike[net]', or use unix:PATH"
        )
    # Both take long: not between a connection and its handshake, which has 2 s.
    importlib.import_module("orcalike.transport.drivers.handshake")
    why_not_quick()


def is_insecure(
    name: str, asked: bool, keys: KeyRing | None, environ: Mapping[str, str] = os.environ
) -> bool:
    """Whether the group may use TCP without a key: the program and its environment both ask for it (S1).

    Then the log says so. If there is a key it is used. Raises InsecureConfig if the program alone asks.
    """
    if not asked or keys is not None:
        return False
    if environ.get("ORCALIKE_INSECURE") != "1":
        raise InsecureConfig(
            "insecure=True takes effect together with ORCALIKE_INSECURE=1 in the environment, for networks "
            f"that are protected otherwise; {REMEDY}"
        )
    _log.warning(
        "INSECURE: the TCP connections of the group %r are neither encrypted nor authenticated: each "
        "process that reaches a member can read and change all of it",
        name,
    )
    return True
