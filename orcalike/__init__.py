"""orcalike: ordinary Python objects, shared by processes, in one order.

    import orcalike as orca

    @orca.shared
    class Counter: ...

    with orca.join() as group:
        hits = group.share(Counter, "hits")

Reads run on the local replica; writes are ordered, and run at every replica in that order.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from orcalike._version import __version__

try:
    from orcalike.declare.decorators import atomic, invariant, local, read, shared, write
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("orcalike."):
        raise
    raise ImportError(
        f"{error.name} is not compiled: this is a source tree that was not built; run `make build` "
        "there and use its .venv/bin/python, or install it with `pip install .`"
    ) from error
from orcalike.errors import (
    AuthenticationError,
    BlockingInLoop,
    ClassMismatch,
    ConfigMismatch,
    DataLossPossible,
    DeclarationError,
    Expelled,
    ForkFailed,
    GroupClosed,
    GuardFalse,
    InsecureConfig,
    InvariantBroken,
    InvocationCancelled,
    InvocationTimeout,
    JoinFailed,
    NestedWrite,
    NotEnoughMembers,
    NotPrimary,
    NotSerializable,
    ObjectDropped,
    OrcalikeError,
    ProtocolError,
    ReplicaDivergence,
    StackError,
    TooManyWaiting,
    WindowFull,
)
from orcalike.runtime.durations import Duration
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.registered import register
from orcalike.session.lazy_names import attributes as _lazy_attributes
from orcalike.session.log import Fallback as _Fallback
from orcalike.transport.degree import Resilience

if TYPE_CHECKING:
    from orcalike.group import Group
    from orcalike.objects.manager import Manager
    from orcalike.objects.progress_bar import progress
    from orcalike.runtime.moment import caller, now, position, random
    from orcalike.session.event_loop import run
    from orcalike.session.group_info import Blocked, GroupInfo
    from orcalike.session.joining import Joining
    from orcalike.transport.stability import Stability
    from orcalike.transport.view import Member, View

_P = ParamSpec("_P")
_R = TypeVar("_R")

logging.getLogger("orcalike").addHandler(_Fallback())


def join(
    name: str | None = None,
    *,
    seeds: str | Sequence[str] | None = None,
    listen: str | None = None,
    size: int | None = None,
    resilience: Resilience = 0,
    degree: Literal["required", "available"] = "required",
    blocked: str = "wait",
    stack: str | None = None,
    timeout: Duration | None = None,
    key: bytes | str | os.PathLike[str] | None = None,
    at: str | None = None,
    check: str | None = None,
    advertise: str | None = None,
    interface: str | None = None,
    insecure: bool = False,
    freshness: Duration = "1ms",
) -> Joining:
    """Join a group: `with join() as group:`, or `async with join() as group:`.

    In a launched program it is the program's group, and all ranks that have not ended are waited for. With `seeds` it
    is the group that one of these addresses is in, tried until `timeout` (seconds, or a text such as "10s"). With
    `listen="unix:PATH"` or `"tcp:HOST:PORT"` and no seeds it is a new group that others can join through
    `group.address`. With `at="unix:PATH"` workers that are all alike meet in the directory PATH: the first makes the
    group, the others join it, whichever end. Else it is a group of one, in the process. `size` waits until so many
    members are in. `resilience` is the degree r of what has none of its own. With `degree="available"` it counts as far as the
    group has members for it, MIN(r, members - 1); else its writes wait until there are r + 1, or raise with `blocked="raise"`,
    as all calls do then while the group may not go on. `stack` has other layers than the usual ones. Each `name`, of 200 bytes
    at the most, is a group with an order of its own. `key`, 32 bytes or
    the path of a file of mode 0600 that holds them, is what TCP connections prove to each other. Others reach this
    process at `advertise` ("10.0.0.5" or "10.0.0.5:7471"), else at the address of `interface` ("eth1" or
    "10.0.0.0/8"), else at the one from which it reaches the seeds; names of hosts stand in `seeds` and `listen` only.
    `insecure=True`, with `ORCALIKE_INSECURE=1` in the environment, lets TCP do without a key. `check` has the words of
    `ORCALIKE_CHECK`, "shadow" for one: what costs too much to be looked for always. Over an order in shared memory
    what others write is applied here within `freshness`, or as a read asks for it; at once if something waits.

    Raises JoinFailed, ConfigMismatch, InsecureConfig, StackError; ValueError for arguments that contradict each other; as
    `with` on the thread of a running event loop BlockingInLoop.
    """
    from orcalike.session.joining import Joining  # not at the top: see _OF_GROUPS
    from orcalike.session.options import make_options

    options = partial(
        make_options,
        name,
        seeds=seeds,
        listen=listen,
        size=size,
        resilience=resilience,
        degree=degree,
        blocked=blocked,
        stack=stack,
        timeout=timeout,
        key=key,
        at=at,
        check=check,
        advertise=advertise,
        interface=interface,
        insecure=insecure,
        freshness=freshness,
    )
    return Joining(options)


def _with_parameters_of(
    function: Callable[_P, object],
) -> Callable[[Callable[..., _R]], Callable[_P, _R]]:
    """Give a function the parameters of another one, for type checkers and for `help`."""

    def decorate(other: Callable[..., _R]) -> Callable[_P, _R]:
        assert isinstance(function, FunctionType)
        shown = FunctionType(function.__code__, {}, other.__name__, function.__defaults__)
        shown.__kwdefaults__ = function.__kwdefaults__
        shown.__annotations__ = function.__annotations__ | other.__annotations__
        other.__wrapped__ = shown  # type: ignore[attr-defined]
        return other

    return decorate


@_with_parameters_of(join)
def connect(*args: Any, **kwargs: Any) -> Group:
    """Join a group as `join` does, without a block: for scripts, servers and notebooks.

    The group is left by `group.close()`, or when the interpreter ends. Takes and raises what `join`
    does; in a coroutine BlockingInLoop: use `async with join()` there.
    """
    from orcalike.session.joining import connect as enter  # not at the top: see _OF_GROUPS

    return enter(join(*args, **kwargs))


# What only the members of a group need takes most of the time of an import: `join` imports it, and
# so does the first use of one of these names.
_OF_GROUPS = {
    "Blocked": "orcalike.session.group_info",
    "Group": "orcalike.group",
    "GroupInfo": "orcalike.session.group_info",
    "Manager": "orcalike.objects.manager",
    "Member": "orcalike.transport.view",
    "Stability": "orcalike.transport.stability",
    "View": "orcalike.transport.view",
    "caller": "orcalike.runtime.moment",
    "now": "orcalike.runtime.moment",
    "position": "orcalike.runtime.moment",
    "progress": "orcalike.objects.progress_bar",
    "random": "orcalike.runtime.moment",
    "run": "orcalike.session.event_loop",
}

_SUBMODULES = ("messages", "objects", "testing")


if not TYPE_CHECKING:  # a type checker would believe that every name is there
    __getattr__ = _lazy_attributes(__name__, _OF_GROUPS, _SUBMODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *__all__})


__all__ = [
    "AuthenticationError",
    "Blocked",
    "BlockingInLoop",
    "ClassMismatch",
    "ConfigMismatch",
    "DataLossPossible",
    "DeclarationError",
    "Expelled",
    "ForkFailed",
    "Group",
    "GroupClosed",
    "GroupInfo",
    "GuardFalse",
    "InsecureConfig",
    "InvariantBroken",
    "Invocation",
    "InvocationCancelled",
    "InvocationTimeout",
    "JoinFailed",
    "Manager",
    "Member",
    "NestedWrite",
    "NotEnoughMembers",
    "NotPrimary",
    "NotSerializable",
    "ObjectDropped",
    "OrcalikeError",
    "ProtocolError",
    "ReplicaDivergence",
    "Stability",
    "StackError",
    "TooManyWaiting",
    "View",
    "WindowFull",
    "__version__",
    "atomic",
    "caller",
    "connect",
    "invariant",
    "join",
    "local",
    "now",
    "position",
    "progress",
    "random",
    "read",
    "register",
    "run",
    "shared",
    "write",
]
