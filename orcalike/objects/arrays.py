"""A NumPy array that all members share; it needs NumPy, in each of them."""

from __future__ import annotations

from operator import index as index_of
from typing import Any, Self, SupportsIndex

from orcalike.objects import language as orca
from orcalike.objects.sending import sends

try:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"orcalike.objects.Array needs {missing.name}: pip install 'orcalike[numpy]'",
        name=missing.name,
    ) from None


@orca.shared
class Array:
    """An array; reads of it give copies, and each operation on it, or on a part, is one write.

    `a[i:j] = values` sets a part and `a.add(values, np.s_[i:j])` adds to it; `a[i:j] += values` is a
    read and then a write, and would lose what others add in between.
    """

    def __init__(self, values: ArrayLike, dtype: DTypeLike | None = None) -> None:
        self._data: NDArray[Any] = np.array(values, dtype)

    # Reads.

    @orca.read
    def _plain(self) -> NDArray[Any]:
        return self._data.copy()

    @orca.read
    def __getitem__(self, index: Any, /) -> Any:
        found = self._data[index]
        return found.copy() if isinstance(found, np.ndarray) else found

    @orca.read
    def __len__(self) -> int:
        return len(self._data)

    @property
    @orca.read
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return self._data.shape

    @property
    @orca.read
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._data.dtype

    @property
    @orca.read
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self._data.ndim

    @property
    @orca.read
    def size(self) -> int:
        """How many elements it has."""
        return self._data.size

    @orca.local
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """A plain array with what it holds at one place in the order: for `np.asarray(a)`."""
        plain = self._plain()
        return plain if dtype is None else plain.astype(dtype)

    # Writes.

    @orca.write
    def _set(self, index: Any, values: Any) -> None:
        self._data[_back(index)] = values

    @orca.write
    def _add(self, index: Any, values: Any) -> None:
        self._data[_back(index)] += values

    @orca.write
    def _multiply(self, index: Any, values: Any) -> None:
        self._data[_back(index)] *= values

    @orca.write
    def _minimum(self, index: Any, values: Any) -> None:
        place = _back(index)
        self._data[place] = np.minimum(self._data[place], values)

    @orca.write
    def _maximum(self, index: Any, values: Any) -> None:
        place = _back(index)
        self._data[place] = np.maximum(self._data[place], values)

    @sends(_set)
    def set(self, values: ArrayLike, index: Any = ...) -> tuple[Any, Any]:
        """Set the elements at an index, or all."""
        return _ready(index), _values(values)

    @sends(_add)
    def add(self, values: ArrayLike, index: Any = ...) -> tuple[Any, Any]:
        """Add to the elements at an index, or to all."""
        return _ready(index), _values(values)

    @sends(_multiply)
    def multiply(self, values: ArrayLike, index: Any = ...) -> tuple[Any, Any]:
        """Multiply the elements at an index, or all."""
        return _ready(index), _values(values)

    @sends(_minimum)
    def minimum(self, values: ArrayLike, index: Any = ...) -> tuple[Any, Any]:
        """Keep the smaller of each element at an index, or of all, and a value."""
        return _ready(index), _values(values)

    @sends(_maximum)
    def maximum(self, values: ArrayLike, index: Any = ...) -> tuple[Any, Any]:
        """Keep the larger of each element at an index, or of all, and a value."""
        return _ready(index), _values(values)

    @orca.local
    def __setitem__(self, index: Any, values: ArrayLike, /) -> None:
        self.set(values, index)

    @orca.local
    def __iadd__(self, values: ArrayLike, /) -> Self:
        self.add(values)
        return self

    @orca.local
    def __imul__(self, values: ArrayLike, /) -> Self:
        self.multiply(values)
        return self

    def __repr__(self) -> str:
        return f"orcalike {self._data!r}"


def _values(values: ArrayLike) -> Any:
    """Values as they travel: an array, or one number, whose type gives way to the array's if it is Python's."""
    if type(values) in (bool, int, float, complex):
        return values
    made = np.asarray(values)
    return made if made.ndim else made[()]


def _ready(index: Any) -> Any:
    """An index as it travels: a slice is a tuple with a mark, and so is `...`."""
    if isinstance(index, tuple):
        return ("parts", *map(_ready, index))
    if isinstance(index, slice):
        return ("slice", *map(_whole, (index.start, index.stop, index.step)))
    if index is Ellipsis:
        return ("all",)
    if index is None:
        return ("new",)
    if isinstance(index, bool | np.bool_):  # all or nothing, and neither 1 nor 0
        return bool(index)
    if isinstance(index, list | range | np.ndarray | Array):
        return np.asarray(index)
    try:
        return _whole(index)
    except TypeError:
        raise IndexError(
            "an array is indexed by integers, slices, `...`, None, and arrays or lists of integers "
            f"or booleans, not by {type(index).__name__}"
        ) from None


def _whole(number: SupportsIndex | None) -> int | None:
    return None if number is None else index_of(number)


def _back(index: Any) -> Any:
    """The index that `_ready` made ready."""
    if not isinstance(index, tuple):
        return index
    kind, *rest = index
    if kind == "parts":
        return tuple(map(_back, rest))
    if kind == "slice":
        return slice(*rest)
    return Ellipsis if kind == "all" else None
