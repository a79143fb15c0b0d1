"""Each ready-made object is accepted by the check of classes, and can be shared."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

import orcalike as orca
from orcalike import objects
from orcalike.runtime.classes import lookup_class

NO_OBJECTS = {"ShutDown", "Subscription"}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "Array": ([1.0, 2.0],),
    "Barrier": (1,),
    "Maximum": (0,),
    "Minimum": (0,),
    "Value": (None,),
}


@pytest.mark.parametrize("name", sorted({*objects.__all__} - NO_OBJECTS))
def test_it_can_be_shared(group: orca.Group, name: str) -> None:
    if name == "Array":
        pytest.importorskip("numpy")
    cls = getattr(objects, name)
    shared = group.share(cls, name, *ARGUMENTS.get(name, ()))
    assert group.find(cls, name) is shared
    assert repr(shared)
    info = lookup_class(cls)
    assert info is not None
    assert info.operations


def test_names() -> None:
    assert {*objects.__all__} <= {*dir(objects)}
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = objects.Nothing  # type: ignore[attr-defined]


def test_an_array_without_numpy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.delitem(sys.modules, "orcalike.objects.arrays", raising=False)
    monkeypatch.delitem(vars(objects), "Array", raising=False)  # it was looked up before
    with pytest.raises(ModuleNotFoundError, match=r"Array needs numpy: .* 'orcalike\[numpy\]'"):
        _ = objects.Array


@pytest.mark.parametrize("lock", ["a lock", threading.Lock(), objects.Queue()])
def test_a_condition_has_a_shared_lock(lock: Any) -> None:
    with pytest.raises(TypeError, match="a Condition has a shared Lock or RLock, not "):
        objects.Condition(lock)
