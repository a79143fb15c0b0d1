"""The one order, and that what stands in it was sent: I1 to I3, I5, I6, I8, I9 and I12.

Members' deliveries are merged into the canon: what stands at each place. Members that left in an
orderly way in the last lineage come first. With degree 0 a member that crashed may have seen what
no other has; so may the members of a lineage that another one replaced. What they saw from the
first difference on is lost, and is no part of the canon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from orcalike.history_check.records import (
    History,
    MessageId,
    Place,
    Record,
    Violation,
    invocations,
    outcomes,
    place_of,
)
from orcalike.runtime.codes import DIGESTS_OF_STATES

IDENTITY = ("sender", "ticket", "object", "operation", "args", "chain")
"""What is the same wherever one place is delivered. The view need not be: what a member that crashed
had delivered alone in its view the others deliver in the next."""


@dataclass
class Canon:
    """The one order, merged from all histories."""

    entries: dict[Place, Record] = field(default_factory=dict)
    places: dict[MessageId, Place] = field(default_factory=dict)
    lost: dict[str, Place] = field(default_factory=dict)
    """From where on what a member delivered is lost."""
    violations: list[Violation] = field(default_factory=list)

    @cached_property
    def in_order(self) -> list[tuple[Place, Record]]:
        """All of it, by place; asked for when all is merged."""
        return [(place, self.entries[place]) for place in sorted(self.entries)]

    def delivered(self, history: History) -> list[tuple[Place, Record]]:
        """What a member delivered, without what is lost."""
        end = self.lost.get(history.incarnation)
        found = history.deliveries
        return found if end is None else [(place, rec) for place, rec in found if place < end]


def build(histories: list[History], degree: int) -> Canon:
    """The canon, with what contradicts it."""
    canon = Canon()
    for history in sorted(histories, key=lambda h: (-h.lineage, not h.left, h.incarnation)):
        _merge(canon, history, degree)
    for place, record in canon.in_order:
        message = (record["sender"], record["ticket"])
        if message in canon.places:
            text = f"{message} stands at {canon.places[message]} and at {place}"
            canon.violations.append(Violation("I3", "", text))
        canon.places.setdefault(message, place)
    return canon


def _merge(canon: Canon, history: History, degree: int) -> None:
    for place, record in history.deliveries:
        known = canon.entries.setdefault(place, record)
        if known is record:
            continue
        different = [name for name in IDENTITY if known[name] != record[name]]
        if different:
            replaced = record["lineage"] < known["lineage"]
            if replaced or (degree == 0 and not history.left):
                canon.lost[history.incarnation] = place
                return
            name = different[0]
            text = f"{place}: {name} {record[name]!r}, elsewhere {known[name]!r}"
            canon.violations.append(Violation("I1", history.incarnation, text))
            return


def check(canon: Canon, histories: list[History], degree: int) -> Iterator[Violation]:
    """All that concerns the order as such."""
    yield from canon.violations
    yield from _gaps(canon, histories)
    yield from _created(canon, histories)
    yield from _in_views(histories)
    yield from _senders(canon, histories)
    yield from _once(canon, histories)
    yield from _durable(canon, histories, degree)


def _gaps(canon: Canon, histories: list[History]) -> Iterator[Violation]:
    """I2: each member delivers an unbroken run of the canon."""
    ranks = {place: number for number, (place, _) in enumerate(canon.in_order)}
    for history in histories:
        before: Place | None = None
        for place, _ in canon.delivered(history):
            if before is not None and ranks[place] != ranks[before] + 1:
                text = f"{place} follows {before}"
                yield Violation("I2", history.incarnation, text)
                break
            before = place


def _created(canon: Canon, histories: list[History]) -> Iterator[Violation]:
    """I5: what is delivered was invoked, with these bytes, by a member or by a witness."""
    invoked = invocations(histories)
    recorded = {history.incarnation for history in histories}
    witnesses = {
        member[0]
        for history in histories
        for view in history.of("view")
        for member in view["members"]
        if member[2]
    }
    for place, record in canon.in_order:
        sender = record["sender"]
        invocation = invoked.get((sender, record["ticket"]))
        if invocation is None:
            if sender in recorded or sender not in witnesses:
                yield Violation("I5", sender, f"{place}: ticket {record['ticket']} was not invoked")
        elif invocation["hash"] != record["args"] or (
            invocation["object"] != record["object"] and not record["object"].startswith("#")
        ):
            text = f"{place}: ticket {record['ticket']} was invoked with other bytes"
            yield Violation("I5", sender, text)


def _in_views(histories: list[History]) -> Iterator[Violation]:
    """I12: a delivery is in the view that is installed, and from a member of that or one before."""
    joined: dict[str, tuple[int, int]] = {}
    for history in histories:
        for view in history.of("view"):
            identity = (view["identity"][0], view["identity"][1])
            for member in view["members"]:
                joined[member[0]] = min(identity, joined.get(member[0], identity))
    for history in histories:
        present = (0, 0)
        for record in history.of("view", "deliver"):
            if record["kind"] == "view":
                present = (record["identity"][0], record["identity"][1])
                continue
            place, sender = place_of(record), record["sender"]
            if (record["lineage"], record["view"]) != present:
                text = f"{place} is delivered in view {record['view']}, and {present} is installed"
                yield Violation("I12", history.incarnation, text)
                break
            if joined.get(sender, (present[0] + 1, 0)) > present:
                text = f"{place} is from {sender}, which is in no view up to {present}"
                yield Violation("I12", history.incarnation, text)
                break


def _senders(canon: Canon, histories: list[History]) -> Iterator[Violation]:
    """I6: a member's own tickets stand in the canon one after the other, from the first.

    Digests of states have a ticket and no delivery: they do not count as delivered.
    """
    undelivered = {
        message
        for message, record in invocations(histories).items()
        if record["operation"] == DIGESTS_OF_STATES
    }
    following: dict[str, int] = {}
    broken: set[str] = set()
    for place, record in canon.in_order:
        sender, ticket = record["sender"], record["ticket"]
        expected = following.get(sender, 0)
        while (sender, expected) in undelivered and expected < ticket:
            expected += 1
        if ticket != expected and sender not in broken:
            broken.add(sender)
            yield Violation("I6", sender, f"{place}: ticket {ticket} where {expected} is next")
        following[sender] = ticket + 1


def _once(canon: Canon, histories: list[History]) -> Iterator[Violation]:
    """I3, I4: at each member an invocation runs once; what is reported to never run does not."""
    failed = outcomes(histories, "fail")
    for history in histories:
        seen: set[tuple[str, int]] = set()
        for record in history.of("apply"):
            message = (record["sender"], record["ticket"])
            if int(record["sender"], 16) == 0:
                continue  # a hook, which no member invoked
            if message in seen:
                yield Violation("I3", history.incarnation, f"{message} ran twice")
            seen.add(message)
            if message in failed:
                text = f"{message} ran, and its caller got the answer that it never will"
                yield Violation("I4", history.incarnation, text)


def _durable(canon: Canon, histories: list[History], degree: int) -> Iterator[Violation]:
    """I4, I8: what was acknowledged stands in the canon; for degree 0 unless its member crashed.

    With a degree, what a member made readable is in the canon of those that were there to the end
    (H11); a new lineage is what says that data may be lost (I9).
    """
    last_lineage = max((history.lineage for history in histories), default=0)
    ends = [
        canon.delivered(history)[-1][0]
        for history in histories
        if history.left and history.lineage == last_lineage and canon.delivered(history)
    ]
    end = max(ends, default=None)
    for history in histories:
        may_lose = history.lineage < last_lineage or (degree == 0 and not history.left)
        for record in history.of("ok"):
            place = canon.places.get((history.incarnation, record["ticket"]))
            if place is None and not may_lose:
                text = f"ticket {record['ticket']} was acknowledged, and stands nowhere"
                yield Violation("I8", history.incarnation, text)
                break
        if end is None or may_lose:
            continue
        beyond = [place for place, _ in canon.delivered(history) if place > end]
        if beyond:
            text = f"{len(beyond)} deliveries from {beyond[0]} on, after the end of all that left"
            yield Violation("I8", history.incarnation, text)


def acknowledged(histories: Iterable[History]) -> int:
    """How many invocations were acknowledged."""
    return sum(1 for history in histories for _ in history.of("ok"))
