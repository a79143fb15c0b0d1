"""Every layer passes through what it does not change (H16; Horus, section 3)."""

from __future__ import annotations

import inspect

import pytest

from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.layers.drop import Drop
from orcalike.transport.layers.mbrship import Mbrship
from orcalike.transport.layers.order import EitherOrder
from orcalike.transport.layers.pack import Pack
from orcalike.transport.layers.stable import Stable
from orcalike.transport.layers.total import Total
from orcalike.transport.layers.xfer import Xfer
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message
from tests.protocol.conformance import DOWNCALLS, UPCALLS, check_headers, check_layer

TRAFFIC = {"cast", "send", "up_cast", "up_send"}
FLUSH = {
    *("flush_ok", "holds", "up_flush", "up_flush_ok", "up_cut", "up_view"),
    *("up_held", "up_missing", "up_check", "up_supply"),
}

CHANGES: dict[type[Layer], set[str]] = {
    Pack: {"cast", "cast_packets", "up_cast", "up_view", "up_give_state", "up_take_state"},
    Stable: {*TRAFFIC, "unsent", "ack", "up_view", "up_give_state", "up_take_state", "view"}
    | {"up_begin_state"},
    # Views come from below XFER and TOTAL, so no `view` comes down through them.
    Xfer: {
        *TRAFFIC,
        "unsent",
        "lower",
        "leave",
        "up_may_leave",
        "up_view",
        "view",
        "up_has_state",
        "up_blocked",
    },
    Total: {*TRAFFIC, *FLUSH, "credit", "degree", "incomplete", "unsent", "lower", "view"},
    EitherOrder: {*TRAFFIC, *FLUSH, "credit", "degree", "incomplete", "unsent", "lower", "view"}
    | {"up_rests"},
    Mbrship: {
        *(TRAFFIC | FLUSH),
        *(
            "join",
            "leave",
            "view",
            "flush",
            "degree",
            "reset",
            "held_up",
            "up_problem",
            "up_linked",
        ),
    },
    Drop: {"up_cast", "up_send", "up_view", "up_flush"},
}


@pytest.mark.parametrize("cls", CHANGES, ids=lambda cls: cls.name)
def test_a_layer_passes_through_what_it_does_not_change(cls: type[Layer]) -> None:
    check_layer(cls, CHANGES[cls])


def test_drop_without_faults_changes_nothing() -> None:
    check_layer(Drop)
    check_headers(Drop)


def test_the_interface_is_what_is_checked_here() -> None:
    called = {name for name in vars(Layer) if inspect.isroutine(getattr(Layer, name))}
    others = {
        "start",
        "fast",
        "focus",
        "dump",
        "expire",
        "proceed",
        "woken",
        "catch_up",
        "stand_on",
    }
    assert {name for name in called if not name.startswith("__")} == (
        {*DOWNCALLS, *UPCALLS} | others
    )


class Swallows(Layer):
    name = "SWALLOWS"

    def __init__(self, core: Core, config: object, me: Member) -> None:
        super().__init__(core)

    def up_problem(self, member: object, why: str) -> None:
        pass


class Doubles(Swallows):
    def up_problem(self, member: object, why: str) -> None:
        self.above.up_problem(member, why)
        self.above.up_problem(member, why)


class Garbles(Swallows):
    def cast(self, message: Message) -> None:
        message.push_header(b"x")
        self.below.cast(message)


@pytest.mark.parametrize("cls", [Swallows, Doubles])
def test_the_check_finds_a_layer_that_does_not(cls: type[Swallows]) -> None:
    with pytest.raises(AssertionError, match=r"SWALLOWS.up_problem passed on"):
        check_layer(cls)
    check_layer(cls, {"up_problem"})


def test_the_check_finds_headers_that_stay() -> None:
    with pytest.raises(AssertionError):
        check_headers(Garbles)
