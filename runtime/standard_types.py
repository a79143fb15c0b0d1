"""Values of the standard library's types, and members: how they are taken apart, and made again.

They are here, and not in `extension_types`, because their modules take long to import: a program
without such values does without them.
"""

from __future__ import annotations

import functools
import importlib.resources
import os
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import chain
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from orcalike.runtime.errors import NotSerializable, Unreadable
from orcalike.runtime.extension_codes import Code, Form
from orcalike.runtime.registered import registered_class, registered_name
from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import Member


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


_MAKERS: tuple[type[Any], ...] = (
    *(bool, bytearray, bytes, complex, dict, float, frozenset, int, list, set, str, tuple),
    *(Counter, OrderedDict, deque),
)
_FACTORIES = {maker.__name__: maker for maker in _MAKERS}
"""What a defaultdict may make its values with, beside classes that are registered."""


def _defaultdict_form(it: defaultdict[Any, Any]) -> Form:
    factory: Any = it.default_factory
    name = getattr(factory, "__name__", "")
    if factory is not None and _FACTORIES.get(name) is not factory:
        registered = registered_name(factory)
        if registered is None:
            raise NotSerializable(
                f"a defaultdict that makes its values with {factory!r} cannot travel; give it a "
                "builtin type, as in defaultdict(list), or a registered class"
            )
        name = registered
    return Code.DEFAULT_DICT, (name, dict(it))


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
    Member: lambda it: (Code.MEMBER, tuple(it.pack())),
    deque: lambda it: (Code.DEQUE, (it.maxlen, *it)),
    OrderedDict: lambda it: (Code.ORDERED_DICT, tuple(chain.from_iterable(it.items()))),
    Counter: lambda it: (Code.COUNTER, (dict(it),)),
    defaultdict: _defaultdict_form,
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
    try:
        zones = importlib.resources.files("tzdata").joinpath("zones").read_text("utf-8")
    except (ImportError, OSError):
        return frozenset()
    return frozenset(zones.split())


def _rebuild_deque(elements: tuple[Any, ...]) -> deque[Any]:
    maxlen, *items = elements
    if maxlen is not None and len(items) > maxlen:
        raise ProtocolError(f"a deque of {len(items)} items arrived, and at most {maxlen} fit")
    return deque(items, maxlen)


def _rebuild_ordered_dict(elements: tuple[Any, ...]) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(elements[::2], elements[1::2], strict=True))


def _rebuild_counter(elements: tuple[Any, ...]) -> Counter[Any]:
    (counts,) = elements
    made: Counter[Any] = Counter()
    dict.update(made, counts)  # as they are: no count is added to another
    return made


def _rebuild_defaultdict(elements: tuple[Any, ...]) -> defaultdict[Any, Any]:
    name, items = elements
    if not isinstance(name, str) or type(items) is not dict:
        raise ProtocolError(f"a defaultdict of {name!r} arrived")
    factory = None if name == "" else _FACTORIES.get(name) or registered_class(name)
    return defaultdict(factory, items)


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
    Code.MEMBER: lambda elements: Member.unpack(list(elements)),
    Code.DEQUE: _rebuild_deque,
    Code.ORDERED_DICT: _rebuild_ordered_dict,
    Code.COUNTER: _rebuild_counter,
    Code.DEFAULT_DICT: _rebuild_defaultdict,
    Code.PATH: _rebuild_path,
}
