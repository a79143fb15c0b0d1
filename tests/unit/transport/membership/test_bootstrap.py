"""Unanimous bootstrap: rank 0 makes the group when all others have promised, in one round (ADR-18)."""

from __future__ import annotations

from orcalike.transport.errors import NOT_PROVED
from orcalike.transport.membership.bootstrap import Bootstrap
from orcalike.transport.membership.effects import Effect
from orcalike.transport.membership.failure_detector import longest_silence
from orcalike.transport.membership.messages import ControlMessage, Inside, Join, Nowhere, Taken
from orcalike.transport.membership.state import BootstrapState
from orcalike.transport.view import Member

D = 1_000
ZERO, OTHER_ZERO = Member("sim:zero", 50, 0), Member("sim:other", 60, 0)
ONE, TWO = Member("sim:one", 1, 1), Member("sim:two", 2, 2)
ADDRESSES = ("sim:one", "sim:two", "sim:empty")


class Port:
    """What a layer would do, and the process that uses it."""

    def __init__(self, me: Member, size: int = 3) -> None:
        self.sent: list[tuple[str, ControlMessage]] = []
        self.failed: list[str] = []
        self.made: list[list[Member]] = []
        self.joined: list[str] = []
        self.changes: list[Effect] = []
        self.bootstrap = Bootstrap(
            self, self.join_through, me, {"stack": "S", "size": None}, size, D
        )

    def contact_with(self, address: str, message: ControlMessage) -> None:
        self.sent.append((address, message))

    def make_group(self, joiners: list[Nowhere]) -> None:
        self.made.append([each.member for each in joiners])
        self.bootstrap.entered()

    def join_through(self, address: str, now: int) -> None:
        self.joined.append(address)

    def join_failed(self, why: str) -> None:
        self.failed.append(why)

    def changed(self, change: Effect) -> None:
        self.changes.append(change)

    def plan(self) -> None:
        pass

    def take(self) -> list[tuple[str, ControlMessage]]:
        """What was sent since the last call."""
        sent, self.sent = self.sent, []
        return sent


def asking(size: int = 3) -> Port:
    """Rank 0, in its first round."""
    port = Port(ZERO, size)
    port.bootstrap.begin(ADDRESSES, 0)
    return port


def nowhere(member: Member, round_: int = 1, size: int = 3) -> Nowhere:
    return Nowhere(round_, size, member, {})


def test_the_group_is_made_when_all_have_promised() -> None:
    port = asking()
    join = Join(ZERO, {"stack": "S"}, 1)
    assert port.sent == [(address, join) for address in ADDRESSES]
    port.bootstrap.answered(nowhere(TWO), ("sim:two", ""), 1)
    port.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 1)
    assert port.made == [], "at one address a member may be that has not answered yet"
    port.bootstrap.lost(("sim:empty", ""), None, "refused", 2)
    assert port.made == [[ONE, TWO]]
    assert port.failed == []
    port.bootstrap.expire(10 * D)
    assert port.made == [[ONE, TWO]]


def test_an_address_that_does_not_answer_has_the_detection_time() -> None:
    port = asking()
    port.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 1)
    port.bootstrap.answered(nowhere(TWO), ("sim:two", ""), 1)
    port.bootstrap.expire(D - 1)
    assert port.made == []
    port.bootstrap.expire(D)
    assert port.made == [[ONE, TWO]]


def test_one_alone_makes_the_group_at_once() -> None:
    port = Port(ZERO, 1)
    port.bootstrap.begin((), 0)
    assert port.made == [[]]


def test_a_rank_that_is_missing_is_named() -> None:
    port = asking(4)
    port.bootstrap.answered(nowhere(TWO, size=4), ("sim:two", ""), 1)
    port.bootstrap.expire(D)
    assert port.failed == ["ranks 1 and 3 of 4 did not answer that the group is to be made"]
    assert port.made == []


def test_one_that_answers_twice_is_one() -> None:
    port = asking()
    port.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 1)
    port.bootstrap.answered(nowhere(Member("sim:two", 9, 1)), ("sim:two", ""), 1)
    port.bootstrap.expire(D)
    assert port.made == []
    assert port.failed[0].startswith("rank 2 of 3 did not answer")


def test_only_answers_of_this_round_count_and_only_in_time() -> None:
    port = asking()
    port.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 1)
    port.bootstrap.expire(D)
    port.bootstrap.begin(ADDRESSES, D)
    assert port.bootstrap.round == 2
    port.bootstrap.answered(nowhere(ONE, 1), ("sim:one", ""), D + 1)
    port.bootstrap.answered(nowhere(TWO, 2), ("sim:two", ""), D + 1)
    port.bootstrap.answered(nowhere(ONE, 2), ("sim:one", ""), 2 * D)
    port.bootstrap.expire(2 * D)
    assert port.made == []
    assert len(port.failed) == 2


def test_a_link_that_breaks_takes_the_answer_with_it() -> None:
    port = asking()
    port.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 1)
    port.bootstrap.lost(("sim:one", ""), ONE.incarnation, "reset", 2)
    port.bootstrap.lost(("sim:empty", ""), None, "refused", 2)
    port.bootstrap.answered(nowhere(TWO), ("sim:two", ""), 3)
    assert port.made == []
    assert port.failed[0].startswith("rank 1 of 3 did not answer")


def test_one_answer_of_a_member_makes_it_a_joiner() -> None:
    port = asking()
    port.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 1)
    port.bootstrap.answered(Inside(1), ("sim:two", ""), 1)
    assert port.joined == ["sim:two"]
    port.bootstrap.lost(("sim:empty", ""), None, "refused", 2)
    port.bootstrap.expire(D)
    assert (port.made, port.failed) == ([], [])
    assert not port.bootstrap.asks


def test_that_a_group_is_there_counts_from_any_round() -> None:
    port = asking()
    port.bootstrap.expire(D)
    port.bootstrap.begin(ADDRESSES, D)
    port.bootstrap.answered(Inside(1), ("sim:two", ""), D + 1)
    assert port.joined == ["sim:two"]


def test_a_process_of_a_job_of_another_size_does_not_count_and_is_named() -> None:
    port = asking()
    port.bootstrap.answered(nowhere(ONE, size=8), ("sim:one", ""), 1)
    port.bootstrap.expire(D)
    assert port.failed[0].endswith("; sim:one is of a job of 8 processes, not of 3")


def test_a_wrong_key_is_said_only_if_no_process_has_the_right_one() -> None:
    """At some of the addresses another job's processes may be."""
    for others, said in ((f"closed; {NOT_PROVED}", True), ("refused", False)):
        port = asking()
        port.bootstrap.lost(("sim:one", ""), None, f"closed; {NOT_PROVED}", 1)
        port.bootstrap.lost(("sim:two", ""), None, others, 1)
        port.bootstrap.lost(("sim:empty", ""), None, others, 1)
        assert (NOT_PROVED in port.failed[0]) == said


# The other ranks.


def test_a_rank_that_asks_to_be_let_in_is_asked_too() -> None:
    """Its address need not be known otherwise: at once in a round, and in each of the next ones."""
    port = Port(ZERO)
    port.bootstrap.begin(["sim:empty"], 0)
    port.take()
    port.bootstrap.asked(ONE, 0, 1)
    assert ("sim:one", Join(ZERO, {"stack": "S"}, 1)) in port.take()
    port.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 2)
    port.bootstrap.expire(D)
    assert port.made == [], "rank 2 is missing"
    port.bootstrap.asked(TWO, 0, D + 1)
    port.take()
    port.bootstrap.begin(["sim:empty"], D + 2)
    assert [address for address, _ in port.take()] == ["sim:empty", "sim:one", "sim:two"]
    port.bootstrap.lost(("sim:empty", ""), None, "refused", D + 3)
    port.bootstrap.answered(nowhere(ONE, 2), ("sim:one", ""), D + 3)
    port.bootstrap.answered(nowhere(TWO, 2), ("sim:two", ""), D + 3)
    assert port.made == [[ONE, TWO]]


def test_only_ranks_of_the_job_are_asked_and_only_by_rank_0() -> None:
    port = asking()
    port.take()
    for other in (OTHER_ZERO, Member("sim:three", 3, 3), Member("sim:witness", 4, None)):
        port.bootstrap.asked(other, 0, 1)
    port.bootstrap.asked(Member("sim:elsewhere", 5, 1), 0, 1)
    asked = [address for address, message in port.take() if isinstance(message, Join)]
    assert asked == ["sim:elsewhere"]
    port = Port(ONE)
    port.bootstrap.asked(TWO, 0, 1)
    assert not [message for _, message in port.take() if isinstance(message, Join)]


def test_a_promise_is_given_to_one_rank_0() -> None:
    port = Port(ONE)
    port.bootstrap.asked(ZERO, 1, 0)
    port.bootstrap.asked(OTHER_ZERO, 5, 0)
    port.bootstrap.asked(ZERO, 2, 0)
    assert port.take() == [
        ("sim:zero", Nowhere(1, 3, ONE, {"stack": "S"})),
        ("sim:other", Taken(5, ZERO)),
        ("sim:zero", Nowhere(2, 3, ONE, {"stack": "S"})),
    ]


def test_a_request_of_no_round_is_answered_and_gets_no_promise() -> None:
    port = Port(ONE)
    port.bootstrap.asked(TWO, 0, 0)
    assert port.take() == [("sim:two", Nowhere(0, 3, ONE, {"stack": "S"}))]
    assert port.bootstrap.holder is None


def test_a_promise_ends_when_its_rank_0_gives_it_back() -> None:
    port = Port(ONE)
    port.bootstrap.asked(ZERO, 1, 0)
    port.bootstrap.asked(ZERO, 0, 0)
    port.bootstrap.asked(OTHER_ZERO, 1, 0)
    assert isinstance(port.sent[-1][1], Nowhere)


def test_a_broken_link_ends_no_promise_before_it_is_known_that_its_rank_0_is_gone() -> None:
    port = Port(ONE)
    port.bootstrap.asked(ZERO, 1, 0)
    port.take()
    port.bootstrap.lost(("sim:zero", ""), ZERO.incarnation, "reset", 1)
    assert port.take() == [("sim:zero", Join(ONE, {"stack": "S"}))]
    assert port.bootstrap.holder == ZERO
    port.bootstrap.linked("sim:zero", ZERO.incarnation, 0)
    port.bootstrap.lost(("sim:zero", ""), ZERO.incarnation, "reset", 2)
    assert port.bootstrap.holder == ZERO, "it is doubted anew"
    port.bootstrap.lost(("sim:zero", ""), None, "refused", 3)
    assert port.bootstrap.holder is None


def test_another_process_at_the_address_of_a_rank_0_ends_the_promise() -> None:
    port = Port(ONE)
    port.bootstrap.asked(ZERO, 1, 0)
    port.bootstrap.linked("sim:zero", 51, 0)
    assert port.bootstrap.holder is None


def test_a_rank_0_that_is_silent_for_long_has_no_promise() -> None:
    """Its machine may be dead: no link says so."""
    port = Port(ONE)
    port.bootstrap.asked(ZERO, 1, 0)
    silence = longest_silence(D)
    port.bootstrap.asked(ZERO, 2, 5)
    port.bootstrap.expire(silence + 4)
    assert port.bootstrap.holder == ZERO
    assert port.bootstrap.deadline == silence + 5
    port.bootstrap.expire(silence + 5)
    assert port.bootstrap.machine.state is BootstrapState.FREE
    assert port.bootstrap.deadline is None


def test_a_question_of_another_process_at_that_address_ends_it_too() -> None:
    """What the one before had sent may have come after the greeting of this one."""
    port = Port(ONE)
    port.bootstrap.asked(ZERO, 1, 0)
    port.bootstrap.asked(Member(ZERO.address, 51, 0), 1, 0)
    assert isinstance(port.sent[-1][1], Nowhere)


def test_none_gives_way_to_one_that_was_at_its_own_address() -> None:
    port = Port(Member(ZERO.address, 51, 0))
    port.bootstrap.begin(ADDRESSES, 0)
    port.bootstrap.answered(Taken(1, ZERO), ("sim:one", ""), 1)
    assert port.bootstrap.asks


def test_a_group_that_is_made_otherwise_has_no_part_in_this() -> None:
    port = Port(ONE, 0)
    port.bootstrap.asked(ZERO, 1, 0)
    port.bootstrap.entered()
    assert (port.sent, port.changes) == ([], [])


# Two of rank 0.


def test_the_lower_incarnation_comes_first() -> None:
    first, second = asking(), Port(OTHER_ZERO)
    second.bootstrap.begin(ADDRESSES, 0)
    first.take(), second.take()
    first.bootstrap.asked(OTHER_ZERO, 1, 0)
    assert first.take() == [("sim:other", Taken(1, ZERO))]
    assert first.bootstrap.asks
    second.bootstrap.asked(ZERO, 1, 0)
    given_back = [(address, Join(OTHER_ZERO, {"stack": "S"})) for address in ADDRESSES]
    assert second.take() == [*given_back, ("sim:zero", Nowhere(1, 3, OTHER_ZERO, {"stack": "S"}))]
    assert second.failed == ["another rank 0 makes the group, at sim:zero"]


def test_one_that_gives_way_asks_the_other_to_be_let_in() -> None:
    port = Port(OTHER_ZERO)
    port.bootstrap.begin(ADDRESSES, 0)
    port.bootstrap.answered(Taken(1, ZERO), ("sim:one", ""), 1)
    assert not port.bootstrap.asks
    port.bootstrap.begin(ADDRESSES, D)
    assert port.joined == ["sim:zero"]
    port.bootstrap.lost(("sim:zero", ""), None, "refused", D)
    port.bootstrap.lost(("sim:zero", ""), None, "refused", D)
    port.bootstrap.begin(ADDRESSES, 2 * D)
    assert port.bootstrap.machine.state is BootstrapState.ASKING


def test_one_that_gives_way_between_two_rounds_gives_the_promises_back_too() -> None:
    """No round is under way, so none is given up; what the last one was promised is held by it all the same."""
    second, one = Port(OTHER_ZERO), Port(ONE)
    second.bootstrap.begin(ADDRESSES, 0)
    one.bootstrap.asked(OTHER_ZERO, 1, 1)
    second.bootstrap.answered(nowhere(ONE), ("sim:one", ""), 2)
    second.bootstrap.expire(D)
    assert (len(second.failed), second.bootstrap.asks) == (1, False)
    second.take(), one.take()
    second.bootstrap.asked(ZERO, 1, D + 1)
    given_back = [(address, Join(OTHER_ZERO, {"stack": "S"})) for address in ADDRESSES]
    assert second.take() == [*given_back, ("sim:zero", Nowhere(1, 3, OTHER_ZERO, {"stack": "S"}))]
    assert second.bootstrap.machine.state is BootstrapState.PROMISED
    one.bootstrap.asked(OTHER_ZERO, 0, D + 2)
    one.bootstrap.asked(ZERO, 2, D + 3)
    assert one.take()[-1] == ("sim:zero", Nowhere(2, 3, ONE, {"stack": "S"})), "it is free for it"
    second.bootstrap.begin(ADDRESSES, D + 4)
    assert second.joined == ["sim:zero"]


def test_a_promise_to_one_that_comes_later_is_waited_for() -> None:
    port = asking()
    port.bootstrap.answered(Taken(1, OTHER_ZERO), ("sim:one", ""), 1)
    assert port.bootstrap.asks
    port.bootstrap.expire(D)
    assert "sim:one waits for another rank 0, at sim:other" in port.failed[0]
