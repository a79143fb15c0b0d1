"""A rank of a run over TCP: where its key is seen, and whether a non-member without it gets in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from common import tell

import orcalike as orca
from orcalike.session.keys import find_keys

CHILD = """
import os, sys
from orcalike.session.keys import find_keys
fd = int(os.environ["ORCALIKE_KEY_FD"].partition(":")[0])
try:
    held = b"orcalike-key" in os.readlink(f"/proc/self/fd/{fd}").encode()
except OSError:
    held = False
print("a key" if held or find_keys() else "no key")
"""


def shown(key: bytes) -> list[str]:
    """The texts of this process, its parent and the witness that hold the key."""
    found = []
    for process in ("self", str(os.getppid())):
        for name in ("environ", "cmdline"):
            data = Path(f"/proc/{process}/{name}").read_bytes()
            if key in data or key.hex().encode() in data:
                found.append(f"{process} {name}")
    return found


def non_member(address: str) -> str:
    """What becomes of a connection that greets without the key."""
    import socket

    host, _, port = address.removeprefix("tcp:").rpartition(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.settimeout(20)
        sock.sendall(b"\x10\0\0\0\x4f\1\1\0" + bytes(12))
        try:
            while sock.recv(4096):
                pass
        except ConnectionError:
            pass
    return "closed"


with orca.join() as group:
    ring = find_keys()
    assert ring is not None
    key = ring.first().secret
    child = subprocess.run(
        [sys.executable, "-c", CHILD], check=True, capture_output=True, text=True, close_fds=False
    )
    tell(
        rank=group.rank,
        key=key.hex(),
        shown=shown(key),
        child=child.stdout.strip(),
        non_member=non_member(group.address or os.environ["ORCALIKE_ADDRESS"]),
    )
    group.barrier()
