"""This endpoint's own request to be let in."""

from __future__ import annotations

from orcalike.transport.membership.join_request import ASK_AGAIN, JoinRequest
from orcalike.transport.membership.messages import ControlMessage, Join
from orcalike.transport.view import Member

ME = Member("sim:me", 7, 0)


class Port:
    """What a layer would do."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, ControlMessage]] = []
        self.unanswered: list[str] = []

    def contact_with(self, address: str, message: ControlMessage) -> None:
        self.sent.append((address, message))

    def mark(self, step: str) -> None:
        assert step == "J1"

    def plan(self) -> None:
        pass

    def join_failed(self, why: str) -> None:
        self.unanswered.append(why)


def test_it_is_repeated_until_the_group_has_answered() -> None:
    port = Port()
    request = JoinRequest(port, ME, {"resilience": 1, "size": None})
    request.expire(10**18)
    assert (port.sent, request.deadline) == ([], None)  # nothing was asked yet
    request.ask("sim:a", 5)
    join = "sim:a", Join(ME, {"resilience": 1})
    assert (port.sent, request.deadline) == ([join], 5 + ASK_AGAIN)
    request.expire(4 + ASK_AGAIN)
    assert (port.sent, port.unanswered) == ([join], [])
    request.expire(5 + ASK_AGAIN)
    assert (port.sent, port.unanswered) == ([join, join], ["sim:a has not let this process in"])
    request.answered()
    request.expire(10 * ASK_AGAIN)
    assert port.sent == [join, join]
    assert request.address == "sim:a"


def test_one_that_is_out_asks_no_more() -> None:
    port = Port()
    request = JoinRequest(port, ME, {})
    request.ask("sim:a", 0)
    request.end()
    request.expire(ASK_AGAIN)
    assert (len(port.sent), request.address, request.deadline) == (1, None, None)
