"""Ports that all processes of a job know without a word: from the job's identity."""

from __future__ import annotations

from orcalike.transport.wire.digest import blake2b

COUNT = 8
"""Rank 0 listens at the first of so many that is free."""

FIRST, LAST = 10240, 32767
"""Below those that the kernel gives to outgoing connections."""


def ports_of(job: str) -> tuple[int, ...]:
    """The ports of a job, all different, in the order in which they are tried."""
    found: dict[int, None] = {}
    number = 0
    while len(found) < COUNT:
        digest = blake2b(f"{job} {number}".encode(), digest_size=8).digest()
        found[FIRST + int.from_bytes(digest, "big") % (LAST - FIRST + 1)] = None
        number += 1
    return tuple(found)
