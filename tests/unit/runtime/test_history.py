"""What a member records when `ORCALIKE_HISTORY` names a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.history_check.check import check_folder
from orcalike.runtime.codes import Code
from orcalike.runtime.replica import replica_of
from tests.campaign.models import model_of
from tests.campaign.objects import Bank, Queue, Register
from tests.lib.shared_classes import Counter, Gate, Journal, transfer

ROOT = Path(__file__).parents[3]
Record = dict[str, Any]


@orca.shared
class Door:
    """It never opens."""

    @orca.write
    def go_through(self, data: bytes) -> None:
        pass

    @go_through.when
    def _(self, data: bytes) -> bool:
        return False


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[orca.Group]:
    """A group of one whose history is kept."""
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "histories"))
    with orca.join("my/group") as group:
        yield group


def records(tmp_path: Path, *kinds: str) -> list[Record]:
    """What is on file."""
    (path,) = (tmp_path / "histories").iterdir()
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in found if not kinds or record["kind"] in kinds]


def test_the_file_says_whose_it_is(recorded: orca.Group, tmp_path: Path) -> None:
    (path,) = (tmp_path / "histories").iterdir()
    incarnation = f"{recorded.me.incarnation:016x}"
    assert path.name == f"my%2Fgroup-0-{incarnation}.jsonl"
    first, view = records(tmp_path)[:2]
    assert (first["kind"], first["group"], first["rank"]) == ("member", "my/group", 0)
    assert first["pid"] == os.getpid()
    assert view["kind"] == "view"
    assert view["members"] == [[incarnation, 0, False]]
    assert view["primary"] is True


def test_a_write_is_invoked_delivered_applied_and_reported(
    recorded: orca.Group, tmp_path: Path
) -> None:
    counter = recorded.share(Counter, "c")
    assert counter.add(3) == 3
    invoke, deliver, apply, ok = records(tmp_path)[-4:]
    assert [r["kind"] for r in (invoke, deliver, apply, ok)] == ["invoke", "deliver", "apply", "ok"]
    assert invoke["args"] == [3]
    assert invoke["hash"] == deliver["args"]
    assert deliver["operation"] == "Counter.add"
    assert (deliver["object"], apply["objects"], invoke["object"]) == ("c", ["c"], "c")
    assert ok["value"] == 3
    assert invoke["ticket"] == deliver["ticket"] == apply["ticket"] == ok["ticket"]
    assert invoke["t"] <= deliver["t"] <= apply["t"] <= ok["t"]
    assert len(deliver["chain"]) == 32


def test_a_mark_in_the_order_is_on_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_stable: str
) -> None:
    """A call that its guard let run later is followed by a mark of its own (`options(stable=k)`)."""
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "histories"))
    with orca.join(stack=with_stable) as group:
        counter = group.share(Counter, "c")
        taken = counter.take.options(stable=1).nowait(1)
        counter.add(1)
        assert taken.result(timeout=30) == 0
    tickets = {
        kind: {r["ticket"] for r in records(tmp_path, kind)} for kind in ("invoke", "deliver")
    }
    assert tickets["deliver"] == tickets["invoke"]


def test_what_runs_in_a_popup_thread_is_on_file_before_others_know_that_it_was_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_stable: str
) -> None:
    """No invocation is held here, as for a call of another member: only the ack says that it has run."""
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "histories"))
    with orca.join(stack=with_stable) as group:
        journal = group.share(Journal, "journal")
        journal.note.options(stable=1)("acked")
        before = group.stability().matrix
        with Gate("slow") as gate:
            sender, replica = group._runtime.sender, replica_of(journal)
            assert replica is not None
            assert replica.info is not None
            (slow,) = (op for op in replica.info.operations if op.name == "note_slowly")
            body = sender.codec.encode(("slow",), slow.title)
            sender.commit(replica.number, slow.index << 1, body)
            sender.post(Code.VOID, (), "what does nothing")  # it leaves with that
            gate.wait_until_reached()
            gate.open()
        deadline = time.monotonic() + 60
        while group.stability().matrix == before:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        applied = [record["operation"] for record in records(tmp_path, "apply")]
    assert applied == ["Journal.__init__", "Journal.note", "Journal.note_slowly"]


def test_exceptions_guards_and_withdrawals(recorded: orca.Group, tmp_path: Path) -> None:
    counter = recorded.share(Counter, "c")
    with pytest.raises(ValueError, match="no"):
        counter.fail("no")
    assert records(tmp_path)[-1]["error"] == "ValueError: no"
    assert records(tmp_path)[-2]["error"] == "ValueError: no"
    waiting = counter.take.nowait(10)
    counter.add(20)
    waiting.result()
    operations = [record["operation"] for record in records(tmp_path, "apply")[-2:]]
    assert operations == ["Counter.add", "Counter.take"]
    with pytest.raises(orca.InvocationTimeout):
        counter.take.options(timeout=0.01)(10**6)
    (fail,) = records(tmp_path, "fail")
    assert fail["error"].startswith("InvocationTimeout")
    recorded.drop(counter)
    with pytest.raises(orca.ObjectDropped):
        counter.add(1)


def test_a_call_for_which_there_is_no_room_has_failed(recorded: orca.Group, tmp_path: Path) -> None:
    """It did not run and never will, and the checker may rely on that."""
    door = recorded.share(Door, "door")
    first = door.go_through.nowait(bytes(5 << 20))
    with pytest.raises(orca.TooManyWaiting):
        door.go_through(bytes(5 << 20))
    assert [record["kind"] for record in records(tmp_path, "fail", "info")] == ["fail"]
    first.cancel()


def test_what_is_under_way_when_the_group_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "histories"))
    with orca.join() as group:
        waiting = group.share(Counter, "c").take.nowait(10)
    with pytest.raises(orca.OrcalikeError):
        waiting.result()
    ends = records(tmp_path, "info", "fail")
    assert [record["ticket"] for record in ends] == [waiting.ticket]


def test_reads_show_what_the_lines_before_have_made(recorded: orca.Group, tmp_path: Path) -> None:
    counter = recorded.share(Counter, "c")
    counter.add(3)
    assert counter.get() == 3
    read = records(tmp_path)[-1]
    assert (read["kind"], read["value"], read["operation"]) == ("read", 3, "Counter.get")
    assert read["gseq"] == records(tmp_path, "deliver")[-1]["gseq"]
    with pytest.raises(orca.InvocationTimeout):
        counter.above.options(timeout=0.01)(1000)
    assert len(records(tmp_path, "fail", "info")) == 0, "reads that never ran have no record"


def test_atomic_functions_and_values_that_json_has_not(
    recorded: orca.Group, tmp_path: Path
) -> None:
    first, second = (recorded.share(Counter, name, 5) for name in "ab")
    transfer(first, second, 2)
    assert records(tmp_path, "apply")[-1]["objects"] == ["a", "b"]
    journal = recorded.share(Journal, "j")
    journal.refer_to({(1, 2): b"bytes"})
    assert "(1, 2)" in records(tmp_path, "invoke")[-1]["args"]


def test_states_at_the_digest_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "histories"))
    with orca.join() as group:
        counter = group.share(Counter, "c")
        count, _ = group.digest()
        assert count == 1
        counter.add(1)
    states = records(tmp_path, "state")
    assert [record["object"] for record in states] == ["c", "c"]
    assert states[0]["digest"] != states[1]["digest"]
    assert records(tmp_path)[-1]["kind"] == "exit"


def test_threads_that_write_and_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their lines are checked: the tickets, the order at each object, what the reads show."""
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "histories"))

    def work(name: str) -> None:
        for number in range(100):
            register.swap(f"{name}{number}")
            queue.put.nowait(f"{name}{number}")
            queue.take()
            bank.move.nowait(number % 4, (number + 1) % 4, 1)
            assert bank.total() == 40
            register.get()

    with orca.join() as group:
        register = group.share(Register, "register 0")
        queue = group.share(Queue, "queue 0")
        bank = group.share(Bank, "bank 0 4 10", 4, 10)
        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    verdict = check_folder(tmp_path / "histories", 0, model_of=model_of)
    assert verdict.violations == []
    assert verdict.delivered >= 4 + 1600


async def test_on_an_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "histories"))
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "c")
        assert await counter.add.aio(4) == 4
        assert counter.get() == 4
    assert check_folder(tmp_path / "histories", 0, model_of=model_of).violations == []
    assert records(tmp_path, "read")[0]["value"] == 4


KILLED = """
import os, signal
import orcalike as orca
from tests.campaign.objects import Register
with orca.join() as group:
    register = group.share(Register, "register 0")
    for number in range(50):
        register.swap(str(number))
    register.swap.nowait("last")
    os.write(1, register.get().encode())
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED],
        cwd=ROOT,
        env=os.environ | {"ORCALIKE_HISTORY": str(tmp_path / "histories")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    swaps = [r["args"][0] for r in records(tmp_path, "invoke") if r["object"]]
    assert swaps == [*map(str, range(50)), "last"]
    (read,) = records(tmp_path, "read")
    assert read["value"] == ended.stdout
    assert len(records(tmp_path, "ok")) >= 51


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path / "file" / "below"))
    with pytest.raises(OSError, match="file"), orca.join():
        pass


def test_without_the_variable_nothing_is_kept(group: orca.Group, tmp_path: Path) -> None:
    assert group._runtime.sender.history is None
    assert group._runtime.chain is None
