"""`join(stack=...)`: what cannot run is refused with the remedy; what can runs real objects."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.messages import (
    Data,
    create_group,
    join_group,
    leave_group,
    receive_from_group,
    send_to_group,
)
from orcalike.transport.drivers import alarms, links, listener
from orcalike.transport.drivers.descriptors import Descriptors, Handle
from orcalike.transport.drivers.pidfd import OwnProcess
from tests.lib.shared_classes import Counter

DEFAULT = "PACK:XFER:TOTAL:MBRSHIP:COM:unix"
RING = "PACK:XFER:RING:MBRSHIP:COM:unix"
ORDER = "PACK:XFER:ORDER:MBRSHIP:COM:unix"
KEY = bytes(32)
"""What TCP needs."""

OBJECTS = "the runtime of shared objects needs"

REFUSED = {
    "COM:unix": f"{OBJECTS} PACKED, STATE, TOTAL_ORDER from below",
    "MBRSHIP:COM:unix": f"{OBJECTS} PACKED, STATE, TOTAL_ORDER from below",
    "TOTAL:MBRSHIP:COM:unix": f"{OBJECTS} PACKED, STATE from below: put PACK below it; put XFER",
    "XFER:TOTAL:MBRSHIP:COM:unix": f"{OBJECTS} PACKED from below: put PACK below it",
    "PACK:TOTAL:MBRSHIP:COM:unix": f"{OBJECTS} STATE from below: put XFER below it",
    "STABLE:PACK:XFER:TOTAL:MBRSHIP:COM:unix": f"{OBJECTS} PACKED from below: put STABLE below PACK",
    "DROP:PACK:XFER:TOTAL:MBRSHIP:COM:unix": f"{OBJECTS} PACKED from below: put DROP below PACK",
    "PACK:XFER:TOTAL:MBRSHIP:DROP(lose=20):COM:unix": "MBRSHIP needs FIFO from below: DROP(lose=20)",
    "PACK:XFER:TOTAL:MBRSHIP:COM:sim": "COM:sim runs in the simulator only",
    "": "'' does not end in COM:medium",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_stack_that_objects_cannot_stand_on_is_refused(text: str, tmp_path: Path) -> None:
    for where in ({}, {"listen": f"unix:{tmp_path}/group"}):
        with pytest.raises(orca.StackError) as caught, orca.join(stack=text, **where):  # type: ignore[arg-type]
            pass
        assert REFUSED[text] in str(caught.value)
    assert os.listdir(tmp_path) == [], "the socket is gone"


@pytest.mark.parametrize(
    ("listen", "layer"), [("unix:{}/group", "RING"), ("tcp:127.0.0.1:0", "RING"), (None, "TOTAL")]
)
def test_the_order_of_a_group_that_names_no_stack(
    listen: str | None, layer: str, tmp_path: Path
) -> None:
    """In shared memory if others can join by Unix sockets; it takes room that a group of one does not need."""
    where = None if listen is None else listen.format(tmp_path)
    with orca.join(listen=where, key=KEY) as group:
        assert group._session.stack.focus(layer) is not None
    with (
        orca.join(at=f"unix:{tmp_path}/at") as first,
        orca.join(at=f"unix:{tmp_path}/at", size=2) as second,
    ):
        assert second.members == first.members
        assert second._session.stack.focus("RING") is not None


def join_and_write(address: str) -> None:
    """Join, and write until that is refused."""
    with orca.join(seeds=address) as group:
        counter = group.share(Counter, "n")
        while True:
            counter.add(1)


class Refusing(Descriptors):
    """The kernel lets this process look into none of the others."""

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        raise PermissionError(13, "Permission denied")


def test_a_process_that_may_not_map_the_order_does_not_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with orca.join(listen=f"unix:{tmp_path}/group", stack=RING) as first:
        monkeypatch.setattr(alarms, "Descriptors", Refusing)
        error = r"Permission denied\. If it is of another user"
        with pytest.raises((orca.JoinFailed, orca.Expelled), match=error):
            join_and_write(first.address)
        counter = first.share(Counter, "n")
        counter.add(1)
        assert counter.value == 1


def test_a_joiner_whose_memory_may_not_be_mapped_leaves_and_the_others_stay(tmp_path: Path) -> None:
    """The younger one goes, whichever of the two may not look into the other."""
    with (
        orca.join(listen=f"unix:{tmp_path}/group", stack=RING) as first,
        orca.join(seeds=first.address) as second,
    ):
        counters = [each.share(Counter, "n") for each in (first, second)]
        descriptors = second._session.stack.descriptors
        second._session.stack.descriptors = Refusing(lambda _: -1)
        error = "the order in shared memory cannot be joined: rank 1 .* cannot map the memory of this member"
        with pytest.raises((orca.JoinFailed, orca.Expelled), match=error):
            join_and_write(first.address)
        second._session.stack.descriptors = descriptors
        for counter in counters:
            counter.add(1)
        assert {each.size for each in (first, second)} == {2}


@pytest.mark.parametrize("may_not_look", ["the joiner", "the first"])
def test_one_that_shares_no_memory_is_let_in_by_default_and_the_order_goes_over(
    may_not_look: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a sequencer, and back as it leaves."""
    with orca.join(listen=f"unix:{tmp_path}/group") as first:
        counter = first.share(Counter, "n")
        counter.add(1)
        descriptors = first._session.stack.descriptors
        if may_not_look == "the joiner":
            monkeypatch.setattr(alarms, "Descriptors", Refusing)
        with orca.join(seeds=first.address) as second:
            if may_not_look == "the first":
                first._session.stack.descriptors = Refusing(lambda _: -1)
            other = second.share(Counter, "n")
            for each in (counter, other):
                each.add(1)
            first.fence()
            second.fence()
            if may_not_look == "the joiner":
                assert first._session.stack.focus("RING") is None
            assert (counter.value, other.value) == (3, 3)
        first._session.stack.descriptors = descriptors
        counter.add(1)
        assert counter.value == 4
        assert first._session.stack.focus("RING") is not None


WITHOUT_ROOM = """
import resource, signal
import orcalike as orca
from tests.lib.shared_classes import Counter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
with orca.join(listen="unix:{}/group") as group:
    counter = group.share(Counter, "n")
    counter.add(1)
    print(counter.value, group._session.stack.focus("RING"))
"""


def test_where_no_memory_can_be_had_the_order_goes_over(tmp_path: Path) -> None:
    """As under a limit for the size of files."""
    code = WITHOUT_ROOM.replace("{}", str(tmp_path))
    command = [sys.executable, "-B", "-c", code]  # a .pyc would be cut short, too
    found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (found.stdout, found.stderr) == ("1 None\n", "")


def test_a_directory_that_is_not_of_proc_is_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file system could keep a member that opens something there waiting for good."""

    class Liar(OwnProcess):
        def __init__(self) -> None:
            super().__init__()
            os.close(self.files)
            self.files = os.open(tmp_path, os.O_RDONLY)

    with orca.join(listen=f"unix:{tmp_path}/group", stack=RING) as first:
        for module in (links, listener):
            monkeypatch.setattr(module, "OwnProcess", Liar)
        with pytest.raises((orca.JoinFailed, orca.Expelled), match="has not passed its open files"):
            join_and_write(first.address)
        counter = first.share(Counter, "n")
        counter.add(1)
        assert first.size == 1


@pytest.mark.parametrize("stack", [DEFAULT, RING, ORDER])
def test_a_joiner_that_names_no_stack_has_the_order_of_the_group(
    stack: str, tmp_path: Path
) -> None:
    with (
        orca.join(stack=stack, listen=f"unix:{tmp_path}/one") as one,
        orca.join(seeds=one.address) as other,
    ):
        counters = [each.share(Counter, "n") for each in (one, other)]
        for counter in counters:
            counter.add(1)
        one.fence()
        assert [each.value for each in counters] == [2, 2]


@pytest.mark.parametrize(("has", "asks"), [(DEFAULT, RING), (RING, DEFAULT)])
def test_a_joiner_that_names_another_stack_is_refused(has: str, asks: str, tmp_path: Path) -> None:
    with (
        orca.join(stack=has, listen=f"unix:{tmp_path}/one") as one,
        pytest.raises(orca.ConfigMismatch, match="the group has stack="),
        orca.join(seeds=one.address, stack=asks),
    ):
        pass


@pytest.mark.parametrize(("said", "has"), [("tcp", "unix"), ("unix", "tcp")])
def test_the_medium_of_the_string_is_that_of_the_socket(
    said: str, has: str, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/group" if has == "unix" else "tcp:127.0.0.1:0"
    stack = f"PACK:XFER:TOTAL:MBRSHIP:COM:{said}"
    error = rf"the stack ends in COM:{said}, but .* by {has} sockets .*: write COM:{has}"
    with (
        pytest.raises(orca.StackError, match=error),
        orca.join(listen=address, stack=stack, key=KEY),
    ):
        pass
    with (
        pytest.raises(orca.StackError, match=error),
        orca.join(seeds=address.replace(":0", ":9"), stack=stack, timeout=5, key=KEY),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_freshness_is_a_duration_and_goes_to_the_stack() -> None:
    with orca.join(stack=RING, freshness="250ms") as group:
        assert group._session.stack.config.freshness == 250_000_000
    with orca.join(freshness=0) as group:
        assert group._session.stack.config.freshness == 0
    for wrong in (61, "2 minutes", -1):
        with pytest.raises(ValueError, match=r"freshness|a time limit of -1"):
            orca.join(freshness=wrong).__enter__()


def test_a_witness_has_the_default_stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A launched program's group with a witness, on another stack: refused before anything is sent."""
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "ADDRESS": f"unix:{tmp_path}/witness",
        "RUNTIME_DIR": f"{tmp_path}",
        "LISTEN": f"unix:{tmp_path}/0",
        "SEEDS": f"unix:{tmp_path}/witness,unix:{tmp_path}/0",
        "SEQUENCER": "witness",
    }.items():
        monkeypatch.setenv(f"ORCALIKE_{name}", value)
    stack = "PACK:STABLE:XFER:TOTAL:MBRSHIP:COM:unix"
    error = "the witness of a launched program has the stack .* `orcalike run --stack PACK:STABLE:"
    with pytest.raises(orca.StackError, match=error), orca.join(stack=stack, timeout=5, key=KEY):
        pass
    assert os.listdir(tmp_path) == []


RUN = [
    DEFAULT,
    " PACK : XFER:TOTAL :MBRSHIP:COM: unix ",
    "PACK(size=64):STABLE(window=9):XFER:TOTAL(packets=4):MBRSHIP:COM:unix",
    "PACK:DROP:STABLE:DROP(delay=20):XFER:DROP:TOTAL:DROP(delay=20):MBRSHIP:DROP:COM:unix",
    "PACK:XFER:TOTAL:MBRSHIP:COM:tcp",
    ORDER,
    "PACK:XFER:ORDER(packets=4,slots=16,lane=4096):MBRSHIP:COM:tcp",
]


@pytest.mark.parametrize("text", RUN)
def test_a_stack_that_is_accepted_runs_objects(text: str, tmp_path: Path) -> None:
    """Over real sockets: share, write, read, a guard, a late join with state, a leave."""
    address = "tcp:127.0.0.1:0" if text.endswith("tcp") else f"unix:{tmp_path}/group"
    with ExitStack() as block:
        first = block.enter_context(orca.join(listen=address, stack=text, key=KEY))
        counter = first.share(Counter, "counter", 3)
        for _ in range(20):
            counter.add(1)
        with orca.join(seeds=first.address, stack=text, timeout=30, key=KEY) as second:
            mine = second.find(Counter, "counter")
            assert mine.get() == 23
            waiting = counter.take.nowait(30)
            assert mine.add(10) == 33
            assert waiting.result(30) is not None
            second.fence()
            assert mine.get() == counter.get() == 3
        assert counter.add(1) == 4


def test_messages_run_without_packets(tmp_path: Path) -> None:
    stack = "XFER:TOTAL:MBRSHIP:COM:unix"
    with pytest.raises(
        orca.StackError, match=r"orcalike.messages needs STATE from below: put XFER"
    ):
        create_group(stack="TOTAL:MBRSHIP:COM:unix")
    first = create_group(listen=f"unix:{tmp_path}/group", stack=stack)
    second = join_group(seeds=f"unix:{tmp_path}/group", stack=stack, timeout=30)
    send_to_group(second, b"hello", timeout=30)
    events = [receive_from_group(first, timeout=30) for _ in range(2)]
    assert isinstance(events[1], Data)
    assert events[1].data == b"hello"
    leave_group(second)
    leave_group(first)
