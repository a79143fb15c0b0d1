"""Each call of the uniform interface, at each layer of each stack: answered, or a named error.

`python -m tests.protocol.every_call` prints how many calls were made, and, one a line, what was
raised that is no error of orcalike's. A process of its own makes them: before both ends of a stack were closed, a
call that no layer answered was a signal 11.
"""

from __future__ import annotations

import contextlib
import faulthandler
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

from orcalike.errors import OrcalikeError
from orcalike.transport.config import StackConfig
from orcalike.transport.errors import StackError
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import LayerSpec, parse_stack, register
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message
from tests.lib.command_lines import ask_nothing
from tests.protocol.conformance import DOWNCALLS, UPCALLS

LAYERS = ("PACK", "STABLE", "XFER", "TOTAL", "MBRSHIP", "DROP", "PLAIN")
ME = Member("sim:me", 1, 0)
CALLS: dict[str, tuple[Any, ...]] = DOWNCALLS | UPCALLS


class Plain(Layer):
    """A user's layer that changes nothing, in Python; also one on top that takes no upcall."""

    name = "PLAIN"

    def __init__(self, core: Core, config: object = None, me: object = None) -> None:
        super().__init__(core)


def shapes() -> Iterator[list[LayerSpec]]:
    """All stacks of up to five layers above COM that hold together, and all of up to two."""
    for count in range(6):
        for order in permutations(LAYERS, count):
            try:
                yield parse_stack(":".join((*order, "COM:sim")), sound=count > 2)
            except StackError:
                continue


def fresh(specs: list[LayerSpec], state: str) -> Stack:
    """A stack; "joined": it has made a group, if it can. On "bare" ones nothing stands."""
    stack = Stack(specs, StackConfig("group"), ME, 1)
    if state != "bare":
        stack.above = Plain(stack)
    if state == "joined":
        with contextlib.suppress(StackError):
            stack.join("", 1)
    return stack


def arguments_of(name: str) -> list[tuple[Any, ...]]:
    """The arguments of a call, with a message of its own; and None for each that is an object."""
    given = tuple(Message(arg.body) if isinstance(arg, Message) else arg for arg in CALLS[name])
    nothing = tuple(arg if isinstance(arg, int) else None for arg in given)
    return [given, nothing] if given != nothing else [given]


def make(stack: Stack, call: Callable[..., Any], args: tuple[Any, ...]) -> Exception | None:
    """The call, and what follows of it in the same input: what it raised."""
    try:
        call(*args)
        stack.expire(2)
    except Exception as error:  # noqa: BLE001 what is raised is what is looked at
        return error
    return None


def is_as_it_was(name: str, error: Exception | None) -> bool:
    """Whether nothing can have changed: each layer passed the call on, or the first took no such arguments."""
    unanswered = isinstance(error, StackError) and str(error).startswith(f"{name!r} is answered by")
    return unanswered or (isinstance(error, TypeError) and "has incorrect type" in str(error))


def calls(specs: list[LayerSpec], state: str) -> Iterator[tuple[str, Exception | None]]:
    """Each call at each layer of a stack, and what it raised.

    What a layer does with None does not depend on how many others there are: smaller stacks show it.
    """
    stack = fresh(specs, state)
    for place in range(len(specs) + (state != "bare")):
        for name in CALLS:
            for args in arguments_of(name)[: 2 if len(specs) < 6 else 1]:
                layer = stack.layers[place] if place < len(specs) else stack.above
                given = "None" if None in args else ""
                error = make(stack, getattr(layer, name), args)
                yield f"{layer.name}.{name}({given}) {state}", error
                if not is_as_it_was(name, error):
                    stack = fresh(specs, state)


def states(specs: list[LayerSpec]) -> tuple[str, ...]:
    """In which states a stack is looked at; without MBRSHIP there is no group to make."""
    if len(specs) >= 4:
        return ("joined",)
    can_join = any(spec.cls.name == "MBRSHIP" for spec in specs)
    return ("bare", "outside", "joined") if can_join else ("bare", "outside")


def main() -> None:
    """Make all calls."""
    faulthandler.enable()
    register(Plain)
    made, raised = 0, set[str]()
    for specs in shapes():
        for state in states(specs):
            for call, error in calls(specs, state):
                made += 1
                if error is not None and not isinstance(error, OrcalikeError):
                    raised.add(f"{call}: {type(error).__name__}: {error}")
    print(made)
    print(*sorted(raised), sep="\n")


if __name__ == "__main__":
    ask_nothing("tests.protocol.every_call", __doc__)
    main()
