"""Which resilience degree each of a member's own messages has, as far as they have not come back."""

from __future__ import annotations

from collections import deque


class DegreesOfMessages:
    """Runs of messages of one degree, by the message's number; they cost nothing while it is the same."""

    def __init__(self) -> None:
        self._runs: deque[tuple[int, int]] = deque([(0, 0)])
        """The number that each begins with, and its degree."""

    def begin(self, ticket: int, degree: int, returned: int) -> None:
        """From this message on they have this degree; those below `returned` have come back."""
        while len(self._runs) > 1 and self._runs[1][0] <= returned:
            self._runs.popleft()
        self._runs.append((ticket, degree))

    def of(self, ticket: int) -> int:
        """The degree of a message, which has not come back."""
        return next((degree for first, degree in reversed(self._runs) if first <= ticket), 0)

    def largest(self, first: int, count: int) -> int:
        """The degree of a packet of so many messages."""
        inside = (degree for begin, degree in self._runs if first < begin < first + count)
        return max((self.of(first), *inside), default=0)

    def clear(self, ticket: int) -> None:
        """A message has none any more."""
        runs = list(self._runs)
        known, after = self.of(ticket), self.of(ticket + 1)
        kept = [run for run in runs if run[0] not in (ticket, ticket + 1)]
        if known:
            self._runs = deque(sorted([*kept, (ticket, 0), (ticket + 1, after)]))
