"""A reset: the members that a blocked group has left rebuild it, and go on without the others."""

from __future__ import annotations

import time
from collections.abc import Callable

from orcalike.errors import Expelled, NotPrimary, OrcalikeError
from orcalike.session.session import Session
from orcalike.transport.drivers.deferral import held
from orcalike.transport.membership.coordinator import UNDER_WAY
from orcalike.transport.view import View
from orcalike.transport.wording import counted

ASK_AGAIN = 1.0
"""Seconds after which a reset that was not answered is asked for again."""

TRY_AGAIN = 0.02
"""Seconds before another try if a change of view is in the way of a reset."""


@held
def reset(
    session: Session,
    minimum: int,
    timeout: float | None,
    lower_degrees: Callable[[float | None], None],
) -> View:
    """Rebuild a blocked group of `minimum` members or more; raises NotPrimary.

    If it has a view, and only too few members for a degree, `lower_degrees(timeout)` has the
    group take these for enough.
    """
    before, shortage = session.view, session.shortage
    too_few = shortage.look_for_too_few()
    if session.blocked is None and too_few is not None and before is not None:
        if len(before.members) < minimum:
            raise NotPrimary(
                f"the group was not reset: {counted(len(before.members), 'member')} present, "
                f"{minimum} asked for"
            )
        lower_degrees(timeout)
        shortage.look_for_too_few()
        return before
    if session.blocked is None or before is None:
        raise OrcalikeError("the group is not blocked, so there is nothing to reset")
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        rest = ASK_AGAIN if end is None else min(ASK_AGAIN, end - time.monotonic())
        if rest <= 0:
            raise NotPrimary(
                f"the group was not reset within {timeout} s: {shortage.describe_blocked()}"
            )
        session.reset_refused = None
        session.pump.call(session.stack.reset, minimum)
        session.waiting.wait(lambda: _is_over(session, before), rest, "reset the group")
        if session.expelled is not None:
            raise Expelled(session.expelled)
        if session.view is not None and session.view.number > before.number:
            return session.view
        refused, session.reset_refused = session.reset_refused, None
        if refused == UNDER_WAY:
            session.waiting.pause(TRY_AGAIN)
        elif refused is not None and session.blocked is not None:
            raise NotPrimary(f"the group was not reset: {refused}")


def _is_over(session: Session, before: View) -> bool:
    installed = session.view is not None and session.view.number > before.number
    return installed or session.reset_refused is not None or session.exit_reason is not None
