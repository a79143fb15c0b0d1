"""What is called: operations, atomic functions and hooks, as far as calls and invocations take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol


class Titled(Protocol):
    """What has a name for people."""

    @property
    def title(self) -> str:
        """`Class.operation`, or a function's name."""


class Callee(Titled, Protocol):
    """What a `Call` runs: an operation, an atomic function, or a hook."""

    @property
    def function(self) -> Callable[..., Any]:
        """What was decorated."""

    @property
    def guard(self) -> Callable[..., bool] | None:
        """It runs when this is true of the same arguments."""

    @property
    def undo(self) -> bool:
        """Whether the objects are put back if it raises."""


class Invoked(Titled, Protocol):
    """What an `Invocation` calls: an operation or an atomic function."""

    @property
    def kind(self) -> Literal["read", "write", "atomic"]:
        """How it was declared."""


class InvokedOn(Protocol):
    """The object that an `Invocation` is for: a replica."""

    @property
    def name(self) -> str:
        """Of the object."""
