"""Both ends of a stack are closed: each call at each layer is answered, or raises a clear error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from orcalike.transport.config import StackConfig
from orcalike.transport.errors import ProtocolError, StackError
from orcalike.transport.layers.base import Core
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message
from tests.lib.manual_network import ManualNetwork
from tests.protocol.every_call import Plain

ROOT = Path(__file__).parents[2]
MEANT = re.compile(
    r"TypeError: (Argument .* has incorrect type|Cannot convert (Member|NoneType) to .*Peer"
    r"|'(NoneType|View)' object is not (callable|iterable))"
    r"|AttributeError: 'NoneType' object has no attribute 'position'"
    r"|IndexError: list index out of range|AssertionError: "
)
"""What says that an argument is wrong, or that a call is out of turn: places that are not there, no
change of view under way."""


def test_each_call_at_each_layer_of_each_stack_is_answered_or_raises() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.protocol.every_call"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made, *raised = done.stdout.split("\n")
    assert int(made) > 10_000
    for line in filter(None, raised):
        call, error = line.split(": ", 1)
        assert MEANT.match(error), line
        # Only a call that gives None may fail because of None.
        assert "NoneType" not in error or "(None)" in call or ".view(" in call, line


def stack_of(text: str) -> Stack:
    return Stack(parse_stack(text), StackConfig("group"), Member("sim:a", 1), 1)


@pytest.mark.parametrize(
    ("text", "call", "args", "remedy"),
    [
        ("COM:sim", "join", ("sim:b",), "put MBRSHIP into it"),
        ("DROP:COM:sim", "leave", (), "put MBRSHIP into it"),
        ("MBRSHIP:COM:sim", "credit", (False,), "put TOTAL into it"),
        ("XFER:TOTAL:MBRSHIP:COM:sim", "ack", (Message(b""),), "put STABLE into it"),
    ],
)
def test_a_downcall_that_no_layer_answers_names_call_stack_and_layer(
    text: str, call: str, args: tuple[object, ...], remedy: str
) -> None:
    stack = stack_of(text)
    layers = text.rpartition(":")[0]
    message = f"{call!r} is answered by no layer of {layers}: {remedy}"
    with pytest.raises(StackError, match=re.escape(message)):
        getattr(stack.top, call)(*args)


def test_a_cast_that_nothing_on_top_takes_names_call_and_stack() -> None:
    stack = stack_of("TOTAL:MBRSHIP:COM:sim")
    stack.above = Plain(stack)
    stack.join("", 1)
    with pytest.raises(StackError, match="'up_cast' is taken by nothing on top of TOTAL:MBRSHIP"):
        stack.cast(Message(b"x"), 2)


def test_a_layer_in_no_stack_has_neighbours_too() -> None:
    layer = Plain(Core())
    with pytest.raises(StackError, match="'cast' is answered by no layer of a stack"):
        layer.cast(Message(b"x"))
    assert layer.up_held() == b""
    with pytest.raises(AttributeError):
        layer.above = None  # type: ignore[misc,assignment]
    with pytest.raises(TypeError):
        layer.stand_on(None)  # type: ignore[arg-type]


def test_a_member_cannot_end_another_with_a_message_to_it_that_nothing_takes() -> None:
    network = ManualNetwork()
    network.form("a b")
    stack = network.endpoints["a"].stack
    stack.above = Plain(stack)
    network.call("b", lambda now: network.endpoints["b"].stack.send(Message(b"x"), (0,), now))
    network.deliver("b", "a")
    refused = stack.dump()["COM"]["refused"]
    assert refused == {"a message to some members, which nothing here takes": 1}


def test_views_are_made_if_nothing_above_holds_packets() -> None:
    """MBRSHIP alone: the ends answer what TOTAL would."""
    network = ManualNetwork("MBRSHIP:COM:sim")
    network.form("a b c")
    network.leave("a")
    network.stabilize()
    for name in "bc":
        view = network[name].installed
        assert view is not None
        assert [member.address for member in view.members] == ["sim:b", "sim:c"]


def test_a_packet_that_nothing_lacks_is_refused() -> None:
    with pytest.raises(ProtocolError, match="a packet that nothing here lacks"):
        stack_of("MBRSHIP:COM:sim").top.up_supply(b"x")
