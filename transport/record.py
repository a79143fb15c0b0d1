"""Frozen values with named fields, as `dataclass(frozen=True)` makes them, at no cost when imported.

A process that joins a group has more than sixty kinds of them: messages, events, effects, lines. For
each, `dataclasses` writes the source of six methods and compiles it, most of a millisecond; all
that is paid by each process of a run, before its first line. Here one set of methods serves all kinds.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, ClassVar, Never, Self, TypeVar, dataclass_transform


@dataclass_transform(frozen_default=True)
class Frozen:
    """A value whose fields are the annotations of its class, in their order; of the same kind and equal, or not.

    Fields are given by position or by name; a value in the class is the default. Patterns match
    by position, too. It has no public name besides its fields: the values that programs see are of this kind.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, kw_only: bool = False, eq: bool = True) -> None:
        # `kw_only` is for type checkers: here fields may be given by name in any case.
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]
        own = [
            name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")
        ]
        for name in own:
            if isinstance(cls.__dict__.get(name), FunctionType):
                raise TypeError(
                    f"{cls.__name__}.{name} would be a method: give it as a staticmethod"
                )
        cls.__match_args__ = (*cls.__match_args__, *own)  # type: ignore[misc]  # it is for patterns

    def __init__(self, *values: Any, **named: Any) -> None:
        """Raises TypeError if a field is missing, is there twice, or is none of its class."""
        names = self.__match_args__
        if len(values) == len(names) and not named:
            self.__dict__.update(zip(names, values, strict=True))
            return
        given = dict(zip(names, values, strict=False))
        if len(values) > len(names) or not given.keys().isdisjoint(named):
            raise TypeError(f"{type(self).__name__} has the fields {names}, each once")
        given |= named
        if len(given) != len(names) or named:
            for name in names:
                if name not in given and not hasattr(type(self), name):
                    raise TypeError(f"{type(self).__name__} lacks {name!r}")
            if unknown := given.keys() - set(names):
                raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: Any) -> Never:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} stays as it is")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} stays as it is")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or values_of(self) == values_of(other)

    def __hash__(self) -> int:
        return hash((type(self), values_of(self)))

    def __repr__(self) -> str:
        pairs = zip(self.__match_args__, values_of(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


_FrozenT = TypeVar("_FrozenT", bound=Frozen)


def values_of(value: Frozen) -> tuple[Any, ...]:
    """The fields' values, in their order."""
    return tuple([getattr(value, name) for name in value.__match_args__])


def replaced(value: _FrozenT, **changes: Any) -> _FrozenT:
    """The same with other values in these fields."""
    fields = dict(zip(value.__match_args__, values_of(value), strict=True))
    return type(value)(**(fields | changes))


class Record(Frozen):
    """A value of orcalike's own, which names its fields and is copied with changes."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Of the fields, in their order."""
        return cls.__match_args__

    def values(self) -> tuple[Any, ...]:
        """Of the fields, in their order."""
        return values_of(self)

    def named(self) -> dict[str, Any]:
        """The fields, by name."""
        return dict(zip(self.__match_args__, values_of(self), strict=True))

    def replace(self, **changes: Any) -> Self:
        """The same with other values in these fields."""
        return replaced(self, **changes)
