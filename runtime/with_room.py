"""Calls of coroutines, which wait for room where a call on an event loop is refused (`WindowFull`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from orcalike.runtime.errors import WindowFull
from orcalike.runtime.invocation import Invocation, Invoker, without_room
from orcalike.runtime.invocation_coroutine import InvocationCoroutine, unsent_coroutine, within

R = TypeVar("R")


if TYPE_CHECKING:
    from orcalike.runtime.invoked import Titled


def await_with_room(
    invoker: Invoker, what: str, start: Callable[[], Invocation[R]]
) -> InvocationCoroutine[R]:
    """What to await for the outcome of a call that `start` sends: now, or when there is room for it."""
    try:
        return InvocationCoroutine(start())
    except WindowFull:
        return coroutine_with_room(invoker, what, None, start)


def coroutine_with_room(
    invoker: Invoker,
    operation: Titled | str,
    seconds: float | None,
    start: Callable[[], Invocation[R]],
) -> InvocationCoroutine[R]:
    """What to await for a call that was refused: `start` sends it as soon as there is room."""
    return unsent_coroutine(operation, partial(_invoke, invoker, operation, seconds, start))


async def _invoke(
    invoker: Invoker,
    operation: Titled | str,
    seconds: float | None,
    start: Callable[[], Invocation[R]],
) -> R:
    """The outcome of a call that `start` sends when there is room for it; within a time limit, if there is one."""
    import asyncio  # not at the top: only coroutines need it, and it takes long

    now = asyncio.get_running_loop().time
    until = None if seconds is None else now() + seconds
    invocation = await start_with_room(invoker, operation, until, start)
    if until is None:
        return await invocation
    return await within(invocation, max(0, until - now()))


async def start_with_room(
    invoker: Invoker,
    operation: Titled | str,
    until: float | None,
    start: Callable[[], Invocation[R]],
) -> Invocation[R]:
    """Wait for room, until then by the event loop's clock, and `start` a call; returns its invocation."""
    import asyncio  # not at the top: only coroutines need it, and it takes long

    while True:
        try:
            async with asyncio.timeout_at(until):
                await invoker.wait_for_room()
        except TimeoutError:
            raise without_room(operation) from None
        try:
            return start()
        except WindowFull:
            continue
