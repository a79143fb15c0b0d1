"""All members with replicas end at once, and a witness has kept the state (promises 3, 7, 9)."""

from __future__ import annotations

import pytest

from orcalike.simulator.scenario import MS, Event, Scenario
from orcalike.simulator.simulation import KEPT_LEAST, Run
from orcalike.transport.application_state import State
from orcalike.transport.errors import ProtocolError
from orcalike.transport.layers.xfer import Xfer
from orcalike.transport.wire.message import Message
from orcalike.transport.xfer.kept_state import events
from tests.lib.all_ending import draw_all_ending
from tests.lib.manual_network import ManualNetwork

OVER = ("XFER:TOTAL:MBRSHIP:COM:sim", "PACK:XFER:RING(slots=64,lane=65536):MBRSHIP:COM:sim")
RANKS = ("1", "2", "3")
SEEDS = 120
CHUNK = 20


def all_end(stack: str, *more: Event, keeps: bool = True) -> Scenario:
    """Three ranks beside a witness, which all end after 300 casts, and come back; they cast before and behind it."""
    happenings = [Event("join", MS * int(rank), rank) for rank in RANKS]
    for i in range(60):
        happenings.append(Event("cast", (20 + i) * MS, RANKS[i % 3], size=12, count=5))
        happenings.append(Event("cast", (300 + i) * MS, RANKS[i % 3], size=12))
    for rank in RANKS:
        happenings += [Event("crash", 100 * MS, rank), Event("restart", 150 * MS, rank)]
    return Scenario(
        seed=1,
        size=4,
        events=(*happenings, *more),
        safety=600 * MS,
        stack=stack,
        witness=True,
        keeps=keeps,
        hosts=(0, 0, 0, 0),
    )


@pytest.mark.parametrize("stack", OVER)
def test_what_was_acknowledged_is_there_when_all_that_had_it_have_ended(stack: str) -> None:
    """Each rank that comes back knows each cast that any of those before it has seen in its place."""
    run = Run(all_end(stack))
    result = run.run()
    assert not result.blocked
    acknowledged = set(run.monitor.facts.acked)
    assert len(acknowledged) == 360
    for rank in RANKS:
        known = run.monitor.seen(run.current[rank].me).sources
        assert all(known[sender] >= number for sender, number in acknowledged), rank
    assert len({run.current[rank].digest for rank in RANKS}) == 1


@pytest.mark.parametrize("stack", OVER)
def test_a_witness_that_keeps_nothing_does_not_let_others_begin_anew(stack: str) -> None:
    """What was written is gone, and the group says so."""
    assert Run(all_end(stack, keeps=False)).run().blocked


@pytest.mark.parametrize("stack", OVER)
def test_what_is_kept_does_not_grow_with_what_is_cast(stack: str) -> None:
    """The members give their state anew: some 11,000 bytes have been cast."""
    more = [Event("cast", (20 + i) * MS, RANKS[i % 3], size=100, count=2) for i in range(60)]
    run = Run(all_end(stack, *more))
    result = run.run()
    assert not result.blocked
    keeper = run.current["0"].transfer.keeper
    assert keeper.whole
    assert keeper.given_bytes() > 0
    assert keeper.size < 10 * KEPT_LEAST


@pytest.mark.parametrize("size", [12, 20_000])
@pytest.mark.parametrize("stack", OVER)
def test_those_that_come_back_have_the_state_of_those_that_ended(stack: str, size: int) -> None:
    """Each cast has run once on what the members have given, also if what came since is several pieces."""
    scenario = all_end(stack)
    others = [event for event in scenario.events if event.do != "cast"]
    casts = [Event("cast", 20 * MS + 10_000 * i, RANKS[i % 3], size=size) for i in range(300)]
    run = Run(scenario.with_events([*others, *casts]))
    assert not run.run().blocked
    keeper = run.current["0"].transfer.keeper
    assert keeper.given_bytes() > 0
    came_back = {run.current[rank].me for rank in RANKS}
    ended = [each for each in run.applications.values() if each.process in RANKS]
    assert len(ended) == 2 * len(came_back)
    assert len({each.digest for each in ended}) == 1


def test_a_witness_has_no_state_before_all_of_it_is_there() -> None:
    """It has asked, and the pieces are under way: without the member that gives them nothing is left.

    What is cast meanwhile, more than one piece of it, is kept with the state.
    """
    network = ManualNetwork()
    network.form("a b")
    for number in range(30):
        network.cast("a", b"%d" % number)
    network.stabilize()
    network["a"].piece = 1  # so that some wait until others have come
    network.add("k", witness=True)
    layer = network.endpoints["k"].stack.focus("XFER")
    assert isinstance(layer, Xfer)
    layer.keep()
    network.join("k", "a")
    keeper = layer.keeper
    assert keeper is not None
    for _ in range(20):
        for source, target in ("ka", "ba", "ab"):
            network.deliver(source, target, 9)
        if keeper.giver is None:
            network.deliver("a", "k")
    assert keeper.giver is not None, "it has asked, and knows which member gives"
    assert layer.up_has_state() == State.NONE
    large = [bytes([number]) * 30_000 for number in range(4)]
    for body in large:
        network.cast("a", body)
    network.stabilize()
    assert layer.up_has_state() == State.WHOLE
    since = events(piece for is_since, piece in keeper.pieces() if is_since)
    kept = [cast.body for cast, _ in since if isinstance(cast, Message)]
    assert [sum(body in each for each in kept) for body in large] == [1, 1, 1, 1]


@pytest.mark.parametrize("stack", OVER)
def test_a_witness_that_is_started_again_has_the_state_before_all_end(stack: str) -> None:
    """It gets it from a member, and gives it to those that come."""
    run = Run(all_end(stack, Event("crash", 60 * MS, "0"), Event("restart", 65 * MS, "0")))
    result = run.run()
    assert not result.blocked
    assert len({run.current[rank].digest for rank in RANKS}) == 1
    assert all(run.current[rank].transfer.complete for rank in RANKS)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_all_end_among_other_faults(first: int) -> None:
    """No promise is broken, and no group stands still without saying so."""
    came_back = 0
    for seed in range(first, first + CHUNK):
        run = Run(draw_all_ending(seed))
        run.run()
        views = run.monitor.facts.views.values()
        alone = [view.number for view in views if view.witnesses.issuperset(view.members)]
        alone = [number for number in alone if number > 1]
        came_back += any(view.number > min(alone, default=1 << 40) for view in views)
    assert came_back >= CHUNK // 10


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\0" * 25 + b"\1",
        b"\0" * 22 + b"\1\0\0\0",
        b"\1\1\0\0\0\xc0",
        b"\1\xff\xff\xff\xff",
        b"\2\1\0\0\0\xc0",
        b"\3\0\0\0\0",
        b"\1\2\0\0\0\x92\xc0",
    ],
)
def test_what_no_witness_has_kept_is_refused(data: bytes) -> None:
    """Cut short, of no kind, or with another thing in the place of a view or of members."""
    with pytest.raises(ProtocolError):
        list(events([data]))
