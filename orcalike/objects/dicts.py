"""A dictionary that all members share."""

from __future__ import annotations

from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    ValuesView,
)
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from orcalike.objects import language as orca
from orcalike.objects.plain import Container, plain
from orcalike.objects.sending import sends

if TYPE_CHECKING:
    from orcalike.objects.defaults import Get, Pop, SetDefault

K = TypeVar("K")
V = TypeVar("V")


@orca.shared
class Dict(Container, Generic[K, V]):
    """A dict. `keys`, `values` and `items` are views of it; what is made of it is a plain dict.

    An iteration is over what it holds at one place in the order.
    """

    def __init__(self, other: Mapping[K, V] | Iterable[tuple[K, V]] = (), /, **named: V) -> None:
        self._items: dict[Any, V] = dict(other, **named)

    # Reads.

    @orca.read
    def _plain(self) -> dict[K, V]:
        return self._items.copy()

    @orca.read
    def __len__(self) -> int:
        return len(self._items)

    @orca.read
    def __getitem__(self, key: K, /) -> V:
        return self._items[key]

    @orca.read
    def __contains__(self, key: object, /) -> bool:
        return key in self._items

    @orca.read
    def __iter__(self) -> Iterator[K]:
        return iter(list(self._items))

    @orca.read
    def __reversed__(self) -> Iterator[K]:
        return iter(list(self._items)[::-1])

    if TYPE_CHECKING:

        @property
        def get(self) -> Get[K, V]: ...

    else:

        @orca.read
        def get(self, key: K, default: Any = None, /) -> V | Any:
            """The value of a key, or a default."""
            return self._items.get(key, default)

    @orca.local
    def keys(self) -> KeysView[K]:
        """A view of the keys."""
        return _Keys(self)

    @orca.local
    def values(self) -> ValuesView[V]:
        """A view of the values."""
        return _Values(self)

    @orca.local
    def items(self) -> ItemsView[K, V]:
        """A view of the pairs."""
        return _Items(self)

    @orca.local
    def copy(self) -> dict[K, V]:
        """A plain copy."""
        return self._plain()

    @orca.local
    def __copy__(self) -> dict[K, V]:
        return self._plain()

    @classmethod
    @orca.local
    def fromkeys(cls, keys: Iterable[Any], value: Any = None, /) -> Any:
        """An object with these keys, and one value for all."""
        made = cls()
        made.update(dict.fromkeys(keys, value))
        return made

    # Writes.

    @orca.write
    def __setitem__(self, key: K, value: V, /) -> None:
        self._items[key] = value

    @orca.write
    def __delitem__(self, key: K, /) -> None:
        del self._items[key]

    if TYPE_CHECKING:

        @property
        def pop(self) -> Pop[K, V]: ...

    else:

        @orca.write
        def pop(self, key: K, /, *default: Any) -> V | Any:
            """Take out a key, and return its value, or the default; raises KeyError."""
            return self._items.pop(key, *default)

    @orca.write
    def popitem(self) -> tuple[K, V]:
        """Take out the pair that was put in last, and return it; raises KeyError."""
        return self._items.popitem()

    if TYPE_CHECKING:

        @property
        def setdefault(self) -> SetDefault[K, V]: ...

    else:

        @orca.write
        def setdefault(self, key: K, default: Any = None, /) -> V | Any:
            """The value of a key, which is set to the default if it is missing."""
            return self._items.setdefault(key, default)

    @orca.write
    def clear(self) -> None:
        """Take out all pairs."""
        self._items.clear()

    @orca.write
    def _update(self, other: dict[K, V]) -> None:
        self._items.update(other)

    @sends(_update)
    def update(
        self, other: Mapping[K, V] | Iterable[tuple[K, V]] = (), /, **named: V
    ) -> tuple[dict[Any, V]]:
        """Set the pairs of a mapping, or of an iterable, in one write."""
        return (dict(plain(other), **named),)

    # Operators.

    @orca.local
    def __or__(self, other: Any, /) -> Any:
        return self._plain() | plain(other)

    @orca.local
    def __ror__(self, other: Any, /) -> Any:
        return plain(other) | self._plain()

    @orca.local
    def __ior__(self, other: Mapping[K, V] | Iterable[tuple[K, V]], /) -> Self:
        self.update(other)
        return self

    __hash__ = None  # type: ignore[assignment]

    @orca.local
    def __eq__(self, other: object, /) -> bool:
        return bool(self._plain() == plain(other))

    def __repr__(self) -> str:
        return repr(self._items)


class _Keys(KeysView[K]):
    """The keys, in their order or from the last one on."""

    def __init__(self, mapping: Any) -> None:
        super().__init__(mapping)
        self._of: Dict[K, Any] = mapping

    def __reversed__(self) -> Iterator[K]:
        return reversed(self._of)

    def __repr__(self) -> str:
        return f"dict_keys({list(self)!r})"


class _Values(ValuesView[V]):
    """The values at one place in the order, for each iteration."""

    def __init__(self, mapping: Any) -> None:
        super().__init__(mapping)
        self._of: Dict[Any, V] = mapping

    def __iter__(self) -> Iterator[V]:
        return iter(self._of._plain().values())

    def __reversed__(self) -> Iterator[V]:
        return reversed(self._of._plain().values())

    def __contains__(self, value: object) -> bool:
        return value in self._of._plain().values()

    def __repr__(self) -> str:
        return f"dict_values({list(self)!r})"


class _Items(ItemsView[K, V]):
    """The pairs likewise."""

    def __init__(self, mapping: Any) -> None:
        super().__init__(mapping)
        self._of: Dict[Any, V] = mapping

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return iter(self._of._plain().items())

    def __reversed__(self) -> Iterator[tuple[K, V]]:
        return reversed(self._of._plain().items())

    def __repr__(self) -> str:
        return f"dict_items({list(self)!r})"


MutableMapping.register(Dict)
