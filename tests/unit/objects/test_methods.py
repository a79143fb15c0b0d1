"""Methods of several steps, and those that make arguments ready: how they look, and what they lack."""

from __future__ import annotations

import copy
import inspect
import pydoc
import re
from typing import Any

import pytest

from orcalike.objects import Dict, List, Queue


@pytest.mark.parametrize(
    ("cls", "name", "parameters", "returned"),
    [
        (Queue, "get", "block: 'bool' = True, timeout: 'Duration | None' = None", "T"),
        (Queue, "put_nowait", "item: 'T'", "None"),
        (List, "extend", "values: 'Iterable[T]', /", "None"),
        (Dict, "update", None, "None"),
    ],
)
def test_they_have_name_docstring_and_signature(
    cls: Any, name: str, parameters: str | None, returned: str
) -> None:
    in_class, bound = getattr(cls, name), getattr(cls(), name)
    for method in (in_class, bound):
        assert method.__name__ == name
        assert method.__qualname__.endswith(f".{name}")
        assert inspect.cleandoc(method.__doc__) == inspect.getdoc(method)
        assert inspect.signature(method).return_annotation == returned
    if parameters is not None:
        assert str(inspect.signature(bound)).startswith(f"({parameters}) ->")
        assert str(inspect.signature(in_class)).startswith(f"(self, {parameters}) ->")
    shown = pydoc.plain(pydoc.render_doc(cls))
    signature = f"{name}{inspect.signature(in_class)}"
    assert signature in shown or without_breaks(signature) in without_breaks(shown)
    assert in_class.__doc__.splitlines()[0] in shown
    assert in_class.__module__.startswith("orcalike.objects.")


def without_breaks(text: str) -> str:
    """A signature without spaces: from CPython 3.13 on `help` shows a long one in several lines."""
    return re.sub(r"[ \n|]|,(?=[ \n|]*\))", "", text)


def test_operations_have_a_module() -> None:
    operation: Any = Queue.qsize
    assert operation.__module__ == Queue[int]().qsize.__module__ == Queue.__module__


def test_they_can_be_called_with_an_object_as_those_of_any_class() -> None:
    of_lists: Any = List
    of_queues: Any = Queue
    numbers, jobs = of_lists([1]), of_queues()
    of_lists.extend(numbers, [2])
    of_queues.put(jobs, 3)
    assert (numbers, of_queues.get(jobs)) == ([1, 2], 3)


@pytest.mark.parametrize(
    ("cls", "name", "lacks", "words"),
    [
        (
            Queue,
            "put",
            "nowait",
            r"^Queue\.put takes several steps: it has aio, and neither .* options; ",
        ),
        (Queue, "put", "options", r"nor options; a limit is put\(\.\.\., timeout=2\)$"),
        (List, "sort", "nowait", "neither nowait nor options$"),
        (Queue, "put", "aoi", r"^Queue\.put has no attribute 'aoi'$"),
        (List, "extend", "aoi", r"^List\.extend has no attribute 'aoi'$"),
    ],
)
def test_what_they_lack_is_named(cls: Any, name: str, lacks: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(getattr(cls(), name), lacks)
    assert not hasattr(getattr(cls(), name), lacks)


def test_a_method_of_several_steps_shows_its_object() -> None:
    assert repr(Queue[int]().get) == "<Queue.get of <Queue of 0 items>>"
    assert Queue[int]().get.__self__.empty()


def test_one_of_an_object_can_be_copied() -> None:
    """`copy` makes an empty instance first, which has no attributes yet."""
    jobs, numbers = Queue[int](), List([1])
    copy.copy(jobs.put)(1)
    copy.copy(numbers.extend)([2])
    assert jobs.qsize() == 1
    assert numbers == [1, 2]
