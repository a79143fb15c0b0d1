"""Views: I11, I13 to I16."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from orcalike.history_check.records import History, Place, Record, Violation, place_of

Identity = tuple[int, int, int]


def check(histories: list[History], degree: int) -> Iterator[Violation]:
    """All that concerns views."""
    yield from _sane(histories)
    yield from _one_primary(histories)
    yield from _successors(histories)
    yield from _synchronous(histories)
    if degree:  # without one, a sequencer that was paused may acknowledge what is lost
        yield from _fenced(histories)


def identity_of(view: Record) -> Identity:
    """(lineage, number, ballot)."""
    lineage, number, ballot = view["identity"]
    return lineage, number, ballot


def members_of(view: Record) -> list[str]:
    """The incarnations, oldest first."""
    return [member[0] for member in view["members"]]


def installed(histories: list[History]) -> dict[Identity, tuple[int, Record]]:
    """Each view, and when it was first installed anywhere."""
    found: dict[Identity, tuple[int, Record]] = {}
    for history in histories:
        for view in history.of("view"):
            known = found.get(identity_of(view))
            if known is None or view["t"] < known[0]:
                found[identity_of(view)] = view["t"], view
    return found


def _sane(histories: list[History]) -> Iterator[Violation]:
    """I13: views grow, are the same everywhere, include oneself. I14: at one place for all."""
    known: dict[Identity, Record] = {}
    places: dict[Identity, int] = {}
    for history in histories:
        incarnation, last = history.incarnation, (0, 0, 0)
        for view in history.of("view"):
            identity, members = identity_of(view), members_of(view)
            if identity <= last:
                yield Violation("I13", incarnation, f"view {identity} after {last}")
            last = identity
            if incarnation not in members or len(set(members)) != len(members):
                yield Violation("I13", incarnation, f"the members of view {identity} are {members}")
            other = known.setdefault(identity, view)
            for name in ("members", "sequencer", "primary"):
                if view[name] != other[name]:
                    text = f"view {identity} has another {name} than elsewhere"
                    yield Violation("I13", incarnation, text)
            if view["gseq"] is not None:
                place = places.setdefault(identity, view["gseq"])
                if place != view["gseq"]:
                    text = f"view {identity} after packet {view['gseq']}, elsewhere {place}"
                    yield Violation("I14", incarnation, text)


def _one_primary(histories: list[History]) -> Iterator[Violation]:
    """I15: one primary view for each number of a lineage."""
    primaries: dict[tuple[int, int], Identity] = {}
    for identity, (_, view) in sorted(installed(histories).items()):
        if view["primary"]:
            other = primaries.setdefault(identity[:2], identity)
            if other != identity:
                text = f"views {other} and {identity} are both primary"
                yield Violation("I15", members_of(view)[0], text)


def _successors(histories: list[History]) -> Iterator[Violation]:
    """I15, H1: the members that form the next primary view are a quorum of the one before.

    Members that leave vote with the rest. One without a history, as a witness, counts as dead:
    whether it was is not known here.
    """
    by_name = {history.incarnation: history for history in histories}
    primaries = [
        (identity, time, view)
        for identity, (time, view) in sorted(installed(histories).items())
        if view["primary"]
    ]
    for (before, _, view), (after, time, successor) in pairwise(primaries):
        if before[0] != after[0]:
            continue
        members, stay = members_of(view), set(members_of(successor))
        voters, alive = 0, []
        for member in members:
            history = by_name.get(member)
            if member in stay or (history is not None and history.left):
                voters += 1
            elif history is not None and history.last_time > time:
                alive.append(member)
        half = 2 * voters == len(members) and members[0] in stay
        if alive and not half and 2 * voters <= len(members):
            text = f"view {after} has {voters} of {len(members)} of {before}, and {alive} live"
            yield Violation("I15", members_of(successor)[0], text)


def _synchronous(histories: list[History]) -> Iterator[Violation]:
    """I11: members that go from V to V' delivered the same in V."""
    agreed: dict[tuple[Identity, Identity], tuple[str, list[tuple[Place, str]]]] = {}
    for history in histories:
        view: Identity | None = None
        places: list[tuple[Place, str]] = []
        for record in history.of("deliver", "view"):
            if record["kind"] == "deliver":
                places.append((place_of(record), record["chain"]))
                continue
            following = identity_of(record)
            if view is not None:
                key = (view, following)
                other, theirs = agreed.setdefault(key, (history.incarnation, places))
                if theirs != places:
                    text = (
                        f"{len(places)} deliveries from view {view} to {following}, not the "
                        f"same as {len(theirs)} at {other}"
                    )
                    yield Violation("I11", history.incarnation, text)
            view, places = following, []


def _fenced(histories: list[History]) -> Iterator[Violation]:
    """I16: after a view without it, a member gets no acknowledgement for what others have not."""
    views = sorted(installed(histories).items())
    for history in histories:
        last = max((identity_of(view) for view in history.of("view")), default=None)
        later = [
            time
            for identity, (time, view) in views
            if last is not None
            and identity > last
            and view["primary"]
            and history.incarnation not in members_of(view)
        ]
        if not later or history.left:
            continue
        elsewhere = {
            (record["sender"], record["ticket"])
            for other in histories
            if other is not history
            for record in other.of("deliver")
        }
        for record in history.of("ok"):
            message = (history.incarnation, record["ticket"])
            if record["t"] > min(later) and message not in elsewhere:
                text = f"ticket {record['ticket']} was acknowledged after a view without it"
                yield Violation("I16", history.incarnation, text)
                break
