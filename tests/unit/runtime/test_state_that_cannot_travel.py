"""A state that no joiner could get is refused where it comes about, to the caller that made it."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime.giving import Donor


@dataclass
class Unknown:
    """It is not registered."""

    x: int = 0


@orca.shared
class Made:
    """Its constructor makes a state of that kind."""

    def __init__(self, kind: str) -> None:
        self.value: Any = make(kind)


@orca.shared
class Keeper:
    """Its operations make them, and put them somewhere."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {"a": 1}
        self.listed: list[Any] = [1]
        self.queued: deque[Any] = deque()
        self.hidden: list[Any] = [[1], [2]]
        self.value: Any = None

    @orca.read
    def get(self) -> Any:
        return self.value

    @orca.write
    def assign(self, kind: str) -> int:
        self.value = make(kind)
        return 1

    @orca.write
    def insert(self, key: str, kind: str) -> None:
        self.values[key] = make(kind)

    @orca.write
    def append(self, kind: str) -> None:
        self.listed.append(make(kind))

    @orca.write
    def enqueue(self, kind: str) -> None:
        self.queued.append({"in": make(kind)})

    @orca.write
    def hide(self, kind: str) -> None:
        self.hidden[0].insert(0, make(kind))

    @orca.write(popup=True)
    def assign_slowly(self, kind: str) -> None:
        self.value = make(kind)

    @orca.write
    def assign_when(self, kind: str) -> None:
        self.value = make(kind)

    @assign_when.when
    def _(self, kind: str) -> bool:
        return bool(self.values)

    @orca.write
    def clear(self) -> None:
        self.value, self.queued = None, deque()


@orca.shared
class Slotted:
    """It has no dict of attributes."""

    __slots__ = ("__weakref__", "value")

    def __init__(self) -> None:
        self.value: Any = None

    @orca.write
    def assign(self, kind: str) -> None:
        self.value = make(kind)


@orca.shared
class Snapped:
    """What it gives is of its own making."""

    def __init__(self) -> None:
        self.lock: Any = make("unregistered")
        self.kind = "plain"

    @orca.read
    def get(self) -> str:
        return self.kind

    @orca.write
    def assign(self, kind: str) -> None:
        self.kind = kind

    def snapshot(self) -> Any:
        return make(self.get())

    @classmethod
    def restore(cls, state: Any) -> Snapped:
        return cls()


@orca.atomic
def assign_both(one: Keeper, other: Keeper, kind: str) -> None:
    """Put it into both."""
    one.assign(kind)
    other.assign(kind)


MAKERS: dict[str, Any] = {
    "plain": lambda: [1, {"a": (2.0, None)}],
    "unregistered": Unknown,
    "factory": lambda: defaultdict(lambda: 0),
    "right factory": lambda: defaultdict(list),
    "function": lambda: make,
    "iterator": lambda: iter([]),
    "nested": lambda: [{"a": {1: Unknown()}}],
}


def make(kind: str) -> Any:
    """A value of that kind."""
    return MAKERS[kind]()


WRONG = [kind for kind in MAKERS if kind not in ("plain", "right factory")]


@pytest.mark.parametrize("kind", WRONG)
def test_an_object_that_begins_so_is_not_shared(group: orca.Group, kind: str) -> None:
    with pytest.raises(orca.NotSerializable, match=r"the state of 'made', \[\"value\"\].* cannot"):
        group.share(Made, "made", kind)
    group.fence()
    made = group.share(Made, "made", "plain")
    assert made.value == make("plain")


@pytest.mark.parametrize("warm", [0, 20])
@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize(
    "operation", ["assign", "append", "enqueue", "assign_slowly", "assign_when"]
)
def test_the_write_that_makes_it_so_says_so(
    group: orca.Group, operation: str, kind: str, warm: int
) -> None:
    """With the first call of an operation, and when it was called often without harm."""
    keeper = group.share(Keeper, "keeper")
    for _ in range(warm):
        getattr(keeper, operation)("plain")
    with pytest.raises(orca.NotSerializable, match="the state of 'keeper'") as caught:
        getattr(keeper, operation)(kind)
    assert f"Keeper.{operation} has run" in str(caught.value)


def test_one_of_a_type_that_travelled_before_is_seen(group: orca.Group) -> None:
    keeper = group.share(Keeper, "keeper")
    for _ in range(4):
        keeper.assign("right factory")
    with pytest.raises(orca.NotSerializable, match="makes its values with <function"):
        keeper.assign("factory")


def test_a_new_entry_is_seen_though_others_are_gone(group: orca.Group) -> None:
    keeper = group.share(Keeper, "keeper")
    for number in range(20):
        keeper.insert(str(number), "plain")
    with pytest.raises(orca.NotSerializable, match=r'\["values"\]\["new"\]'):
        keeper.insert("new", "function")


def test_what_is_hidden_is_found_with_the_first_call_or_later(group: orca.Group) -> None:
    keeper = group.share(Keeper, "keeper")
    with pytest.raises(orca.NotSerializable, match=r'\["hidden"\]\[0\]\[0\]'):
        keeper.hide("function")
    other = group.share(Keeper, "other")
    other.hide("plain")
    calls = [other.hide.nowait("function") for _ in range(100)]
    group.fence()
    assert any(r'["hidden"][0]' in str(call.exception()) for call in calls)


def test_atomic_functions_and_other_shapes_of_objects(group: orca.Group) -> None:
    one, other = group.share(Keeper, "one"), group.share(Keeper, "other")
    assign_both(one, other, "plain")
    with pytest.raises(orca.NotSerializable, match="assign_both has run"):
        assign_both(one, other, "function")
    slotted = group.share(Slotted, "slotted")
    with pytest.raises(orca.NotSerializable, match="'slotted'"):
        slotted.assign("function")
    snapped = group.share(Snapped, "snapped")
    with pytest.raises(orca.NotSerializable, match="'snapped'"):
        snapped.assign("function")


def test_it_is_right_again_when_the_state_is(group: orca.Group) -> None:
    keeper = group.share(Keeper, "keeper")
    for _ in range(3):
        with pytest.raises(orca.NotSerializable):
            keeper.assign("function")
    keeper.clear()
    assert keeper.assign("plain") == 1
    pieces = b"".join(piece for piece in Donor(group._runtime).give())
    assert pieces


def test_references_to_shared_objects_are_no_trouble(group: orca.Group) -> None:
    keeper, made = group.share(Keeper, "keeper"), group.share(Made, "made", "plain")
    MAKERS["reference"] = lambda: made
    try:
        assert keeper.assign("reference") == 1
        keeper.append("reference")
        keeper.enqueue("reference")
    finally:
        del MAKERS["reference"]


def test_what_a_later_write_makes_is_found_by_one_of_the_next(group: orca.Group) -> None:
    """After the first writes of a member only one in some is looked at: none waits for a joiner."""
    keeper = group.share(Keeper, "keeper")
    for _ in range(200):
        keeper.assign("plain")
    calls = [keeper.assign.nowait("function") for _ in range(128)]
    group.fence()
    refused = [str(call.exception()) for call in calls if call.exception() is not None]
    assert refused
    assert "perhaps an earlier call made it so" in refused[0]
