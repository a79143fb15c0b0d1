"""The key of a run over hosts: a new one, or one that each host has from the file of the user's keys.

By ssh a new key travels to the agents. What `srun` and `mpiexec` forward is not encrypted: by these no key travels,
and the key of the run is drawn from the user's, which each host has in its file (`orcalike keygen`).
"""

from __future__ import annotations

from orcalike.errors import OrcalikeError
from orcalike.launcher.run_plan import draw_key
from orcalike.session.keys import find_keys
from orcalike.transport.drivers.key_ring import KEY_SIZE
from orcalike.transport.record import Record
from orcalike.transport.wire.digest import blake2b
from orcalike.transport.wording import listed

REMEDY = "make one with `orcalike keygen`, and copy ~/.config/orcalike/key to each host, for your user alone"


class RunKey(Record):
    """The key, and by which of the user's keys hosts can have it: "" if it is sent to them."""

    secret: bytes
    drawn_from: str = ""

    def __repr__(self) -> str:
        return f"RunKey({self.drawn_from!r})"  # and no key

    @property
    def to_send(self) -> bytes:
        """What agents are given of it."""
        return b"" if self.drawn_from else self.secret


def new_key() -> RunKey:
    """One that is sent."""
    return RunKey(draw_key())


def key_of_run(identity: str, wanted: str = "") -> RunKey:
    """The key of the run of that name, from this host's file: from the key with the id `wanted`, or the first.

    Raises ValueError if there is no such key, OrcalikeError if the file cannot be used.
    """
    ring = find_keys()
    if ring is None:
        raise ValueError(f"it has no key: {REMEDY}")
    found = ring.find(bytes.fromhex(wanted)) if wanted else ring.first()
    if found is None:
        ids = listed([key.id.hex() for key in ring.all()])
        raise ValueError(
            f"it has no key {wanted}, with which the launcher's host seals, but {ids}: one "
            "that was removed, or the file is another host's (orcalike keygen --list); copy the "
            "launcher's, ~/.config/orcalike/key or that of ORCALIKE_KEY_FILE"
        )
    secret = blake2b(f"run {identity}".encode(), key=found.secret, digest_size=KEY_SIZE).digest()
    return RunKey(secret, found.id.hex())


def own_key(key: bytes, identity: str, drawn_from: str) -> bytes:
    """What an agent takes for the run's key; raises ValueError, with the remedy."""
    if key:
        return key
    try:
        return key_of_run(identity, drawn_from).secret
    except OrcalikeError as error:
        raise ValueError(str(error)) from None
