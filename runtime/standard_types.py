"""Dates, decimal numbers, paths and UUIDs: how they are taken apart, and made again.

They are here, and not in `extension_types`, because their modules take long to import: a program
without such values does without them.
"""

from __future__ import annotations

import functools
import os
import zoneinfo
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from orcalike.runtime.errors import NotSerializable, Unreadable
from orcalike.runtime.extension_codes import Code, Form
from orcalike.transport.errors import ProtocolError


def _time_form(it: time) -> tuple[Any, ...]:
    return it.hour, it.minute, it.second, it.microsecond, it.fold, it.tzinfo


def _zone_form(zone: ZoneInfo) -> Form:
    if zone.key is None:
        raise NotSerializable("a ZoneInfo without a key cannot travel; make it with ZoneInfo(key)")
    if not _is_known(zone.key):
        raise NotSerializable(
            f"the zone {zone.key!r} was made from a file, and is in no database of zones: it "
            "cannot travel; pass the offset, as a timezone"
        )
    return Code.ZONE, (zone.key,)


_PATHS: dict[str, type[PurePosixPath | PureWindowsPath | Path]] = {
    "path": Path,
    "posix": PurePosixPath,
    "windows": PureWindowsPath,
}

TAKE_APART: dict[type[Any], Callable[[Any], Form]] = {
    Decimal: lambda it: (Code.DECIMAL, str(it).encode()),
    UUID: lambda it: (Code.UUID, it.bytes),
    date: lambda it: (Code.DATE, (it.year, it.month, it.day)),
    time: lambda it: (Code.TIME, _time_form(it)),
    datetime: lambda it: (
        Code.DATETIME,
        (it.year, it.month, it.day, *_time_form(it.timetz())),
    ),
    timedelta: lambda it: (Code.TIMEDELTA, (it.days, it.seconds, it.microseconds)),
    timezone: lambda it: (Code.TIMEZONE, it.__getinitargs__()),
    ZoneInfo: _zone_form,
    type(Path()): lambda it: (Code.PATH, ("path", str(it))),
    PurePosixPath: lambda it: (Code.PATH, ("posix", str(it))),
    PureWindowsPath: lambda it: (Code.PATH, ("windows", str(it))),
}


def _rebuild_time(elements: tuple[Any, ...]) -> time:
    hour, minute, second, microsecond, fold, zone = elements
    return time(hour, minute, second, microsecond, zone, fold=fold)


def _rebuild_date(elements: tuple[Any, ...]) -> date:
    year, month, day = elements
    return date(year, month, day)


def _rebuild_datetime(elements: tuple[Any, ...]) -> datetime:
    return datetime.combine(_rebuild_date(elements[:3]), _rebuild_time(elements[3:]))


def _rebuild_timedelta(elements: tuple[Any, ...]) -> timedelta:
    days, seconds, microseconds = elements
    return timedelta(days, seconds, microseconds)


def _rebuild_zone(elements: tuple[Any, ...]) -> ZoneInfo:
    (key,) = elements
    if not isinstance(key, str) or os.path.isabs(key) or ".." in key.split("/") or "\0" in key:
        raise ProtocolError(f"a zone {key!r} arrived")
    if not _is_known(key):
        raise Unreadable(
            f"it is in the time zone {key!r}, which is not known here: install the package tzdata "
            "for all processes"
        )
    return ZoneInfo(key)


@functools.lru_cache(maxsize=1024)
def _is_known(key: str) -> bool:
    """Whether the system knows the zone, or the package `tzdata`.

    ZoneInfo would import a package named by the key to find out; here it comes to that only for
    keys that stand in the list of `tzdata`.
    """
    return any(os.path.isfile(os.path.join(path, key)) for path in zoneinfo.TZPATH) or (
        key in _packaged_zones()
    )


@functools.cache
def _packaged_zones() -> frozenset[str]:
    import importlib.resources  # it takes longer to import than all of this module

    try:
        zones = importlib.resources.files("tzdata").joinpath("zones").read_text("utf-8")
    except (ImportError, OSError):
        return frozenset()
    return frozenset(zones.split())


def _rebuild_path(elements: tuple[Any, ...]) -> object:
    kind, text = elements
    return _PATHS[kind](text)


REVIVE: dict[int, Callable[[bytes], object]] = {
    Code.DECIMAL: lambda payload: Decimal(payload.decode("ascii")),
    Code.UUID: lambda payload: UUID(bytes=payload),
}

REBUILD: dict[int, Callable[[tuple[Any, ...]], object]] = {
    Code.DATE: _rebuild_date,
    Code.TIME: _rebuild_time,
    Code.DATETIME: _rebuild_datetime,
    Code.TIMEDELTA: _rebuild_timedelta,
    Code.TIMEZONE: lambda elements: timezone(*elements),
    Code.ZONE: _rebuild_zone,
    Code.PATH: _rebuild_path,
}
