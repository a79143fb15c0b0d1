"""How launcher and agent greet each other: what the launcher asks of a host, and what the host reports of itself.

The launcher writes `MAGIC`, a nonce, a length and JSON, an `Assignment`, to the agent's standard input. The agent answers
with a line that has the nonce, and a frame `HELLO`, a `HostReport`. What a remote shell has printed before that line is
skipped, up to `NOISE_MAX` bytes. The key of the run is in the `Assignment`, and nowhere else.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orcalike.launcher.errors import LaunchError
from orcalike.launcher.run_plan import RunPlan
from orcalike.transport.record import Record

MAGIC = b"orcalike launch 1\n"
NONCE_SIZE = 16
_LENGTH = struct.Struct("!I")
#: The longest assignment.
ASSIGNMENT_MAX = 1 << 20
#: What may come before the agent's answer, of banners and the like.
NOISE_MAX = 1 << 16


class GreetingError(Exception):
    """What has come is no greeting."""


class Assignment(Record, kw_only=True):
    """What a host gets to know of a run."""

    version: str
    """Of the launcher's orcalike."""
    plan: RunPlan
    name: str
    """What the user calls the host."""
    node: int
    """Its number."""
    slots: int
    """How many addresses it keeps for ranks; it keeps one more for a witness."""
    key: bytes
    """Of the run's connections; empty if the host has it from its own file."""
    drawn_from: str
    """The id of the key in that file from which it is drawn then."""
    lease: float
    """Seconds without a word of the launcher after which all ends."""
    advertise: str = ""
    """At which address others reach this host; "" to find it out."""
    interface: str = ""
    """Whose address that is."""
    towards: tuple[str, ...] = ()
    """Hosts, as numbers, towards which the kernel picks it otherwise, when the connection does not say."""

    def __repr__(self) -> str:
        return f"Assignment({self.name!r}, node={self.node})"  # and no key

    def encode(self, nonce: bytes) -> bytes:
        """What the launcher writes first."""
        plan = self.plan.named() | {"directory": self.plan.directory and str(self.plan.directory)}
        values = self.named() | {"key": self.key.hex(), "plan": plan}
        data = json.dumps(values, default=dict).encode()
        greeting = MAGIC + nonce + _LENGTH.pack(len(data)) + data
        if len(greeting) > ASSIGNMENT_MAX:
            raise LaunchError(
                "the program's arguments and variables are too long for other hosts", 2
            )
        return greeting

    @classmethod
    def read(cls, read: Callable[[int], bytes]) -> tuple[bytes, Assignment]:
        """(the nonce, the assignment) of a launcher; `read` gives so many bytes. Raises GreetingError."""
        head = read(len(MAGIC) + NONCE_SIZE + _LENGTH.size)
        nonce = head[len(MAGIC) : len(MAGIC) + NONCE_SIZE]
        if not head.startswith(MAGIC) or len(head) < len(MAGIC) + NONCE_SIZE + _LENGTH.size:
            raise GreetingError("no launcher of this version of orcalike speaks there")
        (length,) = _LENGTH.unpack(head[-_LENGTH.size :])
        if length > ASSIGNMENT_MAX:
            raise GreetingError(f"an assignment of {length} bytes")
        data = read(length)
        try:
            values = json.loads(data)
            plan = values.pop("plan")
            values["key"] = bytes.fromhex(values["key"])
            return nonce, cls(**_tuples(values), plan=_plan(plan))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise GreetingError("an assignment that cannot be understood") from None


def _plan(values: dict[str, Any]) -> RunPlan:
    directory = values.pop("directory")
    return RunPlan(**_tuples(values), directory=Path(directory) if directory else None)


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """The values with tuples for the lists that JSON makes of them."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


class HostReport(Record, kw_only=True):
    """What a host reports of itself."""

    version: str
    python: str
    """As `3.11`."""
    pid: int
    """Of the agent."""
    cores: int
    program: str | None
    """The digest of the program's file; None if there is none."""
    directory: bool
    """Whether there is the directory in which the ranks shall run."""
    host: str = ""
    """The number at which other hosts reach it."""
    door: str = ""
    """Where it listens, so that others can try whether they reach it."""
    addresses: tuple[str, ...] = ()
    """Those that it keeps: of the ranks by their slots, and last one of a witness."""
    trouble: str = ""
    """Why it cannot take part."""

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps(self.named()).encode()

    @classmethod
    def decode(cls, data: bytes) -> HostReport:
        """What `encode` has made; raises GreetingError for what is none."""
        try:
            values = json.loads(data)
            known = values.keys() & set(cls.names())
            return cls(**_tuples({name: values[name] for name in known}))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise GreetingError(
                "a report of a host that cannot be understood: install the same version of "
                "orcalike on all hosts"
            ) from None


def draw_nonce() -> bytes:
    """A new one, for one connection."""
    return os.urandom(NONCE_SIZE)


def answer(nonce: bytes) -> bytes:
    """The line by which the agent is known."""
    return b"\norcalike agent " + nonce.hex().encode() + b"\n"
