"""I10 and I22: what a member's own reads show, without any knowledge of the order's mechanism.

Values that are written once name their write. So a read of a register shows which write it saw, and
its place in the order; and with the packet that a read is stamped with, any object's read shows how
far its member was.
"""

from __future__ import annotations

from collections.abc import Iterator

from orcalike.history_check.order import Canon
from orcalike.history_check.records import History, Place, Violation, invocations, place_of

WRITES = "Register.swap"
READS = "Register.get"


def check(canon: Canon, histories: list[History]) -> Iterator[Violation]:
    """Own writes, monotonic reads, and no value from nowhere."""
    written: dict[tuple[str, str], Place] = {}
    for message, record in invocations(histories).items():
        place = canon.places.get(message)
        if record["operation"] == WRITES and place is not None:
            written[record["object"], record["args"][0]] = place
    for history in histories:
        yield from _stamps(history, canon)
        yield from _values(history, written, canon)


def _stamps(history: History, canon: Canon) -> Iterator[Violation]:
    """I22: a read is no older than the reads before it, and than the member's own writes."""
    latest, why = 0, ""
    for record in history.of("ok", "read"):
        if record["kind"] == "ok":
            place = canon.places.get((history.incarnation, record["ticket"]))
            if place is not None and place[0] > latest:
                latest, why = place[0], f"its write of ticket {record['ticket']}"
        elif record["gseq"] < latest:
            text = f"a read of {record['object']!r} at packet {record['gseq']} after {why}"
            yield Violation("I22", history.incarnation, f"{text} at {latest}")
            return
        else:
            latest, why = record["gseq"], "a read"


def _values(
    history: History, written: dict[tuple[str, str], Place], canon: Canon
) -> Iterator[Violation]:
    """I10, I22: the values that a register shows."""
    end = canon.lost.get(history.incarnation)
    seen: dict[str, Place] = {}
    calls = {record["ticket"]: record for record in history.of("invoke")}
    for record in history.of("deliver", "ok", "read"):
        if record["kind"] == "deliver":
            if end is not None and place_of(record) >= end:
                return
        elif record["kind"] == "ok":
            call = calls.get(record["ticket"])
            place = canon.places.get((history.incarnation, record["ticket"]))
            if call is not None and call["operation"] == WRITES and place is not None:
                seen[call["object"]] = max(place, seen.get(call["object"], place))
        elif record["operation"] == READS and record.get("value"):
            place = written.get((record["object"], record["value"]))
            if place is None:
                text = f"{record['object']!r} shows {record['value']!r}, which no call wrote"
                yield Violation("I10", history.incarnation, text)
                return
            if place < seen.get(record["object"], place):
                text = (
                    f"{record['object']!r} shows {record['value']!r} of {place} after "
                    f"{seen[record['object']]}"
                )
                yield Violation("I22", history.incarnation, text)
                return
            seen[record["object"]] = place
