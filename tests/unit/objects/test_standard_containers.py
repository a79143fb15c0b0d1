"""CPython's own tests of list, dict, set and deque, passed by what is named after them.

Three times each: on objects that are not shared, shared in a group of one, and in a group of three
whose replicas are compared after each test.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orcalike.objects.deques import Deque
from orcalike.objects.dicts import Dict
from orcalike.objects.lists import List
from orcalike.objects.sets import Set
from tests.unit.objects.members import Lab, members
from tests.unit.objects.standard import adapted, sharing

reason = "this interpreter comes without the package `test`"
list_tests: Any = pytest.importorskip("test.list_tests", reason=reason)
mapping_tests: Any = pytest.importorskip("test.mapping_tests", reason=reason)
test_deque: Any = pytest.importorskip("test.test_deque", reason=reason)
test_set: Any = pytest.importorskip("test.test_set", reason=reason)

OWN = "its items are of a class of the test's own, which does not travel"
PLAIN = "a copy is a plain one"
SNAPSHOT = "an iteration is over what the object holds at one place in the order"
PICKLE = "a shared object is not pickled; its plain copy can be"
KEPT = "the group keeps the object as long as it is not dropped"
CPYTHON = "it tests how CPython lays its own type out"

NEVER = {
    "list": {
        "test_exhausted_iterator": SNAPSHOT,
        "test_extend": "a length hint of sys.maxsize is believed",
    },
    "dict": {
        "test_copy": PLAIN,
        "test_fromkeys": "the keys are set in one write, not by __setitem__",
    },
    "set": {
        "test_do_not_rehash_dict_keys": CPYTHON,
        "test_remove_keyerror_set": "a set that is looked up travels as a frozenset",
    },
    "deque": {
        "test_iter_with_altered_data": SNAPSHOT,
        "test_iterator_pickle": CPYTHON,
        "test_reversed_new": CPYTHON,
        "test_runtime_error_on_empty_deque": SNAPSHOT,
        "test_sizeof": CPYTHON,
    },
}
"""Which tests cannot apply, by type and name, and why."""

NOT_SHARED = {
    "list": {
        **dict.fromkeys(("test_contains_fake", "test_contains_order", "test_count"), OWN),
        **dict.fromkeys(("test_index", "test_remove"), OWN),
        "test_pickle": PICKLE,
    },
    "dict": dict.fromkeys(
        ("test_eq", "test_getitem", "test_pop", "test_repr", "test_setdefault"), OWN
    ),
    "set": {
        **dict.fromkeys(("test_badcmp", "test_cyclical_repr", "test_deepcopy"), OWN),
        "test_pickling": PICKLE,
        "test_weakref": KEPT,
    },
    "deque": {
        **dict.fromkeys(("test_container_iterator", "test_contains"), OWN),
        **dict.fromkeys(("test_contains_count_stop_crashes", "test_count", "test_index"), OWN),
        "test_contains_count_index_stop_crashes": OWN,
        **dict.fromkeys(("test_remove", "test_contains_fake", "test_contains_order"), OWN),
        **dict.fromkeys(("test_pickle", "test_pickle_recursive"), PICKLE),
        "test_deepcopy": "a shared object has no other one beside it to be copied to",
    },
}
"""Which cannot if the objects are shared."""

OUTSIDE = "it changes the object otherwise than by its operations"
DEEP = "thousands of objects in one another"
LONG = "tens of thousands of writes, which run on an object that is not shared"

SKIPPED = {
    "list": {"test_init": OUTSIDE, "test_repr_deep": DEEP},
    "dict": {"test_setdefault": OUTSIDE, "test_repr_deep": DEEP},
    "set": {"test_init": OUTSIDE, "test_pickling": OUTSIDE},
    "deque": {
        "test_basics": OUTSIDE,
        **dict.fromkeys(("test_big_queue_popleft", "test_big_queue_popright"), LONG),
        **dict.fromkeys(("test_big_stack_left", "test_big_stack_right"), LONG),
        "test_long_steadystate_queue_popleft": LONG,
        "test_long_steadystate_queue_popright": LONG,
    },
}
"""Which are not run if the objects are shared: the replicas differ after most, as they must."""

LIFETIME = {"test_free_after_iterating": CPYTHON, "test_gc_doesnt_blowup": CPYTHON}

ALONE, THREE = Lab([]), Lab([])
LABS: dict[str, Lab | None] = {"Unshared": None, "Alone": ALONE, "Three": THREE}


@pytest.fixture(scope="module", autouse=True)
def groups() -> Iterator[None]:
    """The groups that share what the tests make."""
    with members(1) as ALONE.groups, members(3) as THREE.groups:
        yield


def _with_deque(case: type[Any], deque_type: type[Any]) -> Callable[[unittest.TestCase], None]:
    """A `setUp` that puts a type in the place of the module's `deque`."""

    def begin(self: unittest.TestCase) -> None:
        self.addCleanup(setattr, test_deque, "deque", test_deque.deque)
        test_deque.deque = deque_type
        case.setUp(self)

    return begin


def _cases(mode: str, lab: Lab | None) -> Iterator[tuple[str, type[unittest.TestCase]]]:
    """CPython's cases for the objects of one group."""
    list_type, dict_type, set_type, deque_type = (
        cls if lab is None else sharing(cls, lab) for cls in (List, Dict, Set, Deque)
    )
    parts: list[tuple[str, Any, dict[str, Any]]] = [
        ("list", list_tests.CommonTest, {"type2test": list_type}),
        ("dict", mapping_tests.BasicTestMappingProtocol, {"type2test": dict_type}),
        ("dict", mapping_tests.TestMappingProtocol, {"type2test": dict_type}),
        ("dict", mapping_tests.TestHashMappingProtocol, {"type2test": dict_type}),
        ("set", test_set.TestSet, {"thetype": set_type, "basetype": set}),
        ("deque", test_deque.TestBasic, {}),
        ("deque", test_deque.TestVariousIteratorArgs, {}),
        ("deque", test_deque.TestSequence, {"type2test": deque_type}),
    ]
    for kind, case, attributes in parts:
        failing = NEVER[kind] | (NOT_SHARED[kind] if lab is not None else {})
        skipped = LIFETIME | (SKIPPED[kind] if lab is not None else {})
        failing = {name: why for name, why in failing.items() if (case.__name__, name) not in PASS}
        title = f"{mode}{kind.capitalize()}{case.__name__}"
        if kind == "deque":
            attributes["setUp"] = _with_deque(case, deque_type)
        attributes["__module__"] = __name__
        yield title, adapted(case, title, lab, failing, skipped, **attributes)


PASS = {
    *(("BasicTestMappingProtocol", name) for name in ("test_getitem", "test_pop")),
    *(("TestMappingProtocol", name) for name in ("test_getitem", "test_pop")),
    *(("TestSequence", name) for name in ("test_contains", "test_remove")),
}
"""Names under which another case has a test that applies."""

for _mode, _lab in LABS.items():
    globals().update(_cases(_mode, _lab))
