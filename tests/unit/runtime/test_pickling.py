"""A shared object cannot be pickled, and its copies are plain; one that is not shared is like any other."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import orcalike as orca
from orcalike.objects import Dict, Lock
from tests.lib.shared_classes import Counter


@orca.shared
class Named:
    """It says itself what it is pickled as."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    @orca.local
    def __reduce__(self) -> Any:
        return (str, ("a name",))


@orca.shared
class Derived(Counter):
    """It has what its base was given."""


class NamedCounter(Counter):
    """A subclass that says it, where its base does not."""

    def __reduce__(self) -> Any:
        return (str, ("a counter",))


@orca.shared
class Stateful:
    """It says what its state is when it is pickled."""

    def __init__(self) -> None:
        self.kept, self.left_out = 1, 2

    @orca.local
    def __getstate__(self) -> dict[str, int]:
        return {"kept": self.kept}


@orca.shared
class Ring:
    """It refers to itself, and to what others refer to, too."""

    def __init__(self, values: list[int]) -> None:
        self.values, self.again = values, values
        self.me = self


@pytest.mark.parametrize("cls", [Counter, Derived, Dict, Lock])
def test_a_shared_object_is_not_pickled(group: orca.Group, cls: Any) -> None:
    shared = group.share(cls, "it")
    words = rf"^'it' \({cls.__name__}\) is shared, and cannot be pickled: .*seeds=group.address.*Manager"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for value in (shared, [1, shared], {"key": (shared,)}):
            with pytest.raises(TypeError, match=words):
                pickle.dumps(value, protocol)
    with pytest.raises(TypeError, match=words):
        pickle._dumps(shared)  # type: ignore[attr-defined]  # the pickler that is written in Python
    group.close()
    with pytest.raises(TypeError, match=words):
        pickle.dumps(shared)


def test_what_goes_to_another_process_raises_at_the_sender(counter: Counter) -> None:
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(TypeError, match=r"seeds=group\.address"),
    ):
        executor.submit(str, counter).result()


@pytest.mark.parametrize("cls", [Counter, Derived])
def test_one_that_is_not_shared_is_pickled(cls: Any) -> None:
    again = pickle.loads(pickle.dumps(cls(3)))
    assert type(again) is cls
    assert again.get() == 3


def test_copies_are_plain(counter: Counter) -> None:
    counter.add(1)
    for make in (copy.copy, copy.deepcopy):
        copied = make(counter)
        assert type(copied) is Counter
        assert copied.add(1) == pickle.loads(pickle.dumps(copied)).get() == 2
        assert counter.get() == 1


def test_a_deep_copy_refers_to_itself() -> None:
    ring: Any = Ring([1])
    copied = copy.deepcopy([ring, ring.values])
    assert copied[0].me is copied[0]
    assert copied[0].values is copied[0].again is copied[1]
    assert copied[1] is not ring.values
    assert copy.copy(ring).me is ring


def test_a_class_may_say_itself_how_it_is_pickled(group: orca.Group) -> None:
    assert pickle.loads(pickle.dumps(group.share(Named, "named"))) == "a name"
    counter: Any = NamedCounter()
    assert pickle.loads(pickle.dumps(counter)) == copy.copy(counter) == "a counter"
    assert not hasattr(Named, "__copy__")


def test_the_state_is_what_the_class_says(group: orca.Group) -> None:
    shared, alone = group.share(Stateful, "stateful"), Stateful()
    assert vars(pickle.loads(pickle.dumps(alone))) == {"kept": 1}
    assert vars(copy.copy(shared)) == vars(copy.deepcopy(alone)) == {"kept": 1}
    with pytest.raises(
        TypeError, match=r"'stateful' \(Stateful\) is shared, and cannot be pickled"
    ):
        pickle.dumps(shared)


def test_an_operation_of_an_object_is_pickled_with_it(group: orca.Group) -> None:
    add = pickle.loads(pickle.dumps(Counter().add))
    assert (add(3), add(4)) == (3, 7)
    shared = group.share(Counter, "counter")
    with pytest.raises(TypeError, match=r"^'counter' \(Counter\) is shared, and cannot be pickled"):
        pickle.dumps(shared.add)
