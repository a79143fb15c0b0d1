"""A cache that all members fill and look into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from orcalike.errors import DataLossPossible, OrcalikeError
from orcalike.objects import language as orca
from orcalike.objects.steps import Method, Steps, ask
from orcalike.runtime.durations import Duration, in_seconds

if TYPE_CHECKING:
    from orcalike.objects.defaults import TakeOut

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

LOOKED_AT = 16
"""Of the entries that were used least, so many are looked at for one that has expired."""


@orca.shared
class Cache(Generic[K, V]):
    """At most `maxsize` entries, each for `ttl` seconds by the group's clock (None: for good).

    To look up is a local read. The entries that were not used for the longest time go first; so that
    a look-up need not be a write, a use is noted only when the entry is in the older half.
    """

    def __init__(self, maxsize: int = 1024, ttl: Duration | None = None) -> None:
        if maxsize < 1:
            raise ValueError("a cache has room for one entry at the least")
        self._maxsize = maxsize
        self._ttl = in_seconds(ttl)
        self._entries: dict[K, tuple[V, float | None, int]] = {}
        """(value, when it expires, its last use as it was noted), the oldest use first."""
        self._uses = 0

    def _live(self, key: K) -> tuple[V, float | None, int] | None:
        entry = self._entries.get(key)
        if entry is None or (entry[1] is not None and entry[1] <= orca.now()):
            return None
        return entry

    @orca.read
    def _look(self, key: K) -> tuple[bool, Any, bool]:
        """(whether it is there, its value, whether its use is to be noted)."""
        entry = self._live(key)
        if entry is None:
            return False, None, False
        return True, entry[0], self._uses - entry[2] > self._maxsize // 2

    @orca.write
    def _use(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._uses += 1
            self._entries[key] = (entry[0], entry[1], self._uses)

    def _note_use(self, key: K) -> None:
        """Note a use, if that can be sent: that it is found does not depend on it."""
        try:
            self._use.nowait(key)
        except DataLossPossible:  # which is raised once
            raise
        except OrcalikeError:
            pass

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V, /) -> V: ...
    @overload
    def get(self, key: K, default: T, /) -> V | T: ...
    @orca.local
    def get(self, key: K, default: Any = None, /) -> V | Any:
        """The value of a key, or the default if it is missing or has expired."""
        found, value, note = self._look(key)
        if note:
            self._note_use(key)
        return value if found else default

    @orca.write
    def set(self, key: K, value: V, /, ttl: Duration | None = None) -> None:
        """Set the value of a key, for `ttl` seconds in place of the cache's own."""
        # First, as it may raise: no entry has gone then.
        lasts = self._ttl if ttl is None else in_seconds(ttl)
        self._entries.pop(key, None)
        if len(self._entries) >= self._maxsize:
            del self._entries[self._one_to_drop()]
        self._uses += 1
        until = None if lasts is None else orca.now() + lasts
        self._entries[key] = (value, until, self._uses)

    def _one_to_drop(self) -> K:
        oldest = list(islice(self._entries, LOOKED_AT))
        return next((key for key in oldest if self._live(key) is None), oldest[0])

    @Method
    def get_or_set(self, key: K, make: Callable[[], V], /) -> Steps[V]:
        """The value of a key; if it is missing, that which `make` gives here and now.

        Two members that miss it at once both make it, and have the one that was set first.
        """
        found, value, note = yield from ask(self._look, key)
        if note:
            self._note_use(key)
        if found:
            present: V = value
            return present
        return (yield from ask(self._set_missing, key, make()))

    @orca.write
    def _set_missing(self, key: K, value: V) -> V:
        entry = self._live(key)
        if entry is not None:
            return entry[0]
        self.set(key, value)
        return value

    if TYPE_CHECKING:

        @property
        def pop(self) -> TakeOut[K, V]: ...

    else:

        @orca.write
        def pop(self, key: K, /, default: Any = None) -> V | Any:
            """Take out a key, and return its value, or the default."""
            entry = self._live(key)
            self._entries.pop(key, None)
            return default if entry is None else entry[0]

    @orca.write
    def clear(self) -> None:
        """Take out all entries."""
        self._entries = {}

    @orca.read
    def __contains__(self, key: K, /) -> bool:
        return self._live(key) is not None

    @orca.read
    def __iter__(self) -> Iterator[K]:
        """The keys that have not expired, the oldest use first."""
        return iter([key for key in self._entries if self._live(key) is not None])

    @orca.read
    def __len__(self) -> int:
        """How many entries there are, with those that have expired and were not dropped yet."""
        return len(self._entries)

    @orca.local
    def __getitem__(self, key: K, /) -> V:
        found, value, note = self._look(key)
        if not found:
            raise KeyError(key)
        if note:
            self._note_use(key)
        present: V = value
        return present

    @orca.local
    def __setitem__(self, key: K, value: V, /) -> None:
        self.set(key, value)

    @orca.write
    def __delitem__(self, key: K, /) -> None:
        entry = self._live(key)
        self._entries.pop(key, None)
        if entry is None:
            raise KeyError(key)

    def __repr__(self) -> str:
        return f"<Cache of {len(self._entries)} entries>"
