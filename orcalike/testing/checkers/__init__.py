"""The checkers: one class for each invariant (docs/internals/invariants.md) that needs no objects."""

from orcalike.testing.checkers.durability import Durability, NoDirtyRead, NoSilentLoss
from orcalike.testing.checkers.ends import Bounded, Liveness
from orcalike.testing.checkers.order import (
    AtMostOnce,
    ExactlyOnce,
    HappensAfter,
    NoCreation,
    NoGap,
    SenderOrder,
    TotalOrder,
)
from orcalike.testing.checkers.views import (
    Fencing,
    InView,
    JoinState,
    MembershipInOrder,
    OnePrimary,
    ViewSanity,
    VirtualSynchrony,
)
from orcalike.testing.history import Checker

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
"""In the order in which they are told: what is more particular comes first."""

__all__ = ["CHECKERS"]
