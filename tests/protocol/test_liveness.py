"""Groups that must recover by themselves, and did not: each schedule once left a member waiting.

Some run to their end, some end in a group that is blocked, as it must be; `Run` sees to it that it
comes to either within 10 D (I28, G29).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orcalike.simulator.application import Application
from orcalike.simulator.scenario import MS, Event, Scenario
from orcalike.simulator.simulation import Run
from orcalike.transport.drivers.sim import Delays
from orcalike.transport.layers.mbrship import Mbrship
from tests.protocol.test_schedules import START, D, cuts, scenario


def ends_of(run: Run) -> dict[str, str | None]:
    """Why the latest endpoint of each process is out; None if it is not."""
    return {name: each.exited for name, each in run.current.items()}


def test_all_live_members_leave_and_a_dead_member_may_live() -> None:
    """The dead one may have the state, for all they know; first it is out, then they leave."""
    events = [
        Event("crash", START, "2", way="machine"),
        Event("leave", START + 1, "0"),
        Event("leave", START + 1, "1"),
    ]
    run = Run(scenario(3, events))
    run.run()
    ends = ends_of(run)
    assert ends["0"] == "left"
    assert ends["1"] in ("left", "the last member left")


def test_a_joiner_gets_the_state_before_all_live_members_leave() -> None:
    events = [
        Event("crash", START, "1", way="machine"),
        Event("leave", START + 1, "0"),
        Event("join", START + 2, "2"),
    ]
    run = Run(scenario(2, events, more=1))
    run.run()
    assert ends_of(run) == {"0": "left", "1": None, "2": None}
    view = run.current["2"].entered
    assert view is not None
    assert [member.address for member in view.members] == ["sim:2"]


def test_a_dead_joiner_of_a_blocked_group_is_forgotten() -> None:
    """n=4, r=1: two are away for long. With two dead joiners more there would never be enough."""
    events = [
        Event("cast", START, "0", degree=1),
        Event("pause", START + D, "2", span=10 * D),
        Event("pause", START + D, "3", span=10 * D),
        *(Event("join", START + 4 * D, name) for name in ("4", "5")),
        *(Event("crash", START + 7 * D, name, way="machine") for name in ("4", "5")),
    ]
    run = Run(scenario(4, events, more=2))
    assert not run.run().blocked
    assert ends_of(run) == dict.fromkeys("012345")


def test_a_reset_lets_no_process_in_that_may_be_dead() -> None:
    """n=4, r=1: two are dead for good, and so are two that asked to be let in meanwhile."""
    events = [
        Event("cast", START, "0", degree=1),
        *(Event("crash", START + D, name, way="machine") for name in ("2", "3")),
        *(Event("join", START + 4 * D, name) for name in ("4", "5")),
        *(Event("crash", START + 7 * D, name, way="machine") for name in ("4", "5")),
    ]
    run = Run(replace(scenario(4, events, more=2), resets=True))
    run.run()
    assert run.newest is not None
    assert [member.address for member in run.newest.members] == ["sim:0", "sim:1"]


def test_none_of_the_oldest_is_there_and_the_next_has_gone_on() -> None:
    """0 has expelled 6, which cannot be notified, and takes 4 for its leader, from which it never receives."""
    events = [
        Event("cut", START, "6", "0", span=D),
        Event("half", START + MS, "0", "6"),
    ]
    run = Run(scenario(7, events))
    assert not run.run().blocked
    first = next(each for each in run.applications.values() if each.process == "6")
    assert (first.exited or "").startswith("expelled")


def test_a_member_is_left_out_that_saw_no_silence_and_has_nothing_to_say() -> None:
    """0 goes on without 2 while the two cannot reach each other; all that 2 receives is answers."""
    events = [
        Event("half", START, "0", "2"),
        Event("cut", START, "0", "2", span=D // 3),
        Event("cut", START, "2", "0", span=D // 3),
    ]
    run = Run(replace(scenario(3, events), delays=Delays(timeout=MS)))
    assert not run.run().blocked
    first = next(each for each in run.applications.values() if each.process == "2")
    assert (first.exited or "").startswith("expelled")


def test_all_of_the_oldest_die_and_the_next_with_them() -> None:
    """n=12: a member that not all watch is dead too, and no connection breaks."""
    when = START + 10 * D  # so many take longer to join
    dead = [Event("crash", when, str(number), way="machine") for number in range(5)]
    run = Run(scenario(12, dead))
    assert not run.run().blocked
    assert run.newest is not None
    assert len(run.newest.members) == 7


@pytest.mark.parametrize(("step", "leavers"), [("V8", "2"), ("V6", "23")])
def test_the_leader_ends_with_a_view_that_was_long_in_coming(step: str, leavers: str) -> None:
    """All but the last run on one host, which stands still as others leave; then 0 ends before it has sent any lease of the view.

    It is certain, and 1 knows by a lease of the view before that 0 has decided nothing else.
    """
    size = 3 + len(leavers)
    events = [
        Event("pause", START, str(size - 1), span=100 * D),
        *(Event("leave", START + 1, name) for name in leavers),
        Event("crash", START + 1, "0", mark=step, keep=99),
    ]
    run = Run(replace(scenario(size, events), hosts=(0,) * size))
    assert not run.run().blocked
    assert run.newest is not None
    assert run.newest.members[0].address == "sim:1"


def check_that_1_goes_on_alone(events: list[Event]) -> None:
    """Of three on one host, after 0 was killed at its failpoint."""
    run = Run(replace(scenario(3, events), hosts=(0,) * 3))
    result = run.run()
    assert len(result.fired) == 1
    assert not result.blocked
    assert run.newest is not None
    assert [member.address for member in run.newest.members] == ["sim:1"]


@pytest.mark.parametrize("step", ["V8", "V9"])
def test_the_leader_ends_as_the_lease_of_one_that_it_left_out_is_over(step: str) -> None:
    """2 stands still, and 0 has lost its link to it: it waits 0.7 D for its lease, longer than those that 1 had before.

    Meanwhile 1 has further ones, as it has accepted: it knows that 0 has decided nothing else.
    """
    events = [
        Event("half", START, "0", "2"),
        Event("pause", START + 1, "2", span=100 * D),
        Event("crash", START + 1, "0", mark=step, keep=99),
    ]
    check_that_1_goes_on_alone(events)


def test_the_leader_ends_with_what_it_was_about_to_decide_and_so_does_the_one_that_it_left_out() -> (
    None
):
    """1 alone is no majority, and knows nothing certain of 2. But 0 has said to it that the two of them are enough."""
    events = [
        Event("half", START, "0", "2"),
        Event("pause", START + 1, "2", span=100 * D),
        Event("crash", START + 1, "0", mark="V7", keep=0),
        Event("crash", START + 3 * D, "2"),
    ]
    run = Run(replace(scenario(3, events), hosts=(0,) * 3))
    assert not run.run().blocked
    assert ends_of(run)["1"] is None


def test_a_lease_that_is_for_others_does_not_let_one_go_on_that_was_left_out() -> None:
    """0 waits for the lease of 2, which lives, and only beats with it meanwhile.

    2 sees 0 and 1 end long after that, and must not go on: those live that they have let in.
    """
    joiners = "3456"
    events = [
        *(Event("half", START, name, "2") for name in "01"),
        *(Event("clog", START, name, "2", span=50 * D) for name in f"01{joiners}"),
        *(Event("clog", START, "2", name, span=50 * D) for name in f"01{joiners}"),
        *(Event("join", START + D // 10, name) for name in joiners),
        *(Event("crash", START + D * 14 // 10, name, way="soon") for name in "01"),
    ]
    run = Run(replace(scenario(3, events, more=len(joiners)), hosts=(0,) * 7))
    run.run()
    assert run.newest is not None
    assert not {f"sim:{name}" for name in joiners}.isdisjoint(
        member.address for member in run.newest.members
    )


def test_a_group_is_not_said_to_be_blocked_by_ends_that_are_about_to_be_seen() -> None:
    """0 and 1 end at once: 2 loses its links to both before the kernel has said all of it."""
    events = [Event("crash", START, name) for name in "01"]
    run = Run(replace(scenario(3, events), hosts=(0,) * 3))
    states = []
    run.on_change = lambda application, change: states.append((application.process, change.after))
    assert not run.run().blocked
    assert ("2", "DECIDED") in states
    assert ("2", "SHORT_OF_REPORTS") not in states


@pytest.mark.parametrize("keep", [1, 2])
def test_a_joiner_does_not_hold_up_the_others_if_the_leader_that_let_it_in_has_ended(
    keep: int,
) -> None:
    """Its INSTALL is lost, and it asks again only after a second. Those that are left need its report, and tell it."""
    events = [Event("join", START, "3"), Event("crash", START, "0", mark="V8", keep=keep)]
    run = Run(replace(scenario(3, events, more=1), hosts=(0,) * 4))
    installed: list[int] = []
    viewed = run.viewed

    def view(application: Application) -> None:
        installed.append(run.world.now)
        viewed(application)

    run.viewed = view  # type: ignore[method-assign]
    assert not run.run().blocked
    assert run.newest is not None
    assert len(run.newest.members) == 3
    assert installed[-1] - START < D // 2, "it was not found to be silent first"


@pytest.mark.parametrize("one_host", [True, False])
def test_of_members_that_have_ended_no_peer_is_kept(one_host: bool) -> None:
    """2 and 3 come and are killed, each at an address of its own."""
    events = [
        *(Event("join", START + number * 4 * D, str(number)) for number in (2, 3)),
        *(Event("crash", START + (number * 4 + 2) * D, str(number)) for number in (2, 3)),
    ]
    run = Run(replace(scenario(2, events, more=2), hosts=(0,) * 4 if one_host else ()))
    assert not run.run().blocked
    for name, other in ("01", "10"):
        assert run.current[name].stack.dump()["COM"]["peers"].keys() == {f"sim:{other}"}


def test_the_leader_ends_as_the_lease_of_one_that_has_promised_to_leave_is_over() -> None:
    """2 stands still after its report, so that 0 may only wait, and does not suspect it yet."""
    events = [
        Event("leave", START, "2"),
        Event("pause", START + MS // 4, "2", span=100 * D),
        Event("crash", START, "0", mark="V8", keep=99),
    ]
    check_that_1_goes_on_alone(events)


def test_one_that_has_left_tells_one_that_was_left_out_before() -> None:
    """0 stands still, and 1 and 2 go on; then 1 is killed, and 2 leaves the group to 3. 0 knows none but 1 and 2."""
    events = [
        Event("pause", START, "0", span=6 * D),
        *(Event("half", START + MS, name, "0") for name in "12"),
        Event("join", START + 2 * D, "3"),
        Event("crash", START + 4 * D, "1"),
        Event("leave", START + 5 * D, "2"),
    ]
    run = Run(replace(scenario(3, events, more=1), hosts=(0,) * 4))
    first = run.current["0"]
    assert not run.run().blocked
    assert (first.exited or "").startswith("expelled")


# What `Run` asks for in the end, and what it does not.


def test_a_member_that_a_leaver_left_alone_is_blocked_and_need_not_be_more() -> None:
    """0 decides the view without it alone, as the oldest half, and 1 cannot be notified of it."""
    events = [*cuts(START, "0", "1"), Event("leave", START, "0"), Event("half", START, "0", "1")]
    run = Run(scenario(2, events))
    assert run.run().blocked
    assert ends_of(run) == {"0": "the last member left", "1": None}
    assert run.current["1"].blocked is not None


@pytest.mark.parametrize(
    ("leaves", "exited", "may"),
    [
        (False, None, True),
        (True, "left", False),
        (False, "expelled: for an unknown reason", True),
    ],
)
def test_only_a_member_that_left_in_due_form_cannot_go_on(
    leaves: bool, exited: str | None, may: bool
) -> None:
    """Two of three live. One of them is out: by its own will, or though no view is without it."""
    run = Run(scenario(3, []))
    run.run()
    view = run.newest
    assert view is not None
    two = run.current["1"]
    run.world.stop(run.current["2"].node)
    two.leaves, two.exited = leaves, exited
    assert run.recovery.may_go_on(view, run.recovery.present(view)) is may
    trouble = run.recovery.trouble()
    assert trouble is not None
    assert "dead" in trouble or "is out" in trouble


def test_a_member_that_is_out_and_in_the_newest_view_is_trouble() -> None:
    run = Run(scenario(3, []))
    run.run()
    assert run.recovery.trouble() is None
    run.current["1"].exited = "expelled: view 3 went on without this member"
    trouble = run.recovery.trouble()
    assert trouble is not None
    assert trouble.startswith("rank 1 (sim:1) is out, and in ")


# As they were found, made small.

FOUND = Path(__file__).parent / "testdata"
END_BLOCKED = {
    "blocked_is_said_again_by_a_new_link",
    "expelled_as_slow_then_death",
    "state_is_given_between_two_views",
}
"""Groups that end blocked, as they must."""

FILES = [
    each for kind in ("liveness", "safety", "mutations") for each in FOUND.glob(f"{kind}/*.json")
]
"""Those of `mutations` show that a detail is left out (tests/campaign/mutants)."""


@pytest.mark.parametrize("name", "012")
def test_on_one_host_a_process_that_starves_is_not_suspected(name: str) -> None:
    """It lives, so the others wait; if it is stopped, or on another host, they go on without it."""

    def views(what: str, *near: int) -> int:
        """How many views there were in the end."""
        run = Run(scenario(3, [Event(what, START, name, span=8 * D, count=MS)], one_host=near))
        run.run()
        mbrship = run.current["1" if name == "0" else "0"].stack.focus("MBRSHIP")
        assert isinstance(mbrship, Mbrship)
        assert mbrship.agreement.view is not None
        return mbrship.agreement.view.number

    assert views("starve", 0, 1, 2) == 3
    assert views("starve") > 3
    assert views("pause", 0, 1, 2) > 3


@pytest.mark.parametrize("path", sorted(FILES), ids=lambda path: path.stem)
def test_a_group_recovers_from_what_was_found(path: Path) -> None:
    result = Run(Scenario.from_json(path.read_text())).run()
    assert result.views
    assert result.blocked or path.stem not in END_BLOCKED
