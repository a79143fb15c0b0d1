"""Control messages: what is packed is what is read, and nothing else is."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from orcalike.transport.application_state import State
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.attribution import BELIEVED
from orcalike.transport.membership.messages import (
    KINDS,
    OPTION_MAX,
    OPTIONS_MAX,
    Accept,
    Alive,
    Behind,
    Blocked,
    Chosen,
    ControlMessage,
    Denied,
    Expelled,
    Flush,
    FlushOk,
    Gone,
    HeldUp,
    Here,
    Inside,
    Install,
    Join,
    Leave,
    Lost,
    Nowhere,
    Promised,
    Propose,
    Reset,
    ResetFailed,
    Ship,
    Slow,
    Taken,
    Value,
    Waits,
    kind_of,
    unpack,
)
from orcalike.transport.view import Member, View
from orcalike.transport.wire.control import unpack as unpack_fields

A, B = Member("sim:a", 1, 0), Member("sim:b", 2)
VIEW = View(1, 2, 1024, (A, B), follows=(1, 1, 0))
PACKED = [1, 2, 1024, [["sim:a", 1, 0, False], ["sim:b", 2, None, False]], True, [1, 1, 0]]
VALUE = Value(VIEW, b"cut")

ON_THE_WIRE: list[tuple[ControlMessage, list[Any]]] = [
    (Join(B, {"size": 3}), ["JOIN", ["sim:b", 2, None, False], {"size": 3}]),
    (Join(B, {}, 3), ["JOIN", ["sim:b", 2, None, False], {}, 3]),
    (Nowhere(3, 4, A, {"size": 3}), ["NOWHERE", 3, 4, ["sim:a", 1, 0, False], {"size": 3}]),
    (Taken(3, A), ["TAKEN", 3, ["sim:a", 1, 0, False]]),
    (Inside(3), ["INSIDE", 3]),
    (Denied("full"), ["DENIED", "full"]),
    (Denied("full", B), ["DENIED", "full", ["sim:b", 2, None, False]]),
    (Leave(), ["LEAVE"]),
    (Flush(1024, b"mark", (7, 8)), ["FLUSH", 1024, b"mark", [7, 8]]),
    (Ship(b"piece"), ["SHIP", b"piece"]),
    (Ship(b"piece", (1, 2, 3)), ["SHIP", [1, 2, 3], b"piece"]),
    (
        FlushOk(1024, b"held", (1024, VALUE), (7,), State.EMPTY, (7,), 1, True),
        ["FLUSH_OK", 1024, b"held", [1024, PACKED, b"cut"], [7], 1, [7], 1, True],
    ),
    (
        FlushOk(1024, b"held", None, (), State.WHOLE, (), 0),
        ["FLUSH_OK", 1024, b"held", None, [], 3, [], 0, False],
    ),
    (Promised(2048), ["PROMISED", 2048]),
    (Propose(1024, VALUE), ["PROPOSE", 1024, PACKED, b"cut"]),
    (Accept(1024), ["ACCEPT", 1024]),
    (Chosen(1024), ["CHOSEN", 1024]),
    (Install(VIEW, b"cut"), ["INSTALL", PACKED, b"cut"]),
    (Blocked((7, 8), "too few"), ["BLOCKED", [7, 8], "too few"]),
    (Lost(7), ["LOST", 7]),
    (Reset(1), ["RESET", 1]),
    (ResetFailed("not blocked"), ["RESET_FAILED", "not blocked"]),
    (Waits(), ["WAITS"]),
    (HeldUp(), ["HELD_UP"]),
    (Alive(), ["ALIVE"]),
    (Slow(7), ["SLOW", 7]),
    (Here(), ["HERE"]),
    (Behind((1, 2, 3), b"held"), ["BEHIND", [1, 2, 3], b"held"]),
    (Expelled(VIEW, 7, "why"), ["EXPELLED", PACKED, 7, "why"]),
    (Gone(), ["GONE"]),
]


@pytest.mark.parametrize(("message", "packed"), ON_THE_WIRE, ids=repr)
def test_a_message_is_read_as_it_was_packed(message: ControlMessage, packed: list[Any]) -> None:
    assert message.pack() == packed
    arrived = unpack_fields(msgpack.packb(message.pack()), "a control message")
    assert unpack(arrived) == message
    assert kind_of(arrived) == message.kind


def test_each_kind_is_there_and_attributed() -> None:
    assert {message.kind for message, _ in ON_THE_WIRE} == set(KINDS) == set(BELIEVED)


@pytest.mark.parametrize(("message", "packed"), ON_THE_WIRE, ids=repr)
def test_fields_of_other_numbers_or_types_are_refused(
    message: ControlMessage, packed: list[Any]
) -> None:
    for wrong in ([*packed, 1, 2], *([*packed[:i], 1.5, *packed[i + 1 :]] for i in (1, 2, -1))):
        if wrong != packed and wrong[0] == packed[0]:
            with pytest.raises(ProtocolError):
                unpack(wrong)
    assert not {"kind", "types"} & set(message.names())


@pytest.mark.parametrize(
    "options",
    [
        {str(i): i for i in range(OPTIONS_MAX + 1)},
        {"size": [3]},
        {"size": "x" * (OPTION_MAX + 1)},
        {"\n": 1},
        {1: 1},
    ],
    ids=lambda options: repr(options)[:30],
)
def test_options_past_the_bounds_are_refused(options: dict[Any, Any]) -> None:
    with pytest.raises(ProtocolError, match="a JOIN with options"):
        unpack(["JOIN", A.pack(), options])


def test_what_no_member_lists_as_dead_is_left_out() -> None:
    assert unpack(["FLUSH", 1024, b"", [7, "x", None]]) == Flush(1024, b"", (7,))


@pytest.mark.parametrize("degree", [-1, 512, 2**40])
def test_a_degree_that_none_can_be_is_refused(degree: int) -> None:
    with pytest.raises(ProtocolError):
        unpack(["FLUSH_OK", 1024, b"held", None, [], 3, [], degree, False])
