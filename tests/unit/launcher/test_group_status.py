"""What the launcher concludes from what the processes say of their groups."""

from __future__ import annotations

import pytest

from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher.group_status import Groups, names_of

#: The witness, by its place in what the processes say.
WITNESS = None


def group_of(*members: Role) -> Groups:
    """A group with these members in one view; role N has incarnation N + 1, the witness 1000."""
    groups = Groups()
    for role in members:
        groups.receive(role, f"joining default {incarnation(role)}")
    for role in members:
        groups.receive(role, "unblocked default")
    return groups


def incarnation(role: Role) -> int:
    return 1000 if role is None else role + 1


def blocked(groups: Groups, role: Role, *missing: Role, rule: str = "the rule") -> None:
    members = ",".join(f"{incarnation(m)}:{'w' if m is None else m}" for m in missing)
    groups.receive(role, f"blocked default {members or '-'} {rule}")


def test_names() -> None:
    assert names_of([2]) == "rank 2"
    assert names_of({None, 10, 9}) == "rank 9, rank 10 and the witness"
    assert names_of([None]) == "the witness"


def test_all_that_is_left_waits_for_the_dead() -> None:
    groups = group_of(0, 1, 2)
    groups.end(2)
    groups.end(1)
    blocked(groups, 0, 1, 2, rule="1 of 3: no majority")
    loss = groups.loss([0])
    assert loss is not None
    assert (loss.group, loss.rule) == ("default", "1 of 3: no majority")
    assert loss.missed == {1, 2}


def test_not_while_one_of_the_missed_lives() -> None:
    groups = group_of(0, 1, 2)
    blocked(groups, 0, 1, 2)
    blocked(groups, 1, 0, 2)
    groups.end(2)
    assert groups.loss([0, 1]) is None
    groups.end(1)
    assert groups.loss([0]) is not None


def test_not_while_a_rank_is_in_a_view_or_does_something_else() -> None:
    for line in ("unblocked default", "sequencer default", "joining other 77"):
        groups = group_of(0, 1)
        groups.end(1)
        blocked(groups, 0, 1)
        groups.receive(2, line)
        assert groups.loss([0, 2]) is None, line
        assert groups.loss([0, 3]) is None
        groups.end(2)
        assert groups.loss([0]) is not None


def test_not_once_it_is_unblocked() -> None:
    groups = group_of(0, 1)
    groups.end(1)
    blocked(groups, 0, 1)
    groups.receive(0, "unblocked default")
    assert groups.loss([0]) is None


def test_process_in_a_dead_members_place_does_not_stand_in_for_it() -> None:
    groups = group_of(WITNESS, 0, 1)
    groups.end(1)
    groups.receive(1, "joining default 55")
    blocked(groups, 0, 1)
    blocked(groups, WITNESS, 1)
    assert groups.loss([0, 1]) is not None
    groups.receive(0, "blocked default 55:1 the new one is missed")
    assert groups.loss([0, 1]) is None


def test_no_rank_is_left_that_was_in() -> None:
    groups = group_of(0)
    groups.receive(1, "joining default 55")
    assert groups.loss([0, 1]) is None
    groups.end(0)
    loss = groups.loss([1])
    assert loss is not None
    assert loss.missed == frozenset()


def test_group_that_is_not_made_yet_is_not_lost() -> None:
    groups = Groups()
    groups.receive(1, "joining default 55")
    groups.receive(WITNESS, "joining default 56")
    assert groups.loss([1]) is None
    assert groups.formed == []


def test_the_living_witness_lets_others_in() -> None:
    groups = group_of(WITNESS, 0)
    groups.end(0)
    groups.receive(0, "joining default 55")
    assert groups.loss([0]) is None
    blocked(groups, WITNESS, 0)
    assert groups.loss([0]) is not None


def test_a_member_that_knows_of_all_the_ends_misses_none() -> None:
    """It reports none as missing if no survivor can say what they had decided."""
    groups = group_of(0, 1)
    blocked(groups, 0, rule="1 of 3: no majority")
    assert groups.loss([0, 1]) is None
    groups.end(1)
    loss = groups.loss([0])
    assert loss is not None
    assert (loss.missed, loss.rule) == (frozenset(), "1 of 3: no majority")
    groups.receive(0, "unblocked default")  # it was reset
    assert groups.loss([0]) is None


@pytest.mark.parametrize("line", ["blocked default 2:1 the rule", "lacks default 2 the rule"])
def test_a_rank_that_leaves_waits_for_none(line: str) -> None:
    """It is out of the group soon; what it reports of the group meanwhile says nothing else."""
    groups = group_of(0, 1)
    groups.end(1)
    groups.receive(0, line)
    assert groups.loss([0]) is not None
    groups.receive(0, "leaving default")
    groups.receive(0, "unblocked default")
    groups.receive(0, line)
    assert groups.loss([0]) is None
    assert groups.by_name["default"].places[0].state == "leaving"
    groups.receive(0, "joining default 77")  # again, and all that were in it have ended, or left
    assert groups.loss([0]) is not None


def test_nor_do_the_others_look_stuck_before_it_has_left() -> None:
    groups = group_of(0, 1, 2)
    groups.end(1)
    groups.receive(0, "leaving default")
    groups.receive(2, "lacks default 3 the rule")
    assert groups.loss([0, 2]) is None
    groups.receive(0, "left default")
    groups.end(0)
    assert groups.loss([2]) is not None


def test_a_process_that_leaves_and_never_joined_makes_no_group() -> None:
    groups = Groups()
    groups.receive(0, "leaving default")
    assert groups.by_name == {}
    groups.receive(0, "joining default 7")
    groups.receive(0, "leaving default")
    assert groups.formed == []


def test_processes_that_a_rank_has_started_are_members_that_may_come() -> None:
    """Until they end, or the rank does."""
    groups = group_of(0, 1)
    for role in (0, 1):
        groups.receive(role, "lacks default 4 the rule")
    for hosted, is_lost in ((1, True), (2, False), (1, True)):
        groups.receive(0, f"hosts default {hosted}")
        assert (groups.loss([0, 1]) is not None) == is_lost
    groups.receive(0, "hosts default 2")
    groups.end(0)
    assert groups.loss([1], coming=1) is not None


def test_nor_may_those_of_a_rank_that_has_left_come() -> None:
    groups = group_of(0, 1)
    groups.receive(0, "hosts default 1")
    groups.receive(0, "left default")
    groups.receive(0, "joining default 77")
    groups.receive(1, "lacks default 3 the rule")
    assert groups.loss([0, 1]) is not None
    groups.receive(0, "hosts default 1")
    assert groups.loss([0, 1]) is None


def test_no_rank_no_loss() -> None:
    groups = group_of(WITNESS, 0)
    groups.end(0)
    blocked(groups, WITNESS, 0)
    assert groups.loss([]) is None


def test_the_sequencers() -> None:
    groups = group_of(WITNESS, 0, 1)
    assert groups.sequencers() == []
    groups.receive(WITNESS, "sequencer default")
    groups.receive(0, "sequencer a%20b")
    assert groups.sequencers() == [WITNESS]
    assert groups.formed == ["a b", "default"]
    groups.end(WITNESS)
    assert groups.sequencers() == []
    groups.receive(1, "sequencer default")
    assert groups.sequencers() == [1]


def test_the_sequencers_if_no_group_is_the_programs_own() -> None:
    groups = Groups()
    groups.receive(2, "sequencer jobs")
    groups.receive(3, "sequencer names")
    assert groups.sequencers() == [2, 3]


def test_an_order_that_goes_over_has_a_sequencer_only_while_it_is_not_in_memory() -> None:
    groups = Groups()
    for line, ordering, in_memory in (
        ("shared-order jobs", [], True),
        ("sequencer jobs", [2], False),
        ("shared-order jobs", [], True),
    ):
        groups.receive(2, line)
        assert groups.sequencers() == ordering
        assert groups.by_name["jobs"].shares_memory == in_memory


def test_ends_tell_which_members_died() -> None:
    groups = group_of(0, 1)
    groups.receive(0, "joining other 99")
    assert groups.end(0) == {1, 99}
    assert groups.end(0) == set()
    assert set(groups.died) == {1, 99}


@pytest.mark.parametrize(
    "line",
    [
        "", "nonsense", "joining", "joining default", "joining default x", "blocked default",
        "blocked default 1 rule", "blocked default 1:x rule", "blocked default :1 rule",
        "unblocked", "unblocked a b", "sequencer", "quit", "\x00 \x01",
    ],
)  # fmt: skip
def test_what_is_not_understood_changes_nothing(line: str) -> None:
    groups = group_of(0)
    groups.receive(0, "sequencer default")
    before = repr(groups.by_name)
    groups.receive(0, line)
    assert repr(groups.by_name) == before
