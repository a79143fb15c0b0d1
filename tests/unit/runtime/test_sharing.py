"""Objects come and go: share, find, drop, and what is left when the group is left."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca
from tests.lib.shared_classes import Counter, Fragile, Journal, transfer


@orca.shared
class Labelled:
    """It is made with arguments of each kind."""

    def __init__(self, *labels: str, size: int = 0) -> None:
        self.labels, self.size = labels, size


def test_share_binds_to_what_is_there(
    group: orca.Group, counter: Counter, caplog: pytest.LogCaptureFixture
) -> None:
    assert group.share(Counter, "counter") is counter
    assert group.share.nowait(Counter, "counter").result() is counter
    assert caplog.text == ""
    assert group.share(Counter, "counter", 7) is counter
    (warning,) = caplog.records
    assert "'counter' exists already, made with other arguments" in warning.message
    assert "those given here, as in Counter(7), are not used" in warning.message
    assert counter.get() == 0


def test_other_arguments_are_shown_as_a_call(
    group: orca.Group, caplog: pytest.LogCaptureFixture
) -> None:
    group.share(Labelled, "label", "a", size=3)
    group.share(Labelled, "label", "b")
    group.share(Labelled, "label", "a", "c", size=4)
    given = [record.message.partition("given here, ")[2] for record in caplog.records]
    assert given == [
        "as in Labelled('b'), are not used",
        "as in Labelled('a', 'c', size=4), are not used",
    ]


def test_share_with_another_class(group: orca.Group, counter: Counter) -> None:
    with pytest.raises(
        orca.ClassMismatch, match=r"'counter' is shared as tests\.lib\.shared_classes:Counter"
    ):
        group.share(Journal, "counter")
    assert counter.add() == 1


def test_share_with_arguments_that_do_not_fit(group: orca.Group) -> None:
    with pytest.raises(TypeError, match="positional argument"):
        group.share(Counter, "counter", 1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="not a shared class"):
        group.share(dict, "counter")
    with pytest.raises(TypeError, match="the name of a shared object is a string"):
        group.share(Counter, "")


@pytest.mark.parametrize("name", [5, None, b"counter", ""])
def test_what_is_no_name_raises_before_it_is_sent(group: orca.Group, name: Any) -> None:
    for call in (group.share.nowait, group.find.nowait, group.share, group.find):
        with pytest.raises(TypeError, match="the name of a shared object is a string, not "):
            call(Counter, name)


def test_a_name_stays_free_when_the_constructor_raises(group: orca.Group) -> None:
    with pytest.raises(ValueError, match="-1 is negative") as caught:
        group.share(Fragile, "fragile", -1)
    assert caught.value.__notes__ == ["in Fragile.__init__ of 'fragile'"]
    found = group.find.nowait(Counter, "fragile")
    counter = group.share(Counter, "fragile", 3)
    assert found.result() is counter
    assert counter.add() == 4


def test_find_waits_until_it_exists(group: orca.Group) -> None:
    with pytest.raises(TimeoutError):
        group.find(Counter, "later", timeout=0.01)
    waiting = group.find.nowait(Counter, "later")
    wrong = group.find.nowait(Journal, "later")
    assert not waiting.done()
    counter = group.share(Counter, "later")
    assert waiting.result() is counter
    assert group.find(Counter, "later") is counter
    for mismatch in (wrong, group.find.nowait(Journal, "later")):
        with pytest.raises(orca.ClassMismatch, match=r"tests\.lib\.shared_classes:Journal"):
            mismatch.result()


def test_find_can_be_withdrawn(group: orca.Group) -> None:
    waiting = group.find.nowait(Counter, "never")
    assert waiting.cancel()
    with pytest.raises(orca.InvocationCancelled):
        waiting.result()
    group.share(Counter, "never")


def test_drop_ends_an_object(group: orca.Group, counter: Counter) -> None:
    waiting, reading = counter.take.nowait(5), counter.above.nowait(5)
    group.drop(counter)
    for dropped in (waiting, reading, counter.add.nowait, counter.add, counter.get):
        with pytest.raises(orca.ObjectDropped, match="'counter' was ended"):
            dropped.result() if isinstance(dropped, orca.Invocation) else dropped()
    with pytest.raises(orca.ObjectDropped):
        group.drop(counter)
    again = group.share(Counter, "counter", 5)
    assert again is not counter
    assert again.add() == 6
    with pytest.raises(orca.ObjectDropped):
        transfer(again, counter, 1)
    with pytest.raises(orca.ObjectDropped):
        group.drop(counter)
    assert group.find(Counter, "counter") is again
    with pytest.raises(TypeError, match="not shared in this group"):
        group.drop(Counter())


def test_a_name_is_free_at_once_though_the_object_is_busy(
    group: orca.Group, counter: Counter
) -> None:
    """The drop waits for a reader; what is shared under the name behind it is another object."""

    def look(value: int) -> int:
        waiting.extend([counter.add.nowait(1), group.drop.nowait(counter), counter.add.nowait(1)])
        shared.append(group.share.nowait(Counter, "counter", 8))
        return value

    waiting: list[orca.Invocation[object]] = []
    shared: list[orca.Invocation[Counter]] = []
    run_while_held(counter, look)
    add, drop, late = waiting
    assert add.result() == 1
    assert drop.result() is None
    with pytest.raises(orca.ObjectDropped):
        late.result()
    again = shared[0].result()
    assert again is not counter
    assert again.get() == 8


def run_while_held(counter: Counter, look: object) -> None:
    """Call `look` in this thread, while a reader in another holds the counter's mutex."""
    assert callable(look)
    held, done = threading.Event(), threading.Event()

    def hold(value: int) -> int:
        held.set()
        assert done.wait(30)
        return value

    reader = threading.Thread(target=counter.show, args=(hold,))
    reader.start()
    assert held.wait(30)
    try:
        look(0)
    finally:
        done.set()
        reader.join()


def test_a_reference_to_an_ended_object_stays_one(
    group: orca.Group, counter: Counter, journal: Journal
) -> None:
    journal.refer_to(counter)
    group.drop(counter)
    assert journal.referred() is counter
    journal.refer_to([counter])
    assert journal.referred() == [counter]


def test_after_leaving_reads_show_the_last_state() -> None:
    with orca.join() as group:
        counter = group.share(Counter, "counter")
        counter.add(3)
        waiting, reading = counter.take.nowait(5), counter.above.nowait(5)
    assert counter.get() == 3
    assert counter.above(2) == 3
    # What a read waits for does not come any more: it raises, too.
    refused = (counter.add, counter.add.nowait, group.fence, lambda: waiting.result())
    for call in (*refused, lambda: counter.above(7)):
        with pytest.raises(orca.GroupClosed):
            call()
    with pytest.raises(orca.GroupClosed):
        reading.result()
    with pytest.raises(orca.GroupClosed):
        group.share(Counter, "another")


def test_a_thread_that_waits_learns_that_the_group_was_left() -> None:
    outcomes: list[object] = []

    def wait(call: object) -> None:
        assert callable(call)
        try:
            outcomes.append(call(10**6))
        except orca.GroupClosed as error:
            outcomes.append(error)

    with orca.join() as group:
        counter = group.share(Counter, "counter")
        invocations = [counter.take.nowait(10**6), counter.above.nowait(10**6)]
        threads = [
            threading.Thread(target=wait, args=(lambda _, i=invocation: i.result(),))
            for invocation in invocations
        ]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(30)
    assert [type(outcome) for outcome in outcomes] == [orca.GroupClosed] * 2


def test_leaving_warns_of_what_is_withdrawn(caplog: pytest.LogCaptureFixture) -> None:
    with orca.join() as group:
        counter = group.share(Counter, "counter")
        waiting = counter.take.nowait(5)
    assert "withdrawn, since its member leaves: Counter.take" in caplog.text
    assert isinstance(waiting.exception(), orca.GroupClosed)


def test_an_object_that_is_gone_leaves_nothing_behind() -> None:
    gone: list[weakref.ref[Counter]] = []
    addresses: set[int] = set()
    for _ in range(3):
        with orca.join() as group:
            counters = [group.share(Counter, f"counter {i}") for i in range(300)]
        gone += [weakref.ref(counter) for counter in counters]
        addresses.update(map(id, counters))
        del counters, group
        gc.collect()
    assert not any(ref() for ref in gone)
    fresh = [Counter(i) for i in range(2000)]
    assert addresses & set(map(id, fresh))  # some stand where a shared one stood
    assert [counter.add() for counter in fresh] == list(range(1, 2001))


def test_two_groups_in_one_process(group: orca.Group, counter: Counter) -> None:
    with orca.join("second") as second:
        other = second.share(Counter, "counter", 10)
        assert other is not counter
        assert (counter.add(), other.add()) == (1, 11)
        journal = second.share(Journal, "journal")
        with pytest.raises(orca.NotSerializable, match="it is shared in another group: share it"):
            journal.refer_to(counter)
        with pytest.raises(orca.NotSerializable, match=r"it is not shared: pass what group\.share"):
            journal.refer_to(Counter())
        with pytest.raises(TypeError, match="not shared in this group"):
            second.drop(counter)
    assert counter.add() == 2


def test_two_members_in_one_process(tmp_path: object, order: str) -> None:
    """Each has replicas of its own, and all classes; the order is one."""
    stack = f"PACK:XFER:{order}:MBRSHIP:COM:unix"
    with orca.join(listen=f"unix:{tmp_path}/group", stack=stack) as first:
        near = first.share(Counter, "counter", 5)
        with orca.join(seeds=first.address, stack=stack) as second:
            far = second.share(Counter, "counter", 5)
            assert far is not near
            assert far.get() == 5
            for _ in range(10):
                near.add()
                far.add()
            waiting = far.take.nowait(26)
            assert near.add() == 26
            assert waiting.result() == 0
            first.fence()
            assert (near.get(), far.get()) == (0, 0)
            transferred = second.share(Counter, "other")
            assert transfer(far, transferred, 0) == 0
            left = far.take.nowait(100)
        near.add(100)
        assert near.get() == 100  # a member that left takes nothing
        assert isinstance(left.exception(), orca.GroupClosed)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("listen", [False, True])
def test_a_forked_child_has_no_group(tmp_path: object, listen: bool, order: str) -> None:
    """Nor the memory in which RING has the order, which reads look at."""
    stack = f"PACK:XFER:{order}:MBRSHIP:COM:unix"
    with orca.join(listen=f"unix:{tmp_path}/group" if listen else None, stack=stack) as group:
        counter = group.share(Counter, "counter")
        counter.add(4)
        child = os.fork()
        if child == 0:
            os._exit(_look_around(group, counter))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert counter.add() == 5
        group.fence()
    assert counter.get() == 5


def _look_around(group: orca.Group, counter: Counter) -> int:
    """In the child: what is wrong, as an exit code."""
    if counter.get() != 4:
        return 1
    calls: list[Callable[[], object]] = [counter.add, counter.add.nowait, group.fence]
    for code, call in enumerate(calls, 2):
        try:
            call()
            return code
        except orca.GroupClosed as error:
            if "forked child" not in str(error):
                return 10 + code
    with orca.join() as own:
        if own.share(Counter, "counter", 1).add() != 2:
            return 20
    return 0


def test_fence_and_barrier_of_one(group: orca.Group) -> None:
    group.fence()
    group.barrier()

    async def in_a_coroutine() -> None:
        for call in (group.fence, group.barrier, lambda: group.share(Counter, "counter")):
            with pytest.raises(orca.BlockingInLoop):
                call()
        await group.fence.aio()
        await group.barrier.aio()

    asyncio.run(in_a_coroutine())


def test_the_startup_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "orcalike"), orca.join():
        pass
    assert "1 member (alone) · rank 0 · sequencer: rank 0 · resilience 0" in caplog.text
