"""Orders in shared memory of running programs, read in that memory: `orcalike status --ring`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from orcalike.cli.common import echo_table
from orcalike.cli.run_tables import NOT_KNOWN
from orcalike.transport.drivers.ring_segment import PREFIX
from orcalike.transport.drivers.ring_view import OrderView, look
from orcalike.transport.errors import ProtocolError
from orcalike.transport.wording import visible

_LINK = f"/memfd:{PREFIX}"
_HEAD = ("RANK", "PID", "STATE", "APPLIED", "LAG", "ASLEEP", "NEEDS ROOM")


def rings_of(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The orders that processes of a run on this host have mapped, each once, with the ranks of their members."""
    roles = {each["pid"]: each["role"] for each in run["processes"] if each["state"] == "running"}
    return [
        _described(group, view, roles)
        for group, view in sorted(_orders(roles), key=lambda found: found[0])
    ]


def show_rings(rings: Iterable[dict[str, Any]]) -> None:
    """A table for each order."""
    for ring in rings:
        click.echo(
            f"order of group {visible(ring['group'])} in shared memory · {ring['slots']:,} slots · "
            f"lap {ring['lap']} · next slot {ring['next']} · all have applied {ring['least']}"
        )
        echo_table(_HEAD, map(_row, ring["members"]))


def _orders(pids: Iterable[int]) -> Iterator[tuple[str, OrderView]]:
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        for path in _descriptors(pid):
            try:
                link = os.readlink(path)
                if not link.startswith(_LINK):
                    continue
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError:
                continue  # the process has ended, or closed it
            try:
                about = os.fstat(fd)
                if (about.st_dev, about.st_ino) not in seen:
                    seen.add((about.st_dev, about.st_ino))
                    yield link.removeprefix(_LINK).removesuffix(" (deleted)"), look(fd)
            except (OSError, ProtocolError) as error:
                click.echo(f"orcalike: process {pid}: {error}", err=True)
            finally:
                os.close(fd)


def _descriptors(pid: int) -> list[Path]:
    try:
        return sorted(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []


def _described(group: str, view: OrderView, roles: dict[int, Any]) -> dict[str, Any]:
    members = [
        {
            "role": roles.get(row.process),
            "pid": row.process,
            "row": row.row,
            "state": row.state,
            "applied": row.applied,
            "lag": row.lag,
            "asleep": row.sleeps,
            "needs_room": row.waits_for_room,
        }
        for row in view.rows
    ]
    members.sort(key=_place)
    return {
        "group": group,
        "slots": view.slots,
        "lane_bytes": view.lane_bytes,
        "next": view.next,
        "least": view.least,
        "lap": view.lap,
        "members": members,
    }


def _place(member: dict[str, Any]) -> tuple[bool, bool, Any]:
    """Ranks first, then the witness, then processes of no known role."""
    role = member["role"]
    return role is None, isinstance(role, str), role


def _row(member: dict[str, Any]) -> tuple[str, ...]:
    rank = NOT_KNOWN if member["role"] is None else str(member["role"])
    figures = (str(member[name]) for name in ("pid", "state", "applied", "lag"))
    return (rank, *figures, *("yes" if member[name] else "" for name in ("asleep", "needs_room")))
