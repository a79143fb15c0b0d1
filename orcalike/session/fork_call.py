"""`group.fork`, in three ways: a process that runs a function as another member (Orca's `fork`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, TypeVarTuple

from orcalike.errors import DeclarationError, ForkFailed
from orcalike.runtime import registered
from orcalike.runtime.forks import Forks
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.invocation_coroutine import InvocationCoroutine
from orcalike.runtime.replica import refuse_to_wait
from orcalike.transport.drivers.deferral import held
from orcalike.transport.view import Member
from orcalike.transport.wording import listed

Ts = TypeVarTuple("Ts")


if TYPE_CHECKING:

    class Joinable(Protocol):
        """A group, as far as others can join it."""

        @property
        def address(self) -> str:
            """Where they do; "" if none can."""

        @property
        def me(self) -> Member:
            """This member."""

        @property
        def members(self) -> tuple[Member, ...]:
            """Those with a rank."""


Group = TypeVar("Group", bound="Joinable")


class Fork(Generic[Group]):
    """`group.fork`, in three ways."""

    def __init__(self, group: Group, forks: Forks) -> None:
        self._group, self._forks = group, forks

    @held
    def __call__(
        self,
        function: Callable[[Group, *Ts], object],
        /,
        *args: *Ts,
        on: int | None = None,
    ) -> Member:
        """Start a process of the program that runs `function(group, *args)` as a member of this group.

        Returns the new member, as soon as it has joined; what the function returns is dropped. The
        process runs on the host of the member of rank `on`, this one if it is left out, and ends with
        that one. The arguments travel as those of operations do: shared objects by reference.

        Raises DeclarationError if the function is not registered (`orca.register`), ForkFailed if there is
        no such rank, or if no process could be started that is a member: what it says names the reason.
        """
        refuse_to_wait("fork")
        return self.nowait(function, *args, on=on).result()

    def aio(
        self,
        function: Callable[[Group, *Ts], object],
        /,
        *args: *Ts,
        on: int | None = None,
    ) -> InvocationCoroutine[Member]:
        """The same, for coroutines; the call is sent at once, or when there is room for it."""
        return self._forks.await_with_room(partial(self.nowait, function, *args, on=on))

    def nowait(
        self,
        function: Callable[[Group, *Ts], object],
        /,
        *args: *Ts,
        on: int | None = None,
    ) -> Invocation[Member]:
        """The same, without waiting."""
        name = _registered_name(function)
        group = self._group
        if not group.address:
            raise ForkFailed(
                "this group of one has no address at which another process could join: register the "
                "function before join(), or give join(listen=...)"
            )
        return self._forks.invoke(_member(group, on), name, args)


def _registered_name(function: object) -> str:
    for name, known in registered.functions.items():
        if known is function:
            return name
    raise DeclarationError(
        f"{function!r} is not registered: write @orcalike.register above it; it stands in a module, and "
        "takes the group as its first argument"
    )


def _member(group: Joinable, rank: int | None) -> Member:
    """The member that shall host the process."""
    if rank is None:
        return group.me
    for member in group.members:
        if member.rank == rank:
            return member
    ranks = listed([member.rank for member in group.members])
    raise ForkFailed(
        f"there is no member of rank {rank!r} that could start a process: there are {ranks}"
    )
