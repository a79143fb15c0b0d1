"""The checkers: one class for each invariant (docs/internals/invariants.md) that needs no objects."""

from orcalike.simulator.checkers.durability import Durability, NoDirtyRead, NoSilentLoss
from orcalike.simulator.checkers.facts import Checker
from orcalike.simulator.checkers.liveness import Bounded, Liveness
from orcalike.simulator.checkers.order import (
    AtMostOnce,
    ExactlyOnce,
    HappensAfter,
    NoCreation,
    NoGap,
    SenderOrder,
    TotalOrder,
)
from orcalike.simulator.checkers.views import (
    Fencing,
    InView,
    JoinState,
    MembershipInOrder,
    OnePrimary,
    ViewSanity,
    VirtualSynchrony,
)

CHECKERS: tuple[type[Checker], ...] = (
    NoCreation,
    NoGap,
    TotalOrder,
    AtMostOnce,
    SenderOrder,
    HappensAfter,
    Fencing,
    Durability,
    NoDirtyRead,
    InView,
    ViewSanity,
    OnePrimary,
    MembershipInOrder,
    VirtualSynchrony,
    JoinState,
    Bounded,
    NoSilentLoss,
    ExactlyOnce,
    Liveness,
)
"""In the order in which they are called: what is more particular comes first."""

__all__ = ["CHECKERS"]
