"""Dates and times, decimal numbers, UUIDs and members: how they are taken apart, and made again.

They are here, and not in `extension_types`, because their modules take long to import: a program
without such values does without them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from orcalike.runtime.errors import NotSerializable
from orcalike.runtime.extension_types import Code, Form
from orcalike.transport.view import Member


def _time_form(it: time) -> tuple[Any, ...]:
    return it.hour, it.minute, it.second, it.microsecond, it.fold, it.tzinfo


def _zone_form(zone: ZoneInfo) -> Form:
    if zone.key is None:
        raise NotSerializable("a ZoneInfo without a key cannot travel; make it with ZoneInfo(key)")
    return Code.ZONE, (zone.key,)


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
    Member: lambda it: (Code.MEMBER, tuple(it.pack())),
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
    return ZoneInfo(key)


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
    Code.MEMBER: lambda elements: Member.unpack(list(elements)),
}
