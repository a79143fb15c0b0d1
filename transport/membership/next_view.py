"""Which members the next view has: those that stay, those that come, and those that may not go yet."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from orcalike.transport.application_state import State
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.membership.ballot import Ballot
from orcalike.transport.view import Member, View, next_lineage


class Plan(NamedTuple):
    """The next view, and what becomes of processes that asked to join and are not in it."""

    view: View
    waiting: list[Member]
    """Their predecessors are in the view still: they join when those are out."""
    denied: list[Member]
    """All members leave at once: none is left that could give a joiner its state."""


def next_view(
    ballot: Ballot,
    dead: AbstractSet[int],
    expelled: AbstractSet[int],
    leaving: AbstractSet[int],
    joining: Iterable[Member],
) -> Plan:
    """The view after a ballot's, of the members that have reported, and those that join."""
    view, joiners, denied = ballot.view, list(joining), list[Member]()
    staying = [view.members[position] for position in sorted(ballot.reports)]
    loses = ballot.loses_state(leaving, dead)
    if not loses and all(member.incarnation in leaving for member in staying):
        joiners, denied = [], joiners
    kept = _last_with_state(ballot, dead, expelled, leaving, joiners, loses=loses)
    gone = (leaving | expelled | dead) - kept
    if ballot.reset and not ballot.with_state(dead, State.BEHIND):
        gone |= ballot.without_state()  # they begin anew, with the others
    members = [member for member in staying if member.incarnation not in gone]
    ranks = {member.rank for member in members}
    free = (rank for rank in range(MEMBERS_MAX) if rank not in ranks)
    asked = {member.rank for member in joiners}
    waiting = []
    for member in joiners:
        if member.rank is None and not member.witness:
            rank = next(rank for rank in free if rank not in asked)
            member = Member(member.address, member.incarnation, rank)
        elif member.rank is not None and member.rank in ranks:
            waiting.append(member)
            continue
        members.append(member)
    lineage = next_lineage(view.identity, ballot.number) if ballot.reset else view.lineage
    after = View(lineage, view.number + 1, ballot.number, tuple(members), follows=view.identity)
    return Plan(after, waiting, denied)


def _last_with_state(
    ballot: Ballot,
    dead: AbstractSet[int],
    expelled: AbstractSet[int],
    leaving: AbstractSet[int],
    joiners: list[Member],
    *,
    loses: bool,
) -> AbstractSet[int]:
    """Members that may not go yet: no other has the state, and one needs it.

    Some join, or have not got it all. Or a member is not there: it is put out of the view first.
    """
    witnesses = {member.incarnation for member in ballot.view.members if member.witness}
    having = ballot.with_state(dead) - witnesses
    if not having <= leaving | expelled:
        return set()
    joins = any(not member.witness for member in joiners)
    needed = loses or joins or not ballot.without_state() <= leaving | dead
    return having if needed else having - leaving
