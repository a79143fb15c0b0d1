"""The failure detector: which members have been silent for too long (A16, A45, H65; H13).

It knows members by their incarnations, and when each was heard; it sends nothing and decides
nothing. Beats say that a process runs and that the way to it and back is open. A member that is
not heard for the detection time D is suspected, until it is heard again.

On a busy machine silence says little: a process that gets no processor cannot beat. If the kernel
says that the process lives and is not stopped (`lives`), it is suspected only after `silence_max`. And
silence while this process could not have heard anything does not count (`excuse`).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

SILENCE_TIMES, SILENCE_MIN_NS = 10, 5_000_000_000
"""How long a process that lives may be silent: so many times D, and so long at the least."""


def longest_silence(detection: int) -> int:
    """How long a process may be silent that may live, ns, where D is `detection` ns."""
    return max(SILENCE_TIMES * detection, SILENCE_MIN_NS)


class FailureDetector:
    """Watches some members, on the clock that its caller tells."""

    def __init__(self, detection: int) -> None:
        """`detection` is D, in nanoseconds."""
        self.detection = detection
        self.silence_max = longest_silence(detection)
        """The same for a member whose process lives, by the kernel's word."""
        self.silent: set[int] = set()
        """Those watched that have not been heard for D."""
        self.deadline: int | None = None
        """When to `check` next, in ns; None if no member is watched."""
        self._heard: dict[int, int] = {}
        self._excused: dict[int, int] = {}
        self._living: set[int] = set()

    def watch(self, incarnations: Iterable[int], now: int) -> None:
        """Watch these, and no others, from now on: all of them begin as heard now."""
        self._heard = dict.fromkeys(incarnations, now)
        self._excused = {}
        self._living = set()
        self.silent = set()
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

    def excuse(self, incarnation: int, until: int) -> None:
        """The silence of a member before the time `until` says nothing about it."""
        if incarnation in self._heard:
            self._excused[incarnation] = max(until, self._excused.get(incarnation, until))

    def quiet(self, now: int) -> set[int]:
        """The members that `check` would find silent now, for whose processes it needs a word."""
        self._living = set()
        due = now - self.detection
        return {each for each in self._heard.keys() - self.silent if self._since(each) <= due}

    def lives(self, incarnation: int) -> None:
        """The kernel says that its process lives, and is not stopped; counts for the next `check`."""
        self._living.add(incarnation)

    def check(self, now: int) -> bool:
        """Look which members are silent now; True if `silent` has changed.

        A detector that comes late by D/2 was itself asleep, and begins its clocks anew.
        """
        before = set(self.silent)
        if self.deadline is not None and now - self.deadline > self.detection // 2:
            for each, last in self._heard.items():
                if each not in self.silent:
                    self._heard[each] = max(last, now)
        quiet = {each for each in self._heard if now - self._since(each) >= self.detection}
        patient = {
            each for each in self._living - before if now - self._since(each) < self.silence_max
        }
        self.silent = quiet - patient
        self._living = set()
        self._set_deadline(now, patient)
        return self.silent != before

    def _since(self, incarnation: int) -> int:
        """From when on its silence counts."""
        return max(self._heard[incarnation], self._excused.get(incarnation, 0))

    def _set_deadline(self, now: int, patient: AbstractSet[int] = frozenset()) -> None:
        """The first silence that is due; during one its end is looked for, or the process's."""
        awaited = self._heard.keys() - self.silent - patient
        dues = [self._since(each) + self.detection for each in awaited]
        if self.silent or patient:
            dues.append(now + self.detection // 2)
        self.deadline = min(dues, default=None)
