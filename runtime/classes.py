"""What was declared: shared classes, their operations' places, and atomic functions.

A class is known to the group by its name, and an operation by its place in the sorted list of its
class's operations (features D11, D12). Only what is declared here can be invoked by a message
(D18); a name that is not declared yet is waited for with `on_declared`, never imported.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from orcalike.runtime.registered import title_of
from orcalike.runtime.source import update_digest
from orcalike.transport.degree import Resilience, degree_of, least_of
from orcalike.transport.record import Record
from orcalike.transport.wire.digest import blake2b

DIGEST_SIZE = 16


if TYPE_CHECKING:

    class Declared(Protocol):
        """An operation or an atomic function, as far as it is known by what was declared."""

        name: str
        function: Any
        guard: Any
        undo: bool
        resilience: Resilience | None
        degree: int
        title: str

        @property
        def kind(self) -> Literal["read", "write", "atomic"]:
            """What it was declared as."""

    class DeclaredOperation(Declared, Protocol):
        """An operation, as far as it is known by its class: an `operation.Operation`."""

        index: int
        popup: bool
        info: ClassInfo | None

        def as_popup(self) -> Self:
            """The same operation, in pop-up threads for a while."""

    class DeclaredAtomic(Declared, Protocol):
        """An atomic function, as far as it is known by what was declared: an `operation.Atomic`."""

        info: AtomicInfo | None


class ClassInfo(Record, eq=False):
    """A shared class as the group knows it."""

    cls: type[Any]
    name: str
    """`module:qualname`, as `import_name` gives it."""
    operations: tuple[DeclaredOperation, ...]
    """By name; each one's `index` is its place here."""
    digest: bytes
    """Of all that must be the same at each member for its replicas to stay alike."""
    resilience: Resilience | None
    """The class's own degree, or None for the group's."""
    hooks: frozenset[str]
    """Which of `member_left`, `member_joined`, `snapshot` and `restore` it defines."""
    init: FunctionType | None
    """Its `__init__`, or None when no class of its has one; see `constructor_arguments`."""
    invariants: tuple[FunctionType, ...] = ()
    """The methods that look at an object after each write, by name."""

    @property
    def degree(self) -> int:
        """The class's own degree as a number; -1 where it is the group's."""
        return -1 if self.resilience is None else degree_of(self.resilience)

    @property
    def least(self) -> int:
        """The smallest degree above 0 that a write has of its own or by its class; 0 for none."""
        return least_of(op.degree for op in self.operations if op.kind == "write")

    def inherited(self, operation: DeclaredOperation, name: str) -> DeclaredOperation:
        """The class's own operation for one that it has from a base, which has another place there.

        `super().put(...)` in a `@local` method calls that of the base. `name` is the object's; raises
        TypeError if the class has it not, or another one in its place.
        """
        for own in self.operations:
            if own.function is operation.function:
                return own
        cls = title_of(self.cls)
        raise TypeError(
            f"{title_of(operation.function)} is no operation of {cls}, the class of {name!r}: "
            f"declare one that calls it, or call one that {cls} has"
        )

    def blank(self) -> Any:
        """An object of the class whose `__init__` has not run."""
        cls: Any = self.cls
        return cls.__new__(cls)


class AtomicInfo(Record, eq=False):
    """An atomic function as the group knows it."""

    atomic: DeclaredAtomic
    name: str
    """`module:qualname`, as `import_name` gives it."""

    digest: bytes
    """Of its options, body and guard; setting the guard declares the function anew."""


def digest_of(words: list[str], functions: list[FunctionType]) -> bytes:
    """16 bytes of BLAKE2b over some words and the syntax of some functions, in this order."""
    digest = blake2b(digest_size=DIGEST_SIZE)
    digest.update("\0".join(words).encode())
    for function in functions:
        update_digest(digest, function)
    return digest.digest()


_classes: dict[str, ClassInfo] = {}
_by_class: dict[type[Any], ClassInfo] = {}
_atomics: dict[str, AtomicInfo] = {}
lookup_atomic: Callable[[str], AtomicInfo | None] = _atomics.get
"""The atomic function of a name, or None while it is not declared; each call of one asks for it."""
_listeners: list[Callable[[ClassInfo | AtomicInfo], None]] = []


def declare(info: ClassInfo | AtomicInfo) -> None:
    """Registers a class or an atomic function and notifies those that wait for one.

    A name that is declared again (a module that was reloaded, a class in a function that was
    called again) means the newest from now on; objects of the older class keep their own.
    """
    if isinstance(info, ClassInfo):
        _classes[info.name] = info
        _by_class[info.cls] = info
    else:
        _atomics[info.name] = info
        info.atomic.info = info
    for listener in _listeners.copy():
        listener(info)


def lookup(name: str) -> ClassInfo | None:
    """The shared class of this name, or None while it is not declared."""
    return _classes.get(name)


def lookup_class(cls: type[Any]) -> ClassInfo | None:
    """What was declared of this very class; a subclass without `@shared` has nothing."""
    return _by_class.get(cls)


def on_declared(listener: Callable[[ClassInfo | AtomicInfo], None]) -> Callable[[], None]:
    """Calls the listener after each declaration, in the declaring thread, until cancelled.

    To wait for a name, subscribe first and looks it up then, so that it is not missed.
    Returns the function that ends the subscription.
    """
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)
