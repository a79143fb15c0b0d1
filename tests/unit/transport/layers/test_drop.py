"""DROP: it loses, repeats, delays and reorders as its arguments say, by the stack's own rng."""

from __future__ import annotations

import pytest

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message

COUNT = 1_000


class Top(Layer):
    """Keeps what comes up."""

    got: list[bytes]

    def up_cast(self, message: Message) -> None:
        self.got.append(message.body)


def pass_through(text: str, seed: int = 1) -> list[bytes]:
    """What comes up of 1,000 casts, one each 10 ns, and then of what was held."""
    stack = Stack(parse_stack(f"{text}:COM:sim"), StackConfig("group"), Member("sim:a", 1), seed)
    top = Top(stack)
    top.got = []
    stack.above = top
    for i in range(COUNT):
        stack.expire(10 * i)
        stack.layers[0].up_cast(Message(str(i).encode()))
    while stack.deadline is not None:
        stack.expire(stack.deadline)
    assert stack.dump()["DROP"]["held"] == 0
    return top.got


SENT = [str(i).encode() for i in range(COUNT)]


def test_without_parameters_all_passes() -> None:
    assert pass_through("DROP") == SENT


def test_lose() -> None:
    got = pass_through("DROP(lose=30)")
    assert 0.6 * COUNT < len(got) < 0.8 * COUNT
    assert got == [body for body in SENT if body in set(got)]
    assert pass_through("DROP(lose=100)") == []


def test_repeat() -> None:
    got = pass_through("DROP(repeat=30)")
    assert 1.2 * COUNT < len(got) < 1.4 * COUNT
    assert sorted(set(got)) == sorted(SENT)


@pytest.mark.parametrize("percent", [1, 50, 100])
def test_delay_keeps_the_order(percent: int) -> None:
    assert pass_through(f"DROP(delay={percent},span=1000)") == SENT


def test_reorder() -> None:
    got = pass_through("DROP(reorder=30,span=1000)")
    assert got != SENT
    assert sorted(got) == sorted(SENT)


def test_the_same_seed_takes_the_same_course() -> None:
    text = "DROP(lose=10,repeat=10,delay=10,reorder=10,span=1000)"
    assert pass_through(text, 7) == pass_through(text, 7)
    assert pass_through(text, 7) != pass_through(text, 8)
