"""The event loop of a program whose `main` is a coroutine."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None) -> T:
    """Run a coroutine as `asyncio.run` does, on uvloop if that is installed: `run(main())`.

    uvloop, which comes with `pip install orcalike[uvloop]`, takes less time for each message.
    """
    import asyncio  # not at the top: only coroutines need it, and it takes long

    if not asyncio.iscoroutine(main):
        raise TypeError(
            f"run takes a coroutine, not {main!r}: write run(main()) for `async def main()`"
        )
    if asyncio._get_running_loop() is not None:
        main.close()
        raise RuntimeError("an event loop runs on this thread already: await the coroutine there")
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main, debug=debug)
    with asyncio.Runner(debug=debug, loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
