"""Whether a group that looks blocked for good is so: a run ends for that, and not for a process that stands still.

The members that wait may still have to receive that those they miss are certainly dead, which may be all that they
need to go on. What they do with it takes them no second; but a process that is stopped, or held up by a busy machine,
does nothing with it. So they are asked how the group stands: a question a second, and the run ends if all of them
have answered several in a row, in time, and none has said meanwhile that it goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from orcalike.launcher.group_status import Loss
from orcalike.launcher.status import Answers, Status
from orcalike.launcher.timers import Timers

#: Seconds between an answer and the next question.
EACH_SECONDS = 1.0
#: Questions in a row that all members of the group must have answered.
QUESTIONS = 3

NAME = "blocked"


class LossWatch:
    """Looks whether what `find()` finds is a loss for good, and calls `give_up` with it then."""

    def __init__(
        self,
        status: Status,
        timers: Timers,
        find: Callable[[], Loss | None],
        give_up: Callable[[Loss], None],
    ) -> None:
        self._status, self._timers = status, timers
        self._find, self._give_up = find, give_up
        self._answered = 0
        self._asks = False
        """A question is open, or will be asked."""

    def look(self) -> None:
        """What the processes have reported, or which there are, has changed."""
        if self._find() is None:
            self._answered = 0
        elif not self._asks:
            self._asks = True
            self._timers.at(NAME, EACH_SECONDS, self._ask)

    def _ask(self) -> None:
        self._status.collect(self._take)

    def _take(self, answers: Answers) -> None:
        """All have answered, or did not in time."""
        self._asks = False
        if (loss := self._find()) is None:
            return
        all_answered = loss.waiting <= {role for role, group in answers if group == loss.group}
        self._answered = self._answered + 1 if all_answered else 0
        if self._answered < QUESTIONS:
            self.look()
        else:
            self._give_up(loss)
