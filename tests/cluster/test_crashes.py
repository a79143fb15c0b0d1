"""Members without a launcher crash, stand still, are expelled: the others go on (H1, H4, H5, I16).

Each member writes numbers to one log and says which it knows to be written. In the end all that are
left must have the same log, with each number at most once and in its writer's order, and none that a
writer knew of missing.
"""

from __future__ import annotations

import signal
import threading
from functools import partial
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import pytest

from tests.lib.processes import DEADLINE, until

if TYPE_CHECKING:
    from tests.lib.processes import Facts
    from tests.lib.programs import Program, Programs


class Writer:
    """A member under way, and what it has said."""

    def __init__(self, process: Program) -> None:
        self.process = process
        self.facts: Facts = process.next_fact()
        self.acked: dict[int, int] = {}
        """By incarnation, the last number that it knew to be written."""
        self.size = 0
        """Of its group, when it knew that."""
        self.errors: list[Facts] = []
        self.said: Queue[Facts] = Queue()
        self.dead = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        """Take all that it says, until its end."""
        while True:
            try:
                fact = self.process.next_fact()
            except (AssertionError, ValueError):  # it says no more, perhaps in the middle of a line
                return
            if "acked" in fact:
                self.acked[fact["writer"]], self.size = fact["acked"], fact["size"]
            elif "error" in fact and "done" not in fact:
                self.errors.append(fact)
            else:
                self.said.put(fact)

    def wait_for(self, what: str) -> Facts:
        """The next fact of that kind."""
        try:
            while what not in (fact := self.said.get(timeout=DEADLINE)):
                pass
        except Empty:
            raise AssertionError(f"never {what}: {self.process.stderr()}") from None
        return fact

    @property
    def newest(self) -> int:
        return sum(self.acked.values())

    def kill(self) -> None:
        """Kill it; what it knows is complete then."""
        self.process.process.send_signal(signal.SIGKILL)
        self.dead = True


def has_written(writer: Writer, count: int) -> bool:
    """Whether its newest write is that one, or a later one."""
    return writer.newest >= count


class Processes:
    """The members of one group."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.writers: list[Writer] = []
        self.way = "memory"
        """Of their order: "memory", "memory at tcp" if they can be of several hosts, or a sequencer over "unix" or "tcp"."""

    def start(self, count: int, degree: object, **options: Any) -> None:
        """Have so many members, which write from now on."""
        medium = "tcp" if self.way.endswith("tcp") else "unix"
        at = "tcp:127.0.0.1:0" if medium == "tcp" else f"unix:{self.programs.directory}/maker"
        options = {"size": count} | options
        # A member that is stopped holds up the others when the order in memory is full: soon.
        order = "ORDER(slots=1024)" if self.in_memory else "TOTAL"
        stack = f"PACK:XFER:{order}:MBRSHIP:COM:{medium}"
        self.programs.environment.setdefault("STACK", stack)
        if medium == "tcp":  # no word of the kernel that a silent process lives: a busy machine
            self.programs.environment["ORCALIKE_DETECTION"] = "2"
        for number in range(count):
            how = "make" if number == 0 else "join"
            unmet = options | ({"size": None} if number == 0 else {"size": number + 1})
            arguments = ("writer.py", how, at, str(degree), repr(unmet))
            self.writers.append(Writer(self.programs.start(*arguments)))
            at = str(self.writers[0].facts["address"])
        self.programs.call("all")
        for writer in self.writers:
            writer.wait_for("ready")

    def begin(self) -> None:
        """Let them write."""
        self.programs.call("begin")
        self.go_on()

    @property
    def in_memory(self) -> bool:
        """Whether the order is in shared memory, and not a sequencer's."""
        return self.way.startswith("memory")

    @property
    def left(self) -> list[Writer]:
        return [writer for writer in self.writers if not writer.dead]

    def go_on(self, *writers: Writer) -> None:
        """Wait until each of those that are left has written some more."""
        for writer in writers or self.left:
            more = writer.newest + 20
            until(
                partial(has_written, writer, more),
                f"more from {writer.facts}: {writer.errors} {writer.process.stderr()}",
            )

    def go_on_alone(self) -> None:
        """The same, until each has a view without the dead: with degree 0 they write on before that."""
        self.go_on()
        until(
            lambda: {writer.size for writer in self.left} == {len(self.left)},
            "they have a view without the dead",
        )

    def order(self, writer: Writer, *words: str) -> Facts:
        """Have a member do something; returns what it says of it."""
        place = self.programs.directory / f"do.{writer.facts['pid']}"
        (place.parent / "do").write_text(",".join(words))
        (place.parent / "do").rename(place)
        return writer.wait_for("done")

    def end(self, *, lost: bool = False, alone: bool = False) -> list[Facts]:
        """Stop; compare what all have that are left, and what they knew."""
        if alone:
            self.programs.call("alone")
        self.programs.call("stop")
        ends = [writer.wait_for("end") for writer in self.left]
        for end in ends:
            assert end["disorder"] == []
            assert end["fingerprint"] == ends[0]["fingerprint"]
        for writer in self.writers:
            if writer.dead:
                writer.reader.join(DEADLINE)
            for incarnation, acked in writer.acked.items():
                numbers = ends[0]["numbers"].get(str(incarnation), [])
                assert numbers == list(range(len(numbers)))
                assert lost or len(numbers) > acked, f"lost of {writer.facts}"
        for writer in self.left:
            writer.wait_for("left")
            assert writer.process.end() == 0
        return ends

    def check_untroubled(self) -> None:
        """No writer that is left has seen an error."""
        assert [error for writer in self.left for error in writer.errors] == []


@pytest.fixture(params=["memory", "unix"])
def processes(programs: Programs, request: pytest.FixtureRequest) -> Processes:
    """None yet, with a short detection time: what is silent is dead, as deaths are seen at once."""
    programs.environment["ORCALIKE_DETECTION"] = "0.2"
    processes = Processes(programs)
    processes.way = request.param
    return processes


@pytest.mark.parametrize(
    ("processes", "count", "degree", "victims"),
    [
        # Each way, each size, each degree, and each kind of victims, if not all together.
        ("memory", 3, 0, [2]),
        ("memory", 3, 1, [0]),
        ("memory", 5, "majority", [0, 3]),
        ("unix", 3, 0, [2]),
        ("unix", 3, 1, [0]),
        ("unix", 5, 2, [0, 1]),
        ("unix", 5, "majority", [0, 3]),
        ("tcp", 3, 0, [0]),
        ("tcp", 3, "majority", [1]),
        ("tcp", 5, 2, [2, 3]),
        ("memory at tcp", 3, 0, [0]),
        ("memory at tcp", 5, 2, [2, 3]),
    ],
    indirect=["processes"],
)
def test_the_others_go_on(
    processes: Processes, count: int, degree: object, victims: list[int]
) -> None:
    """No writer that is left sees an error, and with r crashes nothing that was known is lost."""
    processes.start(count, degree)
    processes.begin()
    for victim in victims:
        processes.writers[victim].kill()
    processes.go_on_alone()
    processes.check_untroubled()
    ends = processes.end(lost=degree == 0 and not processes.in_memory)
    assert {end["size"] for end in ends} == {count - len(victims)}
    assert {end["lineage"] for end in ends} == {1}


def test_one_after_the_other(processes: Processes) -> None:
    """The sequencer dies, and the next one, and the next: each time the rest is a majority."""
    processes.start(5, 1)
    processes.begin()
    for victim in processes.writers[:3]:
        victim.kill()
        processes.go_on_alone()
    processes.check_untroubled()
    assert {end["size"] for end in processes.end()} == {2}


def test_a_dead_owner_has_nothing(processes: Processes) -> None:
    """`member_left` runs at the place in the order where the owner is gone; a waiting call goes on."""
    processes.start(3, 1)
    for writer in (processes.writers[0], processes.writers[1]):
        processes.programs.call(f"own.{writer.facts['pid']}")
    processes.programs.call("begin")  # both want it, one has it, and writes; the other one waits
    until(
        lambda: any(writer.newest > 20 for writer in processes.writers[:2]), "one of them owns it"
    )
    owner, waits = sorted(processes.writers[:2], key=lambda writer: -writer.newest)
    assert waits.newest == 0
    owner.kill()
    processes.go_on()
    processes.check_untroubled()
    assert {end["owner"] for end in processes.end()} == {waits.facts["rank"]}


@pytest.mark.parametrize(
    ("processes", "degree", "which"),
    [
        *[("memory", 0, 2), ("memory", 1, 0)],
        *[("unix", 0, 2), ("unix", 1, 0)],
        *[("tcp", 0, 0), ("tcp", 1, 2)],
        *[("memory at tcp", 0, 0), ("memory at tcp", 1, 2)],
    ],
    indirect=["processes"],
)
def test_a_member_that_stood_still_is_out_until_it_joins_again(
    processes: Processes, degree: int, which: int
) -> None:
    """It gets Expelled for what was under way, none of its late writes is anywhere (I16)."""
    processes.start(3, degree)
    processes.begin()
    standing = processes.writers[which]
    others = [writer for writer in processes.writers if writer is not standing]
    standing.process.pause()
    until(lambda: [other.size for other in others] == [2, 2], "they go on")
    standing.process.resume()
    until(lambda: standing.errors, "it gets the error")
    (error,) = standing.errors
    assert error["error"] == "Expelled"
    assert "rejoin" in error["text"]
    known = standing.acked[standing.facts["incarnation"]]
    again = processes.order(standing, "rejoin")
    assert "error" not in again, again
    assert again["rank"] == standing.facts["rank"]
    assert again["before"] > 0  # meanwhile it has shown its last state
    processes.go_on()
    ends = processes.end(lost=degree == 0)
    numbers = ends[0]["numbers"][str(standing.facts["incarnation"])]
    assert degree == 0 or known < len(numbers)
    assert len(numbers) <= error["after"]
    assert {end["size"] for end in ends} == {3}
    assert all(writer.errors == [] for writer in others)


def test_a_member_that_hangs_is_out_if_the_others_wait_for_it(processes: Processes) -> None:
    """It beats, so it is not silent; but it does not answer, for `slow_timeout` or so.

    They wait for a sequencer at once, and for another member when the order in memory is full.
    """
    processes.programs.environment["ORCALIKE_SLOW_TIMEOUT"] = "4"
    processes.start(3, 1)
    processes.begin()
    hung, *others = processes.writers
    processes.order(hung, "hang")
    until(lambda: [other.size for other in others] == [2, 2], "they go on")
    hung.kill()
    processes.go_on_alone()
    processes.check_untroubled()
    assert {end["size"] for end in processes.end()} == {2}


@pytest.mark.parametrize("degree", [1, 2, "majority"])
def test_in_memory_each_member_that_is_left_holds_all(programs: Programs, degree: object) -> None:
    """However many crash at once, and whatever the degree: the rest goes on, and nothing is lost."""
    programs.environment["ORCALIKE_DETECTION"] = "2"  # beside other load leases must last
    processes = Processes(programs)
    processes.start(5, degree)
    processes.begin()
    for victim in (processes.writers[0], *processes.writers[2:4]):
        victim.kill()
    if degree == 2:
        rule = "takes 3 members with replicas, and the view has 2"
        left = processes.left
        until(lambda: any(_says(writer, rule) for writer in left), "its writes wait")
        done = processes.order(left[0], "reset", "2")
        assert (done["done"], done["size"], done["lineage"]) == ("reset", 2, 1)
    processes.go_on_alone()
    processes.check_untroubled()
    ends = processes.end()
    assert {(end["size"], end["lineage"]) for end in ends} == {(2, 1)}


def test_reset_goes_on_with_fewer(processes: Processes) -> None:
    """With r = 1 four of five members must be there; `reset` goes on with two (A05, A14, I9).

    In memory a majority must be there, and it may be that those that stand still are not dead.
    """
    processes.start(5, 1)
    processes.begin()
    first, second, *victims = processes.writers
    for victim in victims:
        victim.process.pause() if processes.in_memory else victim.kill()
    rule = "with resilience 1, 4 of 5 members must be there"
    if processes.in_memory:
        rule = "2 of 5 members are no majority"
    for writer in (first, second):
        until(partial(_says, writer, rule), "it is blocked")
    refused = processes.order(second, "reset", "3")
    assert refused["error"] == "NotPrimary"
    assert "2 members present, 3 asked for" in refused["text"]
    assert first.errors == second.errors == []  # calls wait
    done = processes.order(second, "reset", "2")
    assert (done["done"], done["size"]) == ("reset", 2)
    assert done["lineage"] > 1
    for victim in victims:
        victim.kill()
    for writer in (first, second):
        check_reported_loss(processes, writer)
    processes.go_on()
    assert [len(writer.errors) for writer in processes.left] == [1, 1]
    assert {end["lineage"] for end in processes.end(lost=True)} == {done["lineage"]}


def _says(writer: Writer, text: str) -> bool:
    return text in writer.process.stderr()


def check_reported_loss(processes: Processes, writer: Writer) -> None:
    """Its next call raises, once, and is not sent."""
    until(lambda: writer.errors, "it gets the error that data may be lost")
    assert [error["error"] for error in writer.errors] == ["DataLossPossible"]
    assert "what only others held is lost" in writer.process.stderr()
    processes.order(writer, "go on")


def test_a_member_that_a_reset_left_behind_is_expelled(processes: Processes) -> None:
    """The higher lineage goes on, and the members of the other are out when they meet (H1)."""
    processes.start(4, 1)
    processes.begin()
    *others, first, second = processes.writers  # half of them, without the oldest
    for other in others:
        other.process.pause()
    until(lambda: "is blocked" in first.process.stderr(), "it is blocked")
    assert "error" not in processes.order(first, "reset", "2")
    for writer in (first, second):
        check_reported_loss(processes, writer)
    processes.go_on(first, second)
    for other in others:
        other.process.resume()
        until(partial(getattr, other, "errors"), "it gets the error")
        assert [error["error"] for error in other.errors] == ["Expelled"]
        assert "error" not in processes.order(other, "rejoin")
    processes.go_on()
    ends = processes.end(lost=True)
    assert {end["size"] for end in ends} == {4}
    assert len({end["lineage"] for end in ends}) == 1


def test_calls_raise_while_the_group_is_blocked(processes: Processes) -> None:
    """As it was asked to: those under way, and new ones, until there is a view again."""
    processes.start(3, 1, blocked="raise")
    processes.begin()
    first, *others = processes.writers
    for other in others:
        other.process.pause()
    until(lambda: first.errors, "the call under way ends")
    assert first.errors[0]["error"] == "NotPrimary"
    assert "it waits for rank 1" in first.errors[0]["text"]
    late = processes.order(first, "write", "1")
    assert late["error"] == "NotPrimary"
    for other in others:
        other.process.resume()
    until(lambda: "goes on: view" in first.process.stderr(), "there is a view")
    processes.order(first, "go on")
    processes.go_on(first)
    for other in others:
        bring_back(processes, other)
    processes.go_on()
    processes.end(lost=True)


def bring_back(processes: Processes, writer: Writer) -> None:
    """Have a member write that was late: it may be blocked first, and find then that it was expelled."""
    errors = 0
    while True:
        until(partial(goes_on, writer, errors, writer.newest + 20), "it goes on, or not")
        if len(writer.errors) == errors:
            return
        errors = len(writer.errors)
        is_out = writer.errors[-1]["error"] == "Expelled"
        assert "error" not in processes.order(writer, "rejoin" if is_out else "go on")


def goes_on(writer: Writer, heard: int, more: int) -> bool:
    """Whether it has written so far, or has more errors than were heard of."""
    return len(writer.errors) > heard or has_written(writer, more)


def test_leaving_a_blocked_group_takes_no_longer_than_it_may(processes: Processes) -> None:
    """No member is there that could let it go."""
    processes.start(3, 1)
    processes.begin()
    last, *victims = processes.writers
    for victim in victims:
        victim.process.pause()
    until(lambda: "is blocked" in last.process.stderr(), "it is blocked")
    last.process.process.send_signal(signal.SIGINT)
    assert last.process.end() != 0
    assert "was left without its answer: it is blocked" in last.process.stderr()
