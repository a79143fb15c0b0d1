"""What to write in place of a call that would wait on the thread of an event loop.

A method of a class of Python may stand between the program and the operation: `with lock:` calls
`__enter__`, and `del numbers[0]` an operation that has no public name. So the caller's frame is looked at.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING

from orcalike.runtime.errors import BlockingInLoop

if TYPE_CHECKING:
    from orcalike.runtime.classes import DeclaredAtomic, DeclaredOperation

    Called = DeclaredOperation | DeclaredAtomic | str

_IN_A_COROUTINE = {
    "__enter__": "write `async with`",
    "__exit__": "write `async with`",
    "__iter__": "write `async for`",
    "__next__": "write `async for`",
}
"""What stands for a method that Python calls, by its name."""

_IN_A_THREAD = "have a thread call it, as in `await asyncio.to_thread(...)`"


def blocking_call(called: Called) -> BlockingInLoop:
    """The error for an operation, an atomic function, or what a group does, that its caller waits for."""
    if isinstance(called, str):
        return blocking_on_loop(called, f"write `await group.{called}.aio(...)`")
    if called.kind == "atomic":
        return blocking_on_loop(called.title, f"write `await {called.name}.aio(...)`")
    cls = getattr(called.info, "cls", object)
    frame = sys._getframe(1)
    caller = _self_of(frame)
    is_own = isinstance(caller, cls)
    if is_own and frame.f_code.co_name in _IN_A_COROUTINE:
        return blocking_method(caller, called.name, frame)
    if getattr(getattr(cls, called.name, None), "kind", None) is None:
        return blocking_on_loop(called.title, _IN_A_THREAD)  # a property, which has no `aio`
    if not _is_private(called.name):
        return blocking_on_loop(called.title, f"write `await obj.{called.name}.aio(...)`")
    if is_own and not _is_private(frame.f_code.co_name):
        return blocking_on_loop(f"{type(caller).__name__}.{frame.f_code.co_name}", _IN_A_THREAD)
    return blocking_on_loop(called.title, f"write `await obj.{called.name}.aio(...)`")


def blocking_method(owner: object, name: str, frame: FrameType) -> BlockingInLoop:
    """The same for a method of that object that has `aio`, and that is called in that frame."""
    title = type(owner).__name__
    special = frame.f_code.co_name
    if special in _IN_A_COROUTINE and _self_of(frame) is owner:
        return blocking_on_loop(f"{title}.{special}", _IN_A_COROUTINE[special])
    return blocking_on_loop(f"{title}.{name}", f"write `await obj.{name}.aio(...)`")


def blocking_result(called: Called | None, title: str) -> BlockingInLoop:
    """The same for the result of an invocation."""
    instead = "await the invocation, and do not call its `result`"
    if called is None or isinstance(called, str):
        return blocking_on_loop(title, instead)
    called_as = called.name if called.kind == "atomic" else f"obj.{called.name}"
    return blocking_on_loop(title, f"{instead}; or write `await {called_as}.aio(...)`")


def blocking_on_loop(title: str, remedy: str) -> BlockingInLoop:
    """The error for what has that title, and what to write instead."""
    return BlockingInLoop(f"{title} would block the event loop that runs on this thread: {remedy}")


def _self_of(frame: FrameType) -> object:
    """The object whose method runs in a frame; None if it is a method of none."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return first if hasattr(type(first), code.co_name) else None


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")
