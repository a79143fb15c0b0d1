"""Methods that are made of other functions, as `help` and editors show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature


class Described:
    """A descriptor that has the name, the text and the parameters of a function."""

    def __init__(self, body: Callable[..., Any], gives: Callable[..., Any] | None = None) -> None:
        """It returns what `gives` does, or what a body of steps gives at its end."""
        self._body, self._gives = body, gives or body
        self.__doc__ = body.__doc__
        self.__name__ = body.__name__
        self.__qualname__ = body.__qualname__
        self.__module__ = body.__module__

    def signature(self, *, bound: bool) -> Signature:
        """What `inspect` shows; `bound`: of a method of one object, without `self`."""
        import inspect  # not at the top: it takes long

        signature = inspect.signature(self._body)
        returned = inspect.signature(self._gives).return_annotation
        if isinstance(returned, str) and returned.startswith("Steps["):
            returned = returned.removeprefix("Steps[").removesuffix("]")
        parameters = list(signature.parameters.values())[1 if bound else 0 :]
        return signature.replace(parameters=parameters, return_annotation=returned)

    @property
    def __signature__(self) -> Signature:
        return self.signature(bound=False)

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return annotations_of(self.signature(bound=False))

    @property
    def __globals__(self) -> dict[str, Any]:
        """In which the names of the annotations are looked up."""
        found: dict[str, Any] = self._body.__globals__
        return found

    def lacks(self, name: str) -> str:
        """Why a method of one object has no attribute of that name, behind the method's own."""
        return f"has no attribute {name!r}"


class BoundDescribed:
    """Such a method of one object."""

    __slots__ = ("_method", "_object")

    if TYPE_CHECKING:  # at run time these would be the annotations of each method
        _method: Any
        """The `Described`; of that type a type checker would take it for a descriptor of this class."""
        _object: Any

    @property
    def __name__(self) -> str:
        return str(self._method.__name__)

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        text: str | None = self._method.__doc__
        return text

    @property
    def __self__(self) -> Any:
        """The object."""
        return self._object

    def __eq__(self, other: object) -> bool:
        """As methods are: the same one of the same object."""
        if not isinstance(other, BoundDescribed):
            return NotImplemented
        return self._object is other._object and self._method is other._method

    def __hash__(self) -> int:
        return hash((id(self._object), id(self._method)))

    @property
    def __signature__(self) -> Signature:
        method: Described = self._method
        return method.signature(bound=True)

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return annotations_of(self.__signature__)

    @property
    def __globals__(self) -> dict[str, Any]:
        method: Described = self._method
        return method.__globals__

    if not TYPE_CHECKING:  # a type checker would take each name for an attribute

        def __getattr__(self, name: str) -> Any:
            if name == "__qualname__":  # no property may have that name
                return self._method.__qualname__
            if name.startswith("_"):  # also of an instance that `copy` has not filled yet
                raise AttributeError(name)
            title = f"{type(self._object).__name__}.{self.__name__}"
            raise AttributeError(f"{title} {self._method.lacks(name)}")


def annotations_of(signature: Signature) -> dict[str, Any]:
    """The annotations of parameters and of what is returned, as a function has them."""
    found = {name: each.annotation for name, each in signature.parameters.items()}
    found["return"] = signature.return_annotation
    return {name: each for name, each in found.items() if each is not signature.empty}
