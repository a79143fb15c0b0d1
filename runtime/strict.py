"""`ORCALIKE_CHECK=strict`: mistakes that cost too much to look for always.

An attribute of a shared object that is assigned from outside of its operations is an error, and so
is a read that changes the state (which `task` compares, for replicas that are marked STRICT).
"""

from __future__ import annotations

from typing import Any

from orcalike.runtime.errors import ReplicaDivergence
from orcalike.runtime.replica import replica_of, runs_here

_guarded: set[type[Any]] = set()


def guard_attributes(cls: Any) -> None:
    """Have `cls` refuse assignments from outside to objects that are shared."""
    if cls in _guarded:
        return
    _guarded.add(cls)
    set_plainly, delete_plainly = cls.__setattr__, cls.__delattr__

    def checked_set(self: object, name: str, value: object) -> None:
        _refuse_outside(self, name)
        set_plainly(self, name, value)

    def checked_delete(self: object, name: str) -> None:
        _refuse_outside(self, name)
        delete_plainly(self, name)

    cls.__setattr__ = checked_set
    cls.__delattr__ = checked_delete


def _refuse_outside(shared: object, name: str) -> None:
    replica = replica_of(shared)
    if replica is not None and replica.object is not None and not runs_here(replica):
        raise ReplicaDivergence(
            f"{name!r} of {replica.name!r} was assigned from outside: the other replicas would not "
            "have it; change it in a @write operation"
        )
