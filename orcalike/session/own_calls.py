"""What a member has invoked itself, when it leaves its group."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from orcalike.errors import InvocationTimeout, OrcalikeError
from orcalike.runtime.codes import Code
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.with_room import await_with_room
from orcalike.session.session import LEAVE_WITHIN, Session

if TYPE_CHECKING:
    import asyncio

_log = logging.getLogger("orcalike")


class OwnCalls:
    """A member's own calls: leaving waits for those that can go on, and withdraws the others."""

    def __init__(self, runtime: Runtime, session: Session) -> None:
        self._runtime = runtime
        self._session = session
        self._awaited: Invocation[None] | None = None
        """What a thread that leaves waits for."""

    def wait(self) -> None:
        """Wait until what this member has invoked is ordered and applied, if it can be."""
        self._session.report_leaving()
        try:
            timer = StuckTimer(self._is_stuck)
            while not timer.expired():
                if self._awaited is None:
                    self._awaited = self._fence_within(StuckTimer.STEP)
                elif self._session.pump.attend(self._awaited, StuckTimer.STEP):
                    return self._awaited.result()
            self._say_left_behind()
        except OrcalikeError as error:
            _log.warning("left without an answer: %s", error)

    async def wait_on_loop(self) -> None:
        """The same, on the event loop."""
        import asyncio  # not at the top: only coroutines need it, and it takes long

        self._session.report_leaving()
        try:
            sender = self._runtime.sender
            fence = asyncio.ensure_future(await_with_room(sender, "fence", self._fence))
            fence.add_done_callback(_take_exception)  # it may end after nothing waits for it
            timer = StuckTimer(self._is_stuck)
            try:
                while not timer.expired():
                    if (await asyncio.wait({fence}, timeout=StuckTimer.STEP))[0]:
                        return fence.result()
            finally:
                # A task that nothing holds any more may be collected before it is over.
                fence.cancel()
                await asyncio.wait({fence})
            self._say_left_behind()
        except OrcalikeError as error:
            _log.warning("left without an answer: %s", error)

    def _fence(self) -> Invocation[None]:
        """A fence that waits for what was invoked here before, and for no members besides."""
        invocation: Invocation[None] = self._runtime.sender.invoke_group(
            Code.FENCE, (), "fence", degree=0
        )
        return invocation

    def _fence_within(self, seconds: float) -> Invocation[None] | None:
        """The same; None if there was no room for it for so long."""
        try:
            return self._runtime.sender.room.start("fence", seconds, self._fence)
        except InvocationTimeout:
            return None

    def _is_stuck(self) -> bool:
        return self._session.blocked is not None or self._session.lacks_members_for_own()

    def _say_left_behind(self) -> None:
        why = "it is blocked" if self._session.blocked else "the view has too few members for them"
        name = self._session.options.name
        _log.warning("the group %r was left with calls under way: %s", name, why)

    def end(self) -> None:
        """The group is left: if that was not waited for, as after Ctrl-C, it needs no line of the log."""
        fence, self._awaited = self._awaited, None
        if fence is not None and fence.done():
            fence.exception()

    def withdraw(self) -> None:
        """What still waits for a guard is withdrawn when the member leaves."""
        mine = Counter(
            call.function.title
            for (source, _), call in list(self._runtime.waiting.items())
            if source == self._runtime.incarnation
        )
        if mine:
            named = [
                f"{call} ({count} calls)" if count > 1 else call for call, count in mine.items()
            ]
            _log.warning("withdrawn, since its member leaves: %s", ", ".join(sorted(named)))


def _take_exception(fence: asyncio.Future[None]) -> None:
    if not fence.cancelled():
        fence.exception()


class StuckTimer:
    """Whether calls that leaving waits for have not been able to go on for `LEAVE_WITHIN` seconds."""

    STEP = LEAVE_WITHIN / 10
    """Seconds between two looks."""

    def __init__(self, is_stuck: Callable[[], bool]) -> None:
        self._is_stuck = is_stuck
        self._stuck_since: float | None = None

    def expired(self) -> bool:
        """Look: the time counts from the first of the looks that found nothing that can go on."""
        if not self._is_stuck():
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = time.monotonic()
        since = self._stuck_since
        return since is not None and time.monotonic() - since >= LEAVE_WITHIN
