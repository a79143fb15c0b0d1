"""Which fields a record of a history has, by its kind (docs/history.md): those that the checkers read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_HEX = re.compile(r"[0-9a-f]{1,16}").fullmatch


def _is_int(value: object) -> bool:
    return type(value) is int


def _is_int_or_null(value: object) -> bool:
    return value is None or type(value) is int


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_incarnation(value: object) -> bool:
    return isinstance(value, str) and _HEX(value) is not None


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_identity(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_int, value))


def _are_members(value: object) -> bool:
    return isinstance(value, list) and value != [] and all(map(_is_member, value))


def _is_member(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and _is_incarnation(value[0])
        and _is_int_or_null(value[1])
        and isinstance(value[2], bool)
    )


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_Field = Callable[[object], bool]

_FORMS: Mapping[str, Mapping[str, _Field]] = {
    "member": {"incarnation": _is_incarnation, "rank": _is_int_or_null},
    "view": {
        "identity": _is_identity,
        "members": _are_members,
        "primary": lambda value: isinstance(value, bool),
        "gseq": _is_int_or_null,
    },
    "deliver": {
        **dict.fromkeys(("lineage", "view", "gseq", "index", "ticket"), _is_int),
        **dict.fromkeys(("object", "operation", "args", "chain"), _is_text),
        "sender": _is_incarnation,
    },
    "apply": {
        "sender": _is_incarnation,
        "ticket": _is_int,
        "objects": _are_names,
        "operation": _is_text,
    },
    "invoke": {
        "ticket": _is_int,
        **dict.fromkeys(("object", "operation", "hash"), _is_text),
        "args": _is_list,
    },
    "ok": {"ticket": _is_int},
    "fail": {"ticket": _is_int},
    "info": {"ticket": _is_int},
    "read": {"object": _is_text, "operation": _is_text, "args": _is_list, "gseq": _is_int},
    "state": {"object": _is_text, "digest": _is_text},
    "exit": {"why": _is_text},
}


def has_form(record: object) -> bool:
    """Whether it is a record with the fields of its kind; one of a kind that no checker reads has none but that."""
    if not isinstance(record, dict) or not _is_text(record.get("kind")):
        return False
    form = _FORMS.get(record["kind"])
    if form is None:
        return True
    if not _is_int(record.get("t")) or not _has_outcome(record):
        return False
    missing = object()
    return all(is_right(record.get(name, missing)) for name, is_right in form.items())


def _has_outcome(record: dict[str, Any]) -> bool:
    return record["kind"] != "apply" or "error" in record or _is_text(record.get("result"))
