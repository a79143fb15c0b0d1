"""The simulated network and processes themselves, under stacks that only note what they get."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from orcalike.transport.drivers.sim import Delays, Node, Stream, World
from orcalike.transport.stack import Stack

FAST = Delays(least=10, mean=0, connect=10, timeout=1_000)
MS = 1_000_000
D = 500 * MS


class Outbox:
    """What a noting stack sends."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.connects: list[str] = []
        self.closes: list[int] = []

    def take(self) -> list[tuple[int, bytes]]:
        frames, self.frames = self.frames, []
        return frames

    def take_connects(self) -> list[str]:
        connects, self.connects = self.connects, []
        return connects

    def take_closes(self) -> list[int]:
        closes, self.closes = self.closes, []
        return closes


class Noting:
    """Notes each input, with its time."""

    def __init__(self, incarnation: int) -> None:
        self.me = SimpleNamespace(incarnation=incarnation)
        self.config = SimpleNamespace(detection=D)
        self.out = Outbox()
        self.beats: tuple[Any, ...] = ()
        self.answers = False
        self.beats_version = 0
        self.lease = 0
        self.unleased: tuple[int, ...] = ()
        self.deadline: int | None = None
        self.ear = None
        self.seen: list[tuple[int, str, object]] = []

    def link_up(self, link: int, address: str, now: int) -> None:
        self.seen.append((now, "up", link))

    def link_down(self, link: int, why: str, now: int) -> None:
        self.seen.append((now, "down", link))

    def connect_failed(self, address: str, why: str, now: int) -> None:
        self.seen.append((now, "failed", address))

    def receive(self, link: int, frame: bytes, now: int) -> None:
        self.seen.append((now, "frame", frame))

    def died(self, incarnation: int, now: int, lease: int, age: int) -> None:
        self.seen.append((now, "died", incarnation))

    def leases_ended(self, granted: list[tuple[int, int]], now: int) -> None:
        pass

    def heard(self, incarnation: int, when: int) -> None:
        self.seen.append((when, "heard", incarnation))

    def quiet(self, now: int) -> set[int]:
        return {member.incarnation for member in self.beats}

    def lives(self, incarnation: int) -> None:
        self.seen.append((0, "lives", incarnation))

    def expire(self, now: int) -> None:
        self.deadline = None
        self.seen.append((now, "expire", None))

    @property
    def inputs(self) -> list[tuple[str, object]]:
        return [(kind, what) for _, kind, what in self.seen]

    @property
    def frames(self) -> list[object]:
        return [what for _, kind, what in self.seen if kind == "frame"]


class Pair:
    """Two processes, a and b, with a link between them; its number is 0 at both."""

    def __init__(self, *, host: str | None = None, delays: Delays = FAST, seed: int = 1) -> None:
        self.world = World(seed, delays)
        self.a, self.b = Noting(1), Noting(2)
        self.node_a = self.add("a", self.a, host)
        self.node_b = self.add("b", self.b, host)
        self.connect()
        self.set_heartbeat_peers_of_b(1)
        self.world.run_for(MS)
        self.a.seen.clear()
        self.b.seen.clear()

    def add(self, name: str, stack: Noting, host: str | None = None) -> Node:
        return self.world.add(name, cast(Stack, stack), host)

    def connect(self) -> None:
        self.a.out.connects.append("sim:b")
        self.node_a.drain()

    def set_heartbeat_peers_of_b(self, *incarnations: int) -> None:
        """The heartbeat peers of b from now on."""
        self.b.beats = tuple(SimpleNamespace(incarnation=each) for each in incarnations)
        self.b.beats_version += 1
        self.node_b.drain()

    def send(self, *frames: bytes, link: int = 0) -> None:
        """From a to b."""
        self.a.out.frames += [(link, frame) for frame in frames]
        self.node_a.drain()

    def run(self, span: int = MS) -> None:
        self.world.run_for(span)


def test_frames_arrive_in_order() -> None:
    pair = Pair(delays=Delays(mean=1_000_000, heavy=50_000_000))
    frames = [bytes([i]) for i in range(200)]
    pair.send(*frames)
    pair.run(10_000 * MS)
    assert pair.b.frames == frames


def test_one_frame_in_a_thousand_takes_much_longer() -> None:
    path = World(3, Delays(least=1, mean=1, heavy=10 * MS)).path("a", "b")
    late = sum(path.delay() > 100_000 for _ in range(20_000))
    assert 5 < late < 60


def test_messages_held_at_a_cut_arrive_in_order_when_it_heals() -> None:
    pair = Pair()
    pair.send(b"1")
    pair.world.cut("a", "b")
    pair.send(b"2", b"3")
    pair.run()
    assert pair.b.frames == []
    pair.world.heal("a", "b")
    pair.send(b"4")
    pair.run()
    assert pair.b.frames == [b"1", b"2", b"3", b"4"]


def test_a_cut_has_one_direction() -> None:
    pair = Pair()
    pair.world.cut("b", "a")
    pair.send(b"x")
    pair.run()
    assert pair.b.frames == [b"x"]


def test_no_connection_is_made_over_a_cut() -> None:
    pair = Pair()
    pair.world.cut("b", "a")
    pair.connect()
    pair.run()
    assert pair.a.inputs == [("failed", "sim:b")]


def test_a_clogged_path_is_late() -> None:
    pair = Pair()
    pair.world.clog("a", "b", pair.world.now + 5 * MS)
    pair.send(b"x")
    pair.run(4 * MS)
    assert pair.b.frames == []
    pair.run(2 * MS)
    assert pair.b.frames == [b"x"]


def test_a_broken_link_is_down_at_both_ends_and_what_was_under_way_is_lost() -> None:
    pair = Pair()
    pair.send(b"x")
    pair.world.break_links("a", "b")
    pair.send(b"y")
    pair.run()
    assert pair.a.inputs == [("down", 0)]
    assert pair.b.inputs == [("down", 0)]


def test_a_half_open_link_is_found_when_something_is_sent() -> None:
    pair = Pair()
    pair.world.break_links("b", "a", one_end=True)
    pair.run()
    assert pair.b.inputs == [("down", 0)]
    assert pair.a.inputs == []
    pair.send(b"x")
    pair.run()
    assert pair.a.inputs == [("down", 0)]
    assert pair.b.frames == []


def test_after_the_faults_what_was_late_and_is_lost_holds_up_nothing() -> None:
    pair = Pair()
    pair.world.clog("a", "b", pair.world.now + 1_000 * MS)
    pair.send(b"x")
    pair.world.break_links("b", "a", one_end=True)
    pair.world.heal_all()
    pair.run()
    pair.send(b"y")
    pair.run()
    assert pair.a.inputs == [("down", 0)]


def test_the_dead_are_heard_out_and_then_their_links_are_down() -> None:
    pair = Pair()
    pair.send(b"1", b"2")
    pair.world.crash(pair.node_a)
    pair.run()
    assert pair.b.inputs == [("frame", b"1"), ("frame", b"2"), ("down", 0)]


def test_on_one_host_a_death_is_certain_and_comes_last() -> None:
    pair = Pair(host="h")
    pair.connect()
    pair.run()
    pair.b.seen.clear()
    pair.send(b"1")
    pair.send(b"2", link=1)
    pair.world.crash(pair.node_a)
    pair.run()
    assert sorted(pair.b.inputs[:-1], key=str) == sorted(
        [("frame", b"1"), ("frame", b"2"), ("down", 0), ("down", 1)], key=str
    )
    assert pair.b.inputs[-1] == ("died", 1)


def test_behind_a_cut_no_process_learns_of_a_death() -> None:
    pair = Pair()
    pair.world.cut("a", "b")
    pair.send(b"1")
    pair.world.crash(pair.node_a)
    pair.run()
    assert pair.b.inputs == []
    pair.world.heal("a", "b")
    pair.run()
    assert pair.b.inputs == [("frame", b"1"), ("down", 0)]


def test_a_dying_process_sends_part_of_its_last_output() -> None:
    pair = Pair()
    pair.world.crash(pair.node_a, keep=2)
    pair.run()
    assert pair.node_a.alive
    pair.send(b"1", b"2", b"3")
    pair.run()
    assert pair.b.inputs == [("frame", b"1"), ("frame", b"2"), ("down", 0)]


def test_a_dead_machine_says_nothing_until_it_is_back() -> None:
    pair = Pair()
    pair.world.crash(pair.node_b, machine=True)
    pair.send(b"1")
    pair.run()
    assert pair.a.inputs == []
    pair.add("b", Noting(3))
    pair.send(b"2")
    pair.run()
    assert pair.a.inputs == [("down", 0)]


def test_a_dead_process_takes_no_connection_and_one_that_comes_back_does() -> None:
    pair = Pair()
    pair.world.crash(pair.node_b)
    pair.run()
    pair.a.seen.clear()
    pair.connect()
    pair.run()
    assert pair.a.inputs == [("failed", "sim:b")]
    again = Noting(3)
    pair.add("b", again)
    pair.connect()
    pair.run()
    assert again.inputs == [("up", 0)]


def test_a_paused_process_gets_everything_when_it_goes_on() -> None:
    pair = Pair()
    pair.world.pause(pair.node_b, pair.world.now + 2 * MS)
    pair.send(b"1", b"2")
    pair.run()
    assert pair.b.inputs == []
    pair.run(2 * MS)
    assert pair.b.frames == [b"1", b"2"]


def test_an_overdue_alarm_comes_anywhere_among_what_was_queued() -> None:
    places = set()
    for seed in range(100):
        pair = Pair(seed=seed)
        pair.set_heartbeat_peers_of_b()
        pair.b.deadline = pair.world.now + MS
        pair.node_b.drain()
        pair.world.pause(pair.node_b, pair.world.now + 5 * MS)
        pair.send(b"1", b"2", b"3")
        pair.run(10 * MS)
        assert sorted(map(str, pair.b.inputs)) == sorted(
            map(str, [("frame", b"1"), ("frame", b"2"), ("frame", b"3"), ("expire", None)])
        )
        places.add(pair.b.inputs.index(("expire", None)))
    assert places == {0, 1, 2, 3}


def test_a_slow_process_takes_its_time() -> None:
    pair = Pair()
    pair.node_b.slow_down(MS)
    pair.send(b"1", b"2", b"3")
    pair.run(10 * MS)
    times = [now for now, _, _ in pair.b.seen]
    assert pair.b.frames == [b"1", b"2", b"3"]
    assert times[1] - times[0] >= MS
    assert times[2] - times[1] >= MS


def heard(pair: Pair, expire_at: int) -> int | None:
    """When a had contact with b last, as it is notified at its alarm at that time."""
    pair.a.beats = (SimpleNamespace(incarnation=2),)
    pair.a.beats_version += 1
    pair.a.seen.clear()
    pair.a.deadline = expire_at
    pair.node_a.drain()
    pair.run(expire_at - pair.world.now + 1)
    whens = [when for when, kind, _ in pair.a.seen if kind == "heard"]
    return whens[0] if whens else None


def test_beats_say_that_both_ways_are_open() -> None:
    pair = Pair()
    when = heard(pair, 10 * D)
    assert when is not None
    assert 10 * D - D // 5 - 10 <= when <= 10 * D - 10


@pytest.mark.parametrize("ways", [("a", "b"), ("b", "a")])
def test_a_cut_in_either_direction_ends_contact(ways: tuple[str, str]) -> None:
    pair = Pair()
    pair.run(5 * D)
    since = pair.world.now
    pair.world.cut(*ways)
    assert heard(pair, 10 * D) == since - 1


def test_contact_ends_with_a_pause_and_begins_again_after_it() -> None:
    pair = Pair()
    pair.run(5 * D)
    since = pair.world.now
    pair.world.pause(pair.node_b, 12 * D)
    assert heard(pair, 10 * D) == since - 1
    when = heard(pair, 20 * D)
    assert when is not None
    assert when > 19 * D


def lives(pair: Pair) -> bool:
    """Whether b is notified that the process of a lives, right before its deadline."""
    pair.b.seen.clear()
    pair.b.deadline = pair.world.now + D
    pair.node_b.drain()
    pair.run(D + MS)
    return ("lives", 1) in pair.b.inputs


def test_the_kernel_of_a_host_says_which_of_its_processes_live() -> None:
    pair = Pair(host="h")
    assert lives(pair)
    pair.node_a.starved.begin(pair.world.now)
    assert lives(pair), "it gets no processor"
    pair.world.pause(pair.node_a)
    assert not lives(pair)
    pair.world.resume(pair.node_a)
    assert lives(pair)
    pair.world.cut("a", "b")
    assert not lives(pair), "a cut stands for another host"
    pair.world.heal("a", "b")
    pair.world.crash(pair.node_a)
    assert not lives(pair)
    assert not lives(Pair())


def test_a_beat_from_one_that_is_not_beaten_to_is_answered() -> None:
    pair = Pair()
    pair.set_heartbeat_peers_of_b(3)
    when = heard(pair, 10 * D)
    assert when is not None
    assert when > 9 * D


def test_a_node_without_heartbeat_peers_is_not_heard() -> None:
    pair = Pair()
    pair.run(5 * D)
    since = pair.world.now
    pair.set_heartbeat_peers_of_b()
    assert heard(pair, 10 * D) == since - 1
    pair.b.answers = True
    pair.set_heartbeat_peers_of_b()
    when = heard(pair, 20 * D)
    assert when is not None
    assert when > 19 * D, "one that is in a group answers"
    pair.b.answers = False
    since = pair.world.now
    pair.set_heartbeat_peers_of_b()
    assert heard(pair, 30 * D) == since - 1
    pair.set_heartbeat_peers_of_b(1)
    when = heard(pair, 40 * D)
    assert when is not None
    assert when > 39 * D


def test_a_node_that_hangs_beats() -> None:
    pair = Pair()
    pair.world.hang(pair.node_b)
    when = heard(pair, 10 * D)
    assert when is not None
    assert when > 9 * D


def test_two_troubles_one_after_the_other_end_contact_when_the_first_begins() -> None:
    pair = Pair()
    pair.run(5 * D)
    since = pair.world.now
    pair.world.pause(pair.node_b)
    pair.run(D)
    pair.world.cut("a", "b")
    pair.world.resume(pair.node_b)
    assert heard(pair, 10 * D) == since - 1


def test_beats_are_lost_now_and_then() -> None:
    pair = Pair()
    pair.world.beat_loss = 0.5
    lags = []
    for i in range(1, 60):
        when = heard(pair, i * 10 * D)
        assert when is not None
        lags.append(i * 10 * D - when)
    assert min(lags) < D // 5 < 2 * D // 5 < max(lags)


def test_the_same_seed_is_the_same_trace() -> None:
    def trace(seed: int) -> str:
        pair = Pair(seed=seed, delays=Delays())
        pair.send(*[bytes([i]) for i in range(50)])
        pair.run(100 * MS)
        return pair.world.trace

    assert trace(5) == trace(5)
    assert trace(5) != trace(6)


def test_streams_do_not_disturb_each_other() -> None:
    one, other = Stream(1, "a>b", "delays"), Stream(1, "a>b", "delays")
    disturbing = Stream(1, "b>a", "delays")
    drawn = [one.draw() for _ in range(5)]
    between = []
    for _ in range(5):
        disturbing.draw()
        between.append(other.draw())
    assert between == drawn
    assert Stream(2, "a>b", "delays").draw() != drawn[0]


def test_a_fault_between_others_does_not_change_when_a_frame_arrives() -> None:
    def arrivals(*, fault: bool) -> list[int]:
        pair = Pair(delays=Delays())
        third = Noting(9)
        node = pair.add("c", third)
        third.out.connects.append("sim:b")
        node.drain()
        if fault:
            pair.world.cut("c", "b")
        pair.send(*[bytes([i]) for i in range(20)])
        pair.run(100 * MS)
        return [now for now, kind, _ in pair.b.seen if kind == "frame"]

    assert arrivals(fault=True) == arrivals(fault=False)
