"""The failure detector: who has been silent for too long (A16, A45, H65; RELIABILITY H13).

It knows members by their incarnations, and when each was heard; it sends nothing and decides
nothing. Beats say that a process runs and that the way to it and back is open. A member that is
not heard for the detection time D is suspected, until it is heard again.
"""

from __future__ import annotations

from collections.abc import Iterable


class Detector:
    """Watches some members, on the clock that its caller tells."""

    def __init__(self, detection: int) -> None:
        """`detection` is D, in nanoseconds."""
        self.detection = detection
        self.silent: set[int] = set()
        """Those watched who have not been heard for D."""
        self.doubt = False
        """This process, or its way to somebody, stood still: the others may have gone on."""
        self.deadline: int | None = None
        """When to `check` next, in ns; None where nobody is watched."""
        self._heard: dict[int, int] = {}

    def watch(self, incarnations: Iterable[int], now: int) -> None:
        """Watch these, and nobody else, from now on: all of them begin as heard now."""
        self._heard = dict.fromkeys(incarnations, now)
        self.silent = set()
        self.doubt = False
        self._set_deadline(now)

    def watch_too(self, incarnations: Iterable[int], now: int) -> None:
        """Watch these as well, from now on."""
        self._heard = dict.fromkeys(incarnations, now) | self._heard
        self._set_deadline(now)

    def heard(self, incarnation: int, when: int) -> None:
        """A member was heard at the time `when`."""
        last = self._heard.get(incarnation)
        if last is not None and when > last:
            self._heard[incarnation] = when

    def check(self, now: int) -> bool:
        """Who is silent now? True where `silent` has changed.

        A detector that comes late by D/2 was itself asleep, and begins its clocks anew.
        """
        before = set(self.silent)
        if self.deadline is not None and now - self.deadline > self.detection // 2:
            for each, last in self._heard.items():
                if each not in self.silent:
                    self.doubt |= now - last >= self.detection // 2
                    self._heard[each] = max(last, now)
        self.silent = {each for each, last in self._heard.items() if now - last >= self.detection}
        self.doubt |= bool(self.silent)
        self._set_deadline(now)
        return self.silent != before

    def is_sure(self, now: int) -> bool:
        """Whether this process was never out of contact since it began to watch these."""
        late = self.deadline is not None and now - self.deadline > self.detection // 2
        return not self.doubt and not late

    def _set_deadline(self, now: int) -> None:
        """The first silence that is due; while somebody is silent, a return is looked for."""
        dues = [
            last + self.detection for each, last in self._heard.items() if each not in self.silent
        ]
        if self.silent:
            dues.append(now + self.detection // 2)
        self.deadline = min(dues, default=None)
