"""Which survivors may go on: the quorum rule (H1; A14, H06, H07).

Pure data in, a ruling out. Any two sets that may form the view after V share a member that lives,
and where writes have a degree, each such set meets every set of holders.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from orcalike.transport.application_state import State
from orcalike.transport.record import Record
from orcalike.transport.view import Member, View


class Ruling(Record):
    """Whether a set of members may form the next primary view."""

    granted: bool
    rule: str = ""
    """Which part of the rule is not met, for people."""
    missing: tuple[Member, ...] = ()
    """The members that are neither there nor certainly dead: the group waits for them."""


def rule_on(
    view: View,
    present: AbstractSet[int],
    dead: AbstractSet[int],
    degree: int,
    state: Mapping[int, State],
    *,
    sure: bool = True,
) -> Ruling:
    """Whether those `present` may form the view after `view`; all sets hold incarnations.

    A member that has promised is present, even if it has died since; but its state has died with it.
    `dead` are certainly dead (H13), `degree` is R, the least degree of 1 or more of any operation
    (0 if there is none), and `state` says what those present know of the application's state.
    `sure`: one of those present vouches that the dead decided on no other view without it
    (`lease`); if none does, certain deaths do not help.
    """
    size = len(view.members)
    here = [member for member in view.members if member.incarnation in present]
    missing = tuple(
        member
        for member in view.members
        if member.incarnation not in present and member.incarnation not in dead
    )
    if degree >= 1 and len(here) < size - degree:
        why = f"with resilience {degree}, {size - degree} of {size} members must be there"
        return Ruling(False, why, missing or _without(view, present))
    half = 2 * len(here) == size and view.sequencer.incarnation in present
    if not (2 * len(here) > size or half or (sure and not missing)):
        why = f"{len(here)} of {size} members are no majority"
        return Ruling(False, why, missing)
    known = [state[each] for each in sorted(present - dead) if each in state]
    lost = all(member.witness or member.incarnation in dead for member in view.members)
    if State.WHOLE not in known and not (lost and State.EMPTY in known):
        why = "no member that is there has the whole state"
        return Ruling(False, why, missing or _without(view, present))
    return Ruling(True)


def _without(view: View, present: AbstractSet[int]) -> tuple[Member, ...]:
    return tuple(member for member in view.members if member.incarnation not in present)
