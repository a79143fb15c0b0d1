"""What any layer must do: pass through what it does not change, and undo its own headers.

`check_layer(make_layer, changes={...})` is for every layer, of orcalike or of its user.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

MakeLayer = Callable[[Core, StackConfig, Member], Layer]

ME = Member("sim:me", 1, 0)
PEER = Member("sim:peer", 2, 1)
VIEW = View(1, 2, 0, (ME, PEER))

DOWNCALLS: dict[str, tuple[Any, ...]] = {
    "join": ("sim:peer",),
    "view": (VIEW,),
    "cast": (Message(b"cast"),),
    "cast_packets": (),
    "send": (Message(b"send"), (1,)),
    "contact": (Message(b"contact"), "sim:peer"),
    "ack": (Message(b"ack"),),
    "credit": (True,),
    "degree": (1,),
    "incomplete": ((7,),),
    "unsent": (),
    "lower": (Message(b"packet"),),
    "held_up": (),
    "leave": (),
    "flush": ((),),
    "flush_ok": (b"report",),
    "holds": (),
    "reset": (1,),
}
"""Downcalls (Horus, table 1: H20 to H34), and arguments for each; `focus` and `dump` end in a layer."""

UPCALLS: dict[str, tuple[Any, ...]] = {
    "up_join_failed": ("why",),
    "up_join_denied": ("why",),
    "up_flush": ([PEER],),
    "up_flush_ok": ({0: b"report"}, VIEW, False),
    "up_rests": (VIEW, b"cut"),
    "up_held": (),
    "up_missing": (b"report", True),
    "up_check": (b"report", b"cut"),
    "up_supply": (b"piece",),
    "up_has_state": (),
    "up_cut": (b"cut",),
    "up_view": (VIEW, b"cut"),
    "up_cast": (Message(b"cast"),),
    "up_send": (Message(b"send"),),
    "up_may_leave": (),
    "up_is_held_up": (),
    "up_vouches": (2,),
    "up_alone": ((2,),),
    "up_stable": ({},),
    "up_problem": (PEER, "why"),
    "up_linked": (PEER,),
    "up_blocked": ((PEER,), "rule"),
    "up_reset_failed": ("why",),
    "up_system_error": ("why",),
    "up_exit": ("why",),
    "up_give_state": (),
    "up_begin_state": (),
    "up_take_state": (b"piece",),
    "up_end_state": (),
}
"""Upcalls (Horus, table 2: H35 to H49), and arguments for each."""

RETURNS: dict[str, Any] = {
    "up_flush_ok": b"the cut",
    "up_held": b"a report",
    "up_missing": [b"piece"],
    "up_has_state": 2,
    "up_cut": True,
    "up_may_leave": False,
    "up_is_held_up": True,
    "up_rests": True,
    "up_vouches": True,
    "up_give_state": iter(()),
}


class Recorder(Layer):
    """Stands above or below the layer that is tested, and keeps each call and its arguments."""

    calls: list[tuple[str, tuple[Any, ...]]]


def _recording(name: str) -> Callable[..., Any]:
    def call(self: Recorder, *args: Any) -> Any:
        self.calls.append((name, args))
        return RETURNS.get(name)

    return call


for _name in (*DOWNCALLS, *UPCALLS):
    setattr(Recorder, _name, _recording(_name))


def check_layer(make_layer: MakeLayer, changes: Collection[str] = ()) -> None:
    """Raise AssertionError if a call does not arrive at the other side as it was made.

    `changes` names the calls that the layer is there to change.
    """
    unknown = set(changes) - set(DOWNCALLS) - set(UPCALLS)
    assert not unknown, f"the uniform interface has no {unknown}"
    for calls, down in ((DOWNCALLS, True), (UPCALLS, False)):
        for name, args in calls.items():
            if name not in changes:
                _check_call(make_layer, name, args, down=down)
    layer, below, above = _between(make_layer)
    assert layer.focus(layer.name) is layer
    assert layer.focus("NO_SUCH_LAYER") is None
    assert isinstance(layer.dump(), dict)
    assert isinstance(layer.needs, frozenset)
    assert isinstance(layer.gives, frozenset)
    assert not below.calls
    assert not above.calls


def _between(make_layer: MakeLayer) -> tuple[Layer, Recorder, Recorder]:
    core = Core()
    layer, below, above = make_layer(core, StackConfig("group"), ME), Recorder(core), Recorder(core)
    below.calls, above.calls = [], []
    layer.stand_on(below)
    above.stand_on(layer)
    layer.start()
    return layer, below, above


def _check_call(make_layer: MakeLayer, name: str, args: tuple[Any, ...], *, down: bool) -> None:
    layer, below, above = _between(make_layer)
    result = getattr(layer, name)(*args)
    here, there = (below, above) if down else (above, below)
    assert here.calls == [(name, args)], f"{layer.name}.{name} passed on {here.calls}"
    assert not there.calls, f"{layer.name}.{name} called {there.calls}"
    assert result == RETURNS.get(name), f"{layer.name}.{name} returned {result!r}"


def check_headers(make_layer: MakeLayer, body: bytes = b"a body") -> None:
    """Raise AssertionError if what one endpoint's layer sends is not what another's hands up."""
    sends: dict[str, tuple[Any, ...]] = {"cast": (), "send": ((1,),), "contact": ("sim:peer",)}
    for name, args in sends.items():
        layer, below, _ = _between(make_layer)
        getattr(layer, name)(Message(body), *args)
        assert [call for call, _ in below.calls] == [name]
        arrived = Message(below.calls[0][1][0].body)
        peer, _, above = _between(make_layer)
        (peer.up_cast if name == "cast" else peer.up_send)(arrived)
        assert [call for call, _ in above.calls] == ["up_cast" if name == "cast" else "up_send"]
        assert above.calls[0][1][0].body == body
