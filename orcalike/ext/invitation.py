"""How a process of another engine becomes a member: what the engine's own channel brings to it.

The first process makes the group, the others join it through any member. On one host the members meet
at Unix sockets in a folder of the user's own; over hosts by TCP, under a key that is drawn for this group.
"""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field

import orcalike
from orcalike.group import Group
from orcalike.transport.degree import Resilience
from orcalike.transport.drivers.key_ring import KEY_SIZE


@dataclass(frozen=True)
class Terms:
    """What all members of one group have in common. `key` is in no repr."""

    name: str
    resilience: Resilience = 0
    folder: str = ""
    """Where the Unix sockets are; "" if the members communicate by TCP."""
    key: bytes | None = field(default=None, repr=False)


def drawn_key() -> bytes:
    """A new one."""
    return secrets.token_bytes(KEY_SIZE)


def is_loopback(host: str) -> bool:
    """Whether only processes of this host reach that one: a number, or a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def accept(terms: Terms, seeds: list[str], host: str, timeout: float) -> Group:
    """Join through one of `seeds`, or make the group if there are none; `host` is this one's address.

    The group is left when the interpreter ends, at the latest. `timeout` is in seconds. Raises what
    `orcalike.join` raises.
    """
    if seeds:
        return orcalike.connect(
            terms.name, seeds=seeds, resilience=terms.resilience, key=terms.key, timeout=timeout
        )
    if terms.folder:
        listen = f"unix:{terms.folder}/{secrets.token_hex(8)}"
    else:
        listen = f"tcp:[{host}]:0" if ":" in host else f"tcp:{host}:0"
    return orcalike.connect(
        terms.name, listen=listen, resilience=terms.resilience, key=terms.key, timeout=timeout
    )
