"""What makes an object runs at each replica: it is checked as operations are."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from orcalike.declare.decorators import local, read, shared
from orcalike.runtime.errors import DeclarationError


def drawn() -> float:
    return random.random()


def numbers() -> list[int]:
    return [1]


def test_a_dataclass_may_finish_its_objects() -> None:
    @shared
    @dataclass
    class Box:
        width: int
        numbers: list[int] = field(default_factory=numbers)
        more: list[int] = field(default_factory=lambda: [2])
        area: int = field(init=False)

        def __post_init__(self) -> None:
            self.area = self.width**2

        @read
        def get(self) -> int:
            return self.area

    box = Box(3)
    assert (box.get(), box.numbers, box.more) == (9, [1], [2])


def test_what_makes_an_object_gives_the_same_at_each_replica() -> None:
    @dataclass
    class Box:
        made: float = field(default_factory=time.time)
        number: uuid.UUID = field(default_factory=uuid.uuid4)
        size: float = field(default_factory=drawn)
        order: float = field(default_factory=lambda: random.random())
        until: float = field(init=False)

        @local
        def __post_init__(self) -> None:
            self.until = time.monotonic()

    with pytest.raises(DeclarationError) as caught:
        shared(Box)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{__file__}:") for line in lines)
    assert [line.partition(": ")[2] for line in lines] == [
        "Box.made is made by time.time, which differs at each replica; use orcalike.now()",
        "Box.number is made by uuid.uuid4, which differs at each replica; use orcalike.random()",
        "what makes Box.size uses random.random, which differs at each replica; use orcalike.random()",
        "what makes Box.order uses random.random, which differs at each replica; use orcalike.random()",
        "Box.__post_init__ uses time.monotonic, which differs at each replica; use orcalike.now()",
    ]


def test_an_object_is_made_of_its_class_alone() -> None:
    class Box:
        @local
        def __new__(cls, size: int) -> Self:
            return super().__new__(cls)

        def __init__(self, size: int) -> None:
            self.size = size

    with pytest.raises(
        DeclarationError, match=r"Box\.__new__ is called with the class alone, .*; write"
    ):
        shared(Box)

    @shared
    class Free:
        @local
        def __new__(cls, *sizes: int, **named: Any) -> Self:
            return super().__new__(cls)

        def __init__(self, size: int) -> None:
            self.size = size

    assert Free(3).size == 3
