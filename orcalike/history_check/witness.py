"""I20 with the order as witness: linearizability for any number of operations.

The order that the group gave its writes is a linearization if it respects real time: none was
acknowledged before one that stands earlier in the order was invoked. (That results are right in
this order is for the models.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, compress, count
from operator import gt

from orcalike.history_check.order import Canon
from orcalike.history_check.records import History, Violation, invocations, outcomes

NEVER = 1 << 62
"""When an operation returns whose outcome is unknown."""


def out_of_time(invoked: Sequence[int], returned: Sequence[int]) -> list[int]:
    """Which operations return before one is invoked that stands earlier; both in the given order.

    Gives the places of the earlier ones: of each, some later one had returned when it was invoked.
    """
    earliest = list(accumulate(reversed(returned), min))
    earliest.reverse()  # of this one and all behind it
    return list(compress(count(), map(gt, invoked, earliest)))


def check(canon: Canon, histories: list[History]) -> Iterator[Violation]:
    """I20: the order respects real time."""
    calls, acknowledged = invocations(histories), outcomes(histories, "ok")
    messages = []
    invoked: list[int] = []
    returned: list[int] = []
    for place, record in canon.in_order:
        message = (record["sender"], record["ticket"])
        call = calls.get(message)
        if call is not None:
            answer = acknowledged.get(message)
            messages.append((place, message))
            invoked.append(call["t"])
            returned.append(NEVER if answer is None else answer["t"])
    for number in out_of_time(invoked, returned)[:10]:
        place, message = messages[number]
        text = f"{message} at {place} was invoked after one behind it had been acknowledged"
        yield Violation("I20", message[0], text)
