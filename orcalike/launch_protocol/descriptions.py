"""How a group stands at one process, as the process answers its launcher: JSON, in one line.

The launcher believes nothing of it: what is not of the kind that its field has is no description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orcalike.transport.record import Record

WAITS_MAX = 8
"""Calls of one process that are named, the oldest first."""
OBJECTS_MAX = 200
"""Objects of one group that are named."""
FORKED_MAX = 128
"""Processes of one member that are named."""
TEXT_MAX = 80
"""Characters of a name."""
SIZE_MAX = 30_000
"""Characters of all names together: a line on the way to the launcher is no longer than that."""


class Wait(Record):
    """A call that waits."""

    kind: str
    """"guard", "reply", "view", "room", "message", "end" or "call"."""
    operation: str
    """`JobQueue.get`, or what the group does (`barrier`), or ""."""
    object: str
    """The shared object's name, or "" if no object is concerned."""
    seconds: float | None
    """How long it has lasted; None if that is not known."""


class SharedObject(Record):
    """An object with a name."""

    name: str
    cls: str
    resilience: int | str
    """The degree of its class, or the group's if the class has none of its own."""
    blocked: int
    """Writes of all members that wait for its guards."""
    reads: int
    """Reads of this process that wait for its guards."""
    queued: int
    """Calls that wait for its mutex."""


class Forked(Record):
    """A process that this one hosts, by `group.fork`."""

    rank: int | None
    """None until it has joined."""
    pid: int
    function: str


class Description(Record):
    """How a group stands at a process."""

    view: int
    """The number of the view that is installed; 0 for none."""
    size: int
    """Members with replicas in it."""
    primary: bool
    """Whether this member may write in it."""
    syncing: bool
    """Whether it still waits for the state of the group."""
    next: int
    """The place in the order of the packet that is delivered here next."""
    resilience: int | str | None
    """Of what has no degree of its own; None at a witness."""
    objects: int
    """Objects with a name."""
    sent: int
    """Messages that this member has sent: its writes, and what the group itself does."""
    guarded: int
    """Calls that wait here for their guards, of all members."""
    waits: tuple[Wait, ...] = ()
    """Calls of this process that wait, in any group; the oldest first."""
    shared: tuple[SharedObject, ...] = ()
    """The objects, if they were asked for."""
    forked: tuple[Forked, ...] = ()


_LISTS: Mapping[str, tuple[type[Record], int]] = {
    "waits": (Wait, WAITS_MAX),
    "shared": (SharedObject, OBJECTS_MAX),
    "forked": (Forked, FORKED_MAX),
}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "primary": (bool,),
    "syncing": (bool,),
    "resilience": (int, str, type(None)),
    "kind": (str,),
    "operation": (str,),
    "object": (str,),
    "seconds": (int, float, type(None)),
    "name": (str,),
    "cls": (str,),
    "function": (str,),
    "rank": (int, type(None)),
}
"""By the name of a field; a number that counts has none here."""


def plain(record: Record) -> dict[str, Any]:
    """A record as JSON has it."""
    return {
        name: [plain(each) for each in value] if isinstance(value, tuple) else value
        for name, value in zip(record.names(), record.values(), strict=True)
    }


def encode(description: Description) -> str:
    """The description in one line of ASCII, not longer than a line may be: names are left out."""
    import json  # not at the top: few members are asked for it

    fields = plain(description)
    room = SIZE_MAX
    for key, (_, most) in _LISTS.items():
        kept: list[dict[str, Any]] = []
        for each in fields[key][:most]:
            short = {k: v[:TEXT_MAX] if isinstance(v, str) else v for k, v in each.items()}
            room -= len(json.dumps(short)) + 1
            if room < 0:
                break
            kept.append(short)
        fields[key] = kept
    return json.dumps(fields, separators=(",", ":"))


def parse(text: str) -> Description | None:
    """What `encode` has made; None for anything else."""
    import json

    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = _record(Description, fields)
    return found if isinstance(found, Description) else None


def _record(kind: type[Record], fields: object) -> Record | None:
    if not isinstance(fields, dict) or fields.keys() != set(kind.names()):
        return None
    values: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _LISTS:
            values[name] = _records(*_LISTS[name], value)
            if values[name] is None:
                return None
        elif not _fits(name, value):
            return None
        else:
            values[name] = value
    return kind(**values)


def _records(kind: type[Record], most: int, entries: object) -> tuple[Record, ...] | None:
    if not isinstance(entries, list) or len(entries) > most:
        return None
    found = [_record(kind, entry) for entry in entries]
    return None if None in found else tuple(each for each in found if each is not None)


def _fits(name: str, value: object) -> bool:
    kinds = _KINDS.get(name, (int,))
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) and not (isinstance(value, int | float) and value < 0)
