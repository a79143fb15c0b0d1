"""The checkers of histories: what is right passes, and each way to be wrong has its invariant."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orcalike.history_check.blackbox import NEVER, Call, linearizable
from orcalike.history_check.check import check_folder, check_histories
from orcalike.history_check.models import Model, Refused, State
from orcalike.history_check.records import History, Record, load
from orcalike.history_check.witness import out_of_time
from orcalike.runtime.codes import DIGESTS_OF_STATES
from tests.campaign.models import Counter, Queue, Register, model_of
from tests.lib.scene import Scene, good_scene, hashed

REGISTER, COUNTER, QUEUE, BANK = "register 0", "counter 0", "queue 0", "bank 0 2 10"


def wrong(scene: Scene, degree: int = 1) -> set[str]:
    """The invariants that a scene breaks."""
    return {
        violation.invariant
        for violation in check_histories(scene.all(), degree, model_of).violations
    }


def nth(scene: Scene, member: str, kind: str, number: int, **fields: object) -> Record:
    """A record of a member: the one of that number, among those with these fields."""
    records = scene.histories[member].records
    found = [
        record
        for record in records
        if record["kind"] == kind and all(record.get(k) == v for k, v in fields.items())
    ]
    return found[number]


def without(scene: Scene, member: str, record: Record) -> None:
    """A member never recorded this."""
    scene.histories[member].records.remove(record)


def swap(scene: Scene, member: str, first: Record, second: Record) -> None:
    """These two happened the other way round."""
    records = scene.histories[member].records
    i, j = records.index(first), records.index(second)
    records[i], records[j] = second, first


# What is right.


def test_what_is_right_passes() -> None:
    verdict = check_histories(good_scene().all(), 2, model_of)
    assert verdict.violations == []
    assert verdict.members == 4
    assert verdict.delivered == 4 + 1 + 12 + 2 + 1 + 9
    assert verdict.lost == 0


def lost_tail(scene: Scene) -> None:
    """c crashes alone with a write whose result it had received."""
    message = scene.invoke("c", COUNTER, "Counter.add", (5,))
    scene.deliver(message, COUNTER, "Counter.add", (5,), at="c")
    scene.run(message, COUNTER, "Counter.add", (5,), 5, at="c")
    scene.gseq -= 1


def scene_with_tail(lineage: int = 1) -> Scene:
    """A write that one member alone has, and then others go on with its place."""
    scene = Scene()
    scene.install("c", "a", "b")
    scene.create("a", COUNTER)
    lost_tail(scene)
    scene.install("a", "b", lineage=lineage)
    scene.write("a", COUNTER, "add", 1)
    scene.leave("b")
    scene.leave("a")
    return scene


def test_without_a_degree_a_crash_may_lose_what_no_other_member_had() -> None:
    scene = scene_with_tail()
    verdict = check_histories(scene.all(), 0, model_of)
    assert verdict.violations == []
    assert verdict.lost == 1
    assert wrong(scene, 1) >= {"I1"}


def test_a_new_lineage_may_lose() -> None:
    assert wrong(scene_with_tail(lineage=2), 1) == set()


def test_a_zombie_that_did_nothing_wrong() -> None:
    scene = Scene()
    scene.install("a", "b", "c")
    scene.create("a", COUNTER)
    scene.write("b", COUNTER, "add", 1)
    scene.install("b", "c")
    late = scene.invoke("a", COUNTER, "Counter.add", (7,))
    scene.tell("a", "info", ticket=late[1], error="Expelled")
    scene.tell("a", "exit", why="expelled: the group went on")
    scene.write("c", COUNTER, "add", 1)
    scene.leave("c")
    scene.leave("b")
    assert wrong(scene) == set()


def scene_with_undelivered(operation: str) -> Scene:
    """A member invokes something between two writes, and none delivers it."""
    scene = Scene()
    scene.install("a", "b")
    scene.create("a", COUNTER)
    scene.write("a", COUNTER, "add", 1)
    for _ in range(2):
        scene.invoke("a", "", operation, ())
    scene.write("a", COUNTER, "add", 1)
    scene.leave("b")
    scene.leave("a")
    return scene


def test_digests_of_states_have_tickets_and_no_delivery() -> None:
    assert wrong(scene_with_undelivered(DIGESTS_OF_STATES)) == set()
    assert wrong(scene_with_undelivered("barrier")) == {"I6"}


# What is wrong: a change to the good scene, and the invariant that it breaks.

Spoil = Callable[[Scene], object]


def deliver_other(scene: Scene, members: str, number: int, **fields: object) -> None:
    for member in members:
        nth(scene, member, "deliver", number).update(fields)


def add_deliver(scene: Scene, members: str, **fields: object) -> None:
    for member in members:
        records = scene.histories[member].records
        last = nth(scene, member, "deliver", -1)
        records.insert(records.index(last) + 1, last | fields)


def repeat(scene: Scene, member: str, kind: str, number: int) -> None:
    record = nth(scene, member, kind, number)
    records = scene.histories[member].records
    records.insert(records.index(record) + 1, dict(record))


def both(scene: Scene, spoil: Callable[[str], object]) -> None:
    for member in "ab":
        spoil(member)


def rename(scene: Scene) -> None:
    """The joiner counts its tickets from 1."""
    for history in scene.all():
        for record in history.records:
            mine = record.get("sender", history.incarnation) == scene.histories["d"].incarnation
            if mine and "ticket" in record:
                record["ticket"] += 1


def later_time(scene: Scene, member: str, kind: str, number: int, by: int) -> None:
    nth(scene, member, kind, number)["t"] += by


def fork(scene: Scene, *members: str, number: int, ballot: int = 1) -> None:
    """Some members install a view of their own, primary too."""
    view = nth(scene, "a", "view", 0)
    listed = [entry for entry in view["members"] if chr(int(entry[0], 16)) in members]
    for member in members:
        scene.tell(
            member,
            "view",
            identity=[1, number, ballot],
            members=listed,
            sequencer=listed[0][0],
            primary=True,
            gseq=None,
        )


def minority(scene: Scene) -> None:
    """Of a, b, c only a goes on, and c lives."""
    for member in "bd":
        scene.histories[member].records = [
            record
            for record in scene.histories[member].records
            if record["kind"] not in ("view", "exit")
        ]
    view = nth(scene, "a", "view", 1)
    view["members"] = view["members"][:1]
    later_time(scene, "c", "ok", -1, 100_000)
    later_time(scene, "b", "ok", -1, 100_000)


def zombie_ok(scene: Scene, kind: str = "counter") -> None:
    """c is acknowledged, after the view without it, what no member has."""
    name, title = (COUNTER, "Counter.add") if kind == "counter" else (REGISTER, "Register.swap")
    message = scene.invoke("c", name, title, (1,))
    scene.tell("c", "ok", ticket=message[1], value=1)


def zombie_delivers(scene: Scene) -> None:
    zombie_ok(scene)
    scene.tell("c", "exit", why="expelled: the group went on")


def wake_too_early(scene: Scene) -> None:
    """A caller that waits for an item takes it before it is there."""
    for member in "abc":
        put = nth(scene, member, "apply", -1, operation="Queue.put")
        swap(scene, member, put, nth(scene, member, "apply", -1, operation="Queue.take"))


SPOILED: list[tuple[str, str, Spoil]] = [
    ("I1", "another sender", lambda s: deliver_other(s, "b", 3, sender="0" * 15 + "7")),
    ("I1", "another digest", lambda s: deliver_other(s, "b", 9, chain="00")),
    ("I1", "another order at one object", lambda s: swap(
        s, "b", nth(s, "b", "apply", 4), nth(s, "b", "apply", 6))),
    ("I2", "a gap", lambda s: without(s, "b", nth(s, "b", "deliver", 7))),
    ("I2", "one goes back", lambda s: swap(
        s, "a", nth(s, "a", "deliver", 6), nth(s, "a", "deliver", 8))),
    ("I2", "one twice", lambda s: repeat(s, "c", "deliver", 4)),
    ("I3", "ran twice", lambda s: repeat(s, "a", "apply", 8)),
    ("I3", "ran twice at the joiner", lambda s: repeat(s, "d", "apply", -1)),
    ("I3", "ordered twice", lambda s: add_deliver(s, "abd", gseq=99)),
    ("I4", "ran and was withdrawn", lambda s: s.tell("a", "fail", ticket=5, error="withdrawn")),
    ("I4", "ran first, withdrawn then", lambda s: s.tell("b", "fail", ticket=0, error="late")),
    ("I4", "the joiner's too", lambda s: s.tell("d", "fail", ticket=0, error="withdrawn")),
    ("I5", "never invoked", lambda s: without(s, "b", nth(s, "b", "invoke", -1))),
    ("I5", "other bytes", lambda s: nth(s, "c", "invoke", 1).update(hash=hashed("else"))),
    ("I5", "for another object", lambda s: nth(s, "a", "invoke", 5).update(object=REGISTER)),
    ("I6", "two of one sender, exchanged", lambda s: both(s, lambda m: [
        nth(s, m, "deliver", 5).update(ticket=5), nth(s, m, "deliver", 6).update(ticket=4)])),
    ("I6", "the first is missing", rename),
    ("I6", "one is missing", lambda s: [
        record.update(ticket=record["ticket"] + 1)
        for history in s.all() for record in history.records
        if record["kind"] == "deliver" and record["sender"].endswith("61") and record["ticket"] > 5
    ]),
    ("I8", "acknowledged, nowhere", lambda s: s.tell("a", "ok", ticket=77, value=None)),
    ("I8", "acknowledged by a crashed member", zombie_ok),
    ("I8", "readable at a crashed member alone", lambda s: add_deliver(
        s, "c", gseq=1000, ticket=s.invoke("c", COUNTER, "Counter.add", (1,))[1])),
    ("I10", "a value from nowhere", lambda s: nth(s, "b", "read", 2).update(value="never")),
    ("I10", "of a write that was not ordered", lambda s: [
        s.invoke("c", REGISTER, "Register.swap", ("lost",)),
        nth(s, "b", "read", 3).update(value="lost")]),
    ("I10", "at the joiner", lambda s: nth(s, "d", "read", -1, object=REGISTER).update(value="?")),
    ("I11", "one less before the view", lambda s: without(s, "b", nth(s, "b", "deliver", 18))),
    ("I11", "another before the view", lambda s: deliver_other(s, "b", 18, gseq=500)),
    ("I11", "one more before the view", lambda s: repeat(s, "a", "deliver", 18)),
    ("I12", "in another view", lambda s: deliver_other(s, "c", 5, view=2)),
    ("I12", "in a view that no member has", lambda s: deliver_other(s, "abd", -1, view=9)),
    ("I12", "from a member that has not joined yet", lambda s: deliver_other(
        s, "abc", 9, sender=s.histories["d"].incarnation)),
    ("I13", "a view goes back", lambda s: swap(
        s, "a", nth(s, "a", "view", 0), nth(s, "a", "view", 1))),
    ("I13", "without oneself", lambda s: both(s, lambda m: nth(s, m, "view", 1).update(
        members=nth(s, "a", "view", 1)["members"][:1]))),
    ("I13", "another sequencer", lambda s: nth(s, "b", "view", 1).update(
        sequencer=s.histories["b"].incarnation)),
    ("I14", "after another packet", lambda s: nth(s, "b", "view", 1).update(gseq=3)),
    ("I14", "later", lambda s: nth(s, "a", "view", 2).update(gseq=400)),
    ("I14", "earlier", lambda s: nth(s, "b", "view", 3).update(gseq=1)),
    ("I15", "two of one number", lambda s: fork(s, "c", number=2)),
    ("I15", "two of a later number", lambda s: fork(s, "c", number=3)),
    ("I15", "a minority goes on", minority),
    ("I16", "acknowledged after its time", zombie_ok),
    ("I16", "acknowledged, then expelled", zombie_delivers),
    ("I16", "another object's", lambda s: zombie_ok(s, "register")),
    ("I18", "another state", lambda s: nth(s, "b", "state", 0).update(digest="00")),
    ("I18", "of an object without model", lambda s: [
        s.tell("a", "state", object=COUNTER, digest="11")]),
    ("I18", "at the joiner", lambda s: nth(s, "d", "state", 3).update(digest="22")),
    ("I19", "its guard was false", wake_too_early),
    ("I19", "never woken at one", lambda s: without(
        s, "b", nth(s, "b", "apply", 0, operation="Queue.take"))),
    ("I19", "delivered, did not run", lambda s: without(
        s, "a", nth(s, "a", "apply", -1, operation="Counter.add"))),
    ("I20", "a wrong result", lambda s: nth(s, "c", "ok", 1).update(value=1000)),
    ("I20", "an exception instead", lambda s: nth(s, "a", "ok", -2).update(
        error="ValueError: no")),
    ("I20", "acknowledged before invoked", lambda s: later_time(s, "a", "invoke", 5, 10_000)),
    ("I21", "an old value", lambda s: nth(s, "c", "read", 3).update(value=2)),
    ("I21", "another register's value", lambda s: nth(s, "b", "read", 4).update(value="a0")),
    ("I21", "money from nowhere", lambda s: nth(s, "d", "read", 0, object=BANK).update(value=21)),
    ("I22", "not its own write", lambda s: nth(s, "b", "read", 4).update(value="a0")),
    ("I22", "older than the read before", lambda s: nth(s, "b", "read", 5).update(gseq=2)),
    ("I22", "older than its own write", lambda s: nth(s, "b", "read", 1).update(gseq=1)),
    ("I25", "another result", lambda s: nth(s, "b", "apply", 9).update(result="00")),
    ("I25", "another exception", lambda s: nth(
        s, "a", "apply", 0, operation="Bank.move").update(error="ValueError: else")),
    ("I25", "at the joiner", lambda s: nth(s, "d", "apply", 0).update(result="11")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("invariant", "spoil"),
    [pytest.param(i, spoil, id=f"{i}-{what}".replace(" ", "-")) for i, what, spoil in SPOILED],
)
def test_what_is_wrong_is_found(invariant: str, spoil: Spoil) -> None:
    scene = good_scene()
    spoil(scene)
    assert invariant in wrong(scene)


def test_each_invariant_has_three_ways_to_break_it() -> None:
    for invariant in {invariant for invariant, _, _ in SPOILED}:
        assert sum(name == invariant for name, _, _ in SPOILED) >= 3


# Linearizability.


def test_the_order_as_witness() -> None:
    assert out_of_time([0, 1, 2], [5, 6, 7]) == []
    assert out_of_time([0, 4, 2], [5, 6, 3]) == [1]  # the last had returned at 3
    assert out_of_time([10, 20, 0], [15, 25, 5]) == [0, 1]


def test_a_million_operations_by_the_order() -> None:
    """The aim is a second; the rate is printed and not asserted, since timing decides nothing here."""
    invoked = list(range(1_000_000))
    returned = [t + 1000 for t in invoked]
    began = time.perf_counter()
    assert out_of_time(invoked, returned) == []
    print(f"{1_000_000 / (time.perf_counter() - began):,.0f} operations a second")
    invoked[500] = 2000
    assert out_of_time(invoked, returned) == [500]


def brute(calls: list[Call], model: Model, start: State) -> bool:
    """The definition: some order of all that are known, and of some that are not."""
    known = [call for call in calls if call.returned != NEVER]
    unknown = [call for call in calls if call.returned == NEVER]
    for count in range(len(unknown) + 1):
        for more in itertools.combinations(unknown, count):
            for order in itertools.permutations([*known, *more]):
                if _explains(order, model, start):
                    return True
    return False


def _explains(order: tuple[Call, ...], model: Model, start: State) -> bool:
    state = start
    for i, call in enumerate(order):
        if any(later.returned < call.invoked for later in order[i:]):
            return False
        if not model.ready(state, call.operation, call.args):
            return False
        state, value = model.step(state, call.operation, call.args)
        result = value.error if isinstance(value, Refused) else value
        if call.returned != NEVER and result != call.value:
            return False
    return True


def random_calls(rng: random.Random) -> tuple[list[Call], Model, State]:
    """A few calls at random times, with results that may be right."""
    kind = rng.randrange(3)
    calls = []
    for number in range(rng.randrange(1, 6)):
        begin = rng.randrange(20)
        end = NEVER if rng.random() < 0.2 else begin + rng.randrange(1, 15)
        if kind == 0:
            value = rng.choice(["", "0", "1", "2"])
            calls.append(Call(begin, end, "swap", (str(number),), value))
        elif kind == 1:
            calls.append(Call(begin, end, "add", (1,), rng.randrange(1, 5)))
        elif rng.random() < 0.5:
            calls.append(Call(begin, end, "put", (str(number),), None))
        else:
            calls.append(Call(begin, end, "take", (), rng.choice(["0", "1", "2"])))
    model: Model = (Register(), Counter(), Queue())[kind]
    return calls, model, model.start(())


def test_the_search_finds_what_the_definition_says() -> None:
    rng = random.Random(7)
    answers = {True: 0, False: 0}
    for _ in range(1500):
        calls, model, start = random_calls(rng)
        answer = linearizable(calls, model, start)
        assert answer == brute(calls, model, start), calls
        answers[bool(answer)] += 1
    assert min(answers.values()) > 100


@pytest.mark.parametrize(
    ("calls", "model"),
    [
        pytest.param([Call(0, 1, "swap", ("a",), ""), Call(2, 3, "swap", ("b",), "")],
                     Register(), id="a-stale-swap"),
        pytest.param([Call(0, 9, "add", (1,), 1), Call(0, 9, "add", (1,), 1)],
                     Counter(), id="a-lost-update"),
        pytest.param([Call(0, 1, "put", ("a",)), Call(2, 3, "put", ("b",)),
                      Call(4, 5, "take", (), "b")], Queue(), id="not-first-in-first-out"),
        pytest.param([Call(0, 1, "put", ("a",)), Call(2, 3, "take", (), "a"),
                      Call(2, 3, "take", (), "a")], Queue(), id="taken-twice"),
    ],
)  # fmt: skip
def test_what_no_order_explains(calls: list[Call], model: Model) -> None:
    assert linearizable(calls, model, model.start(())) is False


def test_ten_thousand_calls_are_searched() -> None:
    rng = random.Random(3)
    calls = []
    for number in range(10_000):  # overlapping, in an order that is not that of the invocations
        begin = number * 10 - rng.randrange(40)
        calls.append(Call(begin, number * 10 + 5, "add", (1,), number + 1))
    assert linearizable(calls, Counter(), 0) is True
    calls[5000] = Call(calls[5000].invoked, calls[5000].returned, "add", (1,), 4000)
    assert linearizable(calls, Counter(), 0) is False


def test_calls_of_unknown_outcome_are_not_tried_at_each_place() -> None:
    """Ten of them may come in any order: what a member has under way as it is killed."""
    calls = [Call(0, NEVER, "swap", (f"lost {number}",)) for number in range(10)]
    before = ""
    for number in range(300):
        if number == 200:
            before = "lost 7"  # which has run after all
        calls.append(Call(10 * number + 1, 10 * number + 5, "swap", (str(number),), before))
        before = str(number)
    assert linearizable(calls, Register(), "") is True
    calls.append(Call(4000, 4001, "swap", ("last",), "lost 9"))
    assert linearizable(calls, Register(), "") is True


# Files.


def write(folder: Path, history: History, end: str = "") -> None:
    """As a member would have."""
    first = {"kind": "member", "t": 0, "group": "default", "rank": history.rank}
    lines = [first | {"incarnation": history.incarnation, "pid": 1}, *history.records]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    name = f"default-{history.rank}-{history.incarnation}.jsonl"
    (folder / name).write_text(text + end)


def test_a_folder_is_checked(tmp_path: Path) -> None:
    for history in good_scene().all():
        write(tmp_path, history, '{"kind": "del' if history.rank == 2 else "")
    assert check_folder(tmp_path, 1, model_of=model_of).violations == []
    assert len(load(tmp_path)) == 4
    assert load(tmp_path, "another") == []


def test_a_line_that_is_cut_short_within_a_file_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, good_scene().histories["a"], "{\n")
    with pytest.raises(ValueError, match="no record"):
        load(tmp_path)
