"""DROP: a bad network, anywhere in a stack, for tests.

Promises nothing, needs nothing: of what comes up from below it loses, repeats and delays some, by
the stack's own rng, so that a seed still is a schedule. Faults are layers: what stands above is
tested against them as it is.

- `lose`, `repeat`: so many percent of the messages do not arrive, arrive twice.
- `delay`: so many percent wait, and all behind them; the order is kept.
- `reorder`: so many percent wait, and others pass them.
- `span`: how long the longest wait is, in ns.

With `delay` alone all that was sent arrives, in order, as over a slow channel. The other faults
take away what the layers above may rely on (`takes`).
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import NO_DEADLINE, Core, Layer
from orcalike.transport.layers.com import Com
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

PROMISES = frozenset({"FIFO", "VIEWS", "TOTAL_ORDER", "STATE", "STABILITY"})
"""What does not hold above messages that are lost, come twice or pass each other."""

_Held = tuple[int, int, bool, Message]
"""When it is due, how many were held before, whether it is a cast, the message."""


class Drop(Layer):
    """Loses, repeats, delays and reorders messages, by the stack's own rng."""

    name = "DROP"

    def __init__(
        self,
        core: Core,
        config: StackConfig,
        me: Member,
        lose: int = 0,
        repeat: int = 0,
        delay: int = 0,
        reorder: int = 0,
        span: int = 1_000_000,
    ) -> None:
        super().__init__(core)
        for percent in (lose, repeat, delay, reorder):
            if not 0 <= percent <= 100:
                raise ValueError(f"DROP takes percentages, from 0 to 100, not {percent!r}")
        if span < 1:
            raise ValueError("DROP needs a span of 1 ns at the least")
        self.lose, self.repeat, self.delay, self.reorder = lose, repeat, delay, reorder
        self.span = span
        if lose or repeat or reorder:
            self.takes = PROMISES
        self.lost = self.repeated = self.delayed = self.reordered = 0
        self._line: deque[_Held] = deque()  # held messages, in order
        self._aside: list[_Held] = []  # a heap of what others pass
        self._count = 0
        self._flushing = False  # above MBRSHIP, between FLUSH and VIEW
        self._com: Com | None = None

    def start(self) -> None:
        com = self.focus("COM")
        if self.below.focus("MBRSHIP") is None and isinstance(com, Com):
            self._com = com  # below MBRSHIP: a sender's position may change while it is held

    def up_cast(self, message: Message) -> None:
        self._arrived(message, True)

    def up_send(self, message: Message) -> None:
        self._arrived(message, False)

    def up_view(self, view: View, cut: bytes) -> None:
        """Casts belong to the view before this one; what was sent to some may be lost with it."""
        for is_cast, message in self._let_go():
            if is_cast:
                self._pass(message, is_cast)
        self._flushing = False
        self.above.up_view(view, cut)

    def up_flush(self, failed: object) -> None:
        self._flushing = True
        for is_cast, message in self._let_go():
            self._pass(message, is_cast)
        self.above.up_flush(failed)

    def up_exit(self, why: str) -> None:
        """Nothing of the group comes after that."""
        self._let_go()
        self.above.up_exit(why)

    def expire(self) -> None:
        now = self.core.now
        while self._line and self._line[0][0] <= now:
            _, _, is_cast, message = self._line.popleft()
            self._pass(message, is_cast)
        while self._aside and self._aside[0][0] <= now:
            _, _, is_cast, message = heappop(self._aside)
            self._pass(message, is_cast)
        self._set_deadline()

    def dump(self) -> dict[str, object]:
        return {
            "lost": self.lost,
            "repeated": self.repeated,
            "delayed": self.delayed,
            "reordered": self.reordered,
            "held": len(self._line) + len(self._aside),
        }

    def _let_go(self) -> list[tuple[bool, Message]]:
        """All that is held, as if it had come due."""
        held = [*self._line, *sorted(self._aside, key=lambda held: held[:2])]
        self._line.clear()
        self._aside.clear()
        self.deadline = NO_DEADLINE
        return [(is_cast, message) for _, _, is_cast, message in held]

    def _happens(self, percent: int) -> bool:
        return percent > 0 and self.core.random() % 100 < percent

    def _arrived(self, message: Message, is_cast: bool) -> None:
        if self._happens(self.lose):
            self.lost += 1
            return
        if self._happens(self.repeat):
            self.repeated += 1
            self._forward(message.copy(), is_cast)
        self._forward(message, is_cast)

    def _forward(self, message: Message, is_cast: bool) -> None:
        """Pass it up now, or hold a copy of it."""
        if self._flushing:
            self._pass(message, is_cast)
            return
        if self._happens(self.reorder):
            self.reordered += 1
            heappush(self._aside, self._held(self._later(), is_cast, message))
        elif self._happens(self.delay):
            self.delayed += 1
            self._stand_in_line(self._later(), is_cast, message)
        elif self._line:
            self._stand_in_line(self.core.now, is_cast, message)
        else:
            (self.above.up_cast if is_cast else self.above.up_send)(message)
            return
        self._set_deadline()

    def _stand_in_line(self, due: int, is_cast: bool, message: Message) -> None:
        if self._line:
            due = max(due, self._line[-1][0])
        self._line.append(self._held(due, is_cast, message))

    def _held(self, due: int, is_cast: bool, message: Message) -> _Held:
        self._count += 1
        return due, self._count, is_cast, message.copy()

    def _later(self) -> int:
        return self.core.now + 1 + self.core.random() % self.span

    def _pass(self, message: Message, is_cast: bool) -> None:
        if self._com is not None:
            peer = self._com.peer_at(message.link)
            message.source = -1 if peer is None else peer.position
        (self.above.up_cast if is_cast else self.above.up_send)(message)

    def _set_deadline(self) -> None:
        line = self._line[0][0] if self._line else NO_DEADLINE
        aside = self._aside[0][0] if self._aside else NO_DEADLINE
        self.deadline = min(line, aside)
