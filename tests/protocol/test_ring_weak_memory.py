"""The pairs of the order in shared memory that need more than acquire and release, in the model of C11.

Each is the sequence of atomic steps of two functions of `transport/ring`, in all executions that C11 allows; and
once more with a step left out or weaker, in which what must not be can be: so the step is needed.
"""

from __future__ import annotations

import pytest

from tests.lib.weak_memory import (
    ACQUIRE,
    ORDERED,
    RELAXED,
    RELEASE,
    Program,
    Step,
    fence,
    load,
    store,
    swap,
)

Threads = list[list[Step]]
Found = dict[str, int]


def wakes(*, sleeper_fence: bool = True, look: str = ORDERED) -> Threads:
    """`ring_append` and `ring_wake`, beside `ring_arm`: the slot, and the sleepers' bits."""
    return [
        [swap("slot", 1), load("sleepers", look, "bits")],
        [swap("sleepers", 1), *([fence()] if sleeper_fence else []), load("slot", ACQUIRE, "news")],
    ]


def interests(*, sleeper_fence: bool = True, look: str = ORDERED) -> Threads:
    """The same if the bit was set before: the slot, and what the sleeper wants news of, which it has widened."""
    return [
        [swap("slot", 1), load("sleepers", look, "bits"), load("interest", look, "wants")],
        [
            store("interest", 1, RELAXED),
            swap("sleepers", 1),
            *([fence()] if sleeper_fence else []),
            load("slot", ACQUIRE, "news"),
        ],
    ]


def loops(*, look: str = ORDERED) -> Threads:
    """The same with an eventfd, `ring_use_eventfd` and `ring_arm_eventfd`: `loops`, then the holder's word."""
    return [
        [swap("slot", 1), load("loops", look, "loop"), load("holder", look, "armed")],
        [swap("loops", 1), swap("holder", 1), fence(), load("slot", ACQUIRE, "news")],
    ]


def room(*, look: str = ORDERED, waiter_fence: bool = True) -> Threads:
    """`ring_advance` beside `ring_wait_for_room`: how far a member is, and the waiters' bits."""
    return [
        [swap("applied", 1), load("waiters", look, "bits")],
        [
            swap("waiters", 1),
            *([fence()] if waiter_fence else []),
            load("applied", ACQUIRE, "position"),
        ],
    ]


def late_reader(*, writer_fence: bool = True, reader_fence: bool = True) -> Threads:
    """`ring_strike`; a writer that has seen it in `ring_renew_least` uses the lane again; `ring_is_in`."""
    return [
        [swap("state", 1)],
        [
            load("state", ACQUIRE, "struck"),
            *([fence()] if writer_fence else []),
            store("bytes", 1, RELAXED),
        ],
        [
            load("bytes", RELAXED, "new"),
            *([fence(ACQUIRE)] if reader_fence else []),
            load("state", ORDERED if reader_fence else RELAXED, "out"),
        ],
    ]


def lazy(*, alarm: str = ORDERED) -> Threads:
    """`ring_wake_at_half` beside a lazy `ring_doze`: the half's slot, and the alarm on which it sleeps."""
    return [
        [swap("slot", 1), swap("alarm", 1)],
        [load("alarm", alarm, "alarm"), load("slot", ACQUIRE, "news")],
    ]


def packet(*, append: str = ORDERED, look: str = ACQUIRE) -> Threads:
    """`ring_append` beside `ring_next`: the bytes are there before the slot leads to them."""
    return [
        [store("bytes", 1, RELAXED), swap("slot", 1, append)],
        [load("slot", look, "slot"), load("bytes", RELAXED, "bytes")],
    ]


def begins(*, look: str = ORDERED) -> Threads:
    """`ring_say_begun` and `ring_not_begun` of the last two that begin a view: one of them sees that all have, and wakes."""
    return [
        [swap("mine", 1), load("yours", look, "a")],
        [swap("yours", 1), load("mine", look, "b")],
    ]


def begun(*, listens_first: bool = True) -> Threads:
    """The last one that begins a view, which alarms the others; one that reads its alarm, looks once more, and sleeps."""
    alarm, look = load("alarm", ORDERED, "alarm"), load("begun", ORDERED, "begun")
    return [
        [swap("begun", 1), swap("alarm", 1)],
        [alarm, look] if listens_first else [look, alarm],
    ]


def holds(threads: Threads, **found: int) -> bool:
    """Whether an execution has all of these findings."""
    outcomes = [dict(outcome) for outcome in Program(*threads).outcomes()]
    assert len(outcomes) > 1
    return any(found.items() <= outcome.items() for outcome in outcomes)


ASLEEP: Found = {"bits": 0, "news": 0}
"""A sleeper that saw no news, and a writer that saw no sleeper."""

CASES: list[tuple[str, Threads, list[Threads], Found]] = [
    ("wakes", wakes(), [wakes(sleeper_fence=False), wakes(look=ACQUIRE)], ASLEEP),
    (
        "interests",
        interests(),
        [interests(sleeper_fence=False), interests(look=ACQUIRE)],
        {"wants": 0, "news": 0},
    ),
    ("loops", loops(), [loops(look=ACQUIRE)], {"loop": 0, "news": 0}),
    ("armed", loops(), [loops(look=ACQUIRE)], {"armed": 0, "news": 0}),
    (
        "room",
        room(),
        [room(look=ACQUIRE), room(waiter_fence=False)],
        {"bits": 0, "position": 0},
    ),
    (
        "late reader",
        late_reader(),
        [late_reader(writer_fence=False), late_reader(reader_fence=False)],
        {"struck": 1, "new": 1, "out": 0},
    ),
    ("lazy", lazy(), [lazy(alarm=RELAXED)], {"alarm": 1, "news": 0}),
    ("begins", begins(), [begins(look=ACQUIRE)], {"a": 0, "b": 0}),
    ("begun", begun(), [begun(listens_first=False)], {"alarm": 1, "begun": 0}),
    ("packet", packet(), [packet(look=RELAXED), packet(append=RELAXED)], {"slot": 1, "bytes": 0}),
]


@pytest.mark.parametrize(
    ("sound", "weaker", "wrong"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_must_not_be_cannot_be_in_c11_and_each_step_is_needed(
    sound: Threads, weaker: list[Threads], wrong: Found
) -> None:
    assert not holds(sound, **wrong)
    for threads in weaker:
        assert holds(threads, **wrong)


@pytest.mark.parametrize(
    ("order", "is_allowed"), [(RELAXED, True), (ACQUIRE, True), (ORDERED, False)]
)
def test_the_model_knows_store_buffering(order: str, is_allowed: bool) -> None:
    """The example of the literature: two stores, each before a load of the other's place."""
    write = RELEASE if order == ACQUIRE else order
    threads = [
        [store("x", 1, write), load("y", order, "a")],
        [store("y", 1, write), load("x", order, "b")],
    ]
    assert holds(threads, a=0, b=0) is is_allowed


def test_the_model_knows_that_two_swaps_do_not_both_win() -> None:
    threads = [[swap("slot", 1, reads="a")], [swap("slot", 2, reads="b")]]
    assert not holds(threads, a=0, b=0)
    assert holds(threads, a=0, b=1)
