"""Members come and go while others write, hundreds at once or all the time (promises 1, 3, 5 and 11)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.lib.programs import OVER_SOCKETS

if TYPE_CHECKING:
    from tests.lib.processes import Facts
    from tests.lib.programs import Program, Programs

ALL_WRITE = 0.1
"""Seconds for which those that are there write before anything happens."""


class Group:
    """Members of one group, as the test starts them."""

    def __init__(self, programs: Programs, way: str, pause: str = "0.03") -> None:
        """`way`: of their order, "memory", or by a sequencer over "unix" or "tcp".

        `pause`: seconds between hundreds of writes of one member.
        """
        self.programs = programs
        where = "tcp:127.0.0.1:0" if way == "tcp" else f"unix:{programs.directory}/maker"
        if way == "unix":
            programs.environment["STACK"] = OVER_SOCKETS
        programs.environment["PAUSE"] = pause
        self.members = [programs.start("busy_member.py", "make", where, LEAVES="maker leaves")]
        self.addresses = [str(self.members[0].next_fact()["address"])]
        for _ in range(2):
            self.add(LEAVES="writer leaves")
            self.wait_for_the_last()
        time.sleep(ALL_WRITE)

    def add(self, **environment: str) -> Program:
        """Start one that joins through any of those that are there."""
        seeds = self.addresses[-1:]
        self.members.append(self.programs.start("busy_member.py", "join", *seeds, **environment))
        return self.members[-1]

    def wait_for_the_last(self) -> None:
        """Wait until the one that was started last is in."""
        self.addresses.append(str(self.members[-1].next_fact()["address"]))

    def leave(self, call: str, *members: Program) -> list[Facts]:
        """Have members leave; returns what they say of themselves."""
        self.programs.call(call)
        facts = [member.next_fact() for member in members]
        for member in members:
            assert member.end() == 0, member.stderr()
            self.members.remove(member)
        return facts

    def check(self, gone: list[Facts]) -> None:
        """All stop; those that are there have one history, and everything in it once."""
        self.programs.call("stop")
        facts = [member.next_fact() for member in self.members]
        for key in ("digest", "log", "visitors"):
            assert len({str(fact[key]) for fact in facts}) == 1, key
        written = {str(fact["pid"]): fact["written"] for fact in (*facts, *gone)}
        for fact in facts:
            assert fact["writers"] == written
            assert fact["disorder"] == []
            assert len(fact["members"]) == len(facts)
        for member in self.members:
            assert member.end() == 0
            assert member.complaints() == ""


def test_one_joins_while_three_write(programs: Programs) -> None:
    group = Group(programs, "tcp")
    group.add()
    group.wait_for_the_last()
    group.check([])


@pytest.mark.parametrize("way", ["memory", "unix"])
def test_three_join_at_once_while_three_write(programs: Programs, way: str) -> None:
    """At full speed."""
    group = Group(programs, way, pause="0")
    joiners = [group.add() for _ in range(3)]
    for joiner in joiners:
        joiner.next_fact()
    group.check([])


@pytest.mark.parametrize("way", ["memory", "unix"])
def test_one_joins_while_another_leaves(programs: Programs, way: str) -> None:
    group = Group(programs, way)
    group.addresses = group.addresses[:1]
    group.add()
    gone = group.leave("writer leaves", *group.members[1:3])
    group.wait_for_the_last()
    group.check(gone)


@pytest.mark.parametrize("way", ["memory", "unix"])
def test_the_oldest_leaves_while_others_write(programs: Programs, way: str) -> None:
    group = Group(programs, way)
    gone = group.leave("maker leaves", group.members[0])
    group.check(gone)


def test_the_oldest_leaves_while_another_joins(programs: Programs) -> None:
    group = Group(programs, "tcp")
    group.add()
    gone = group.leave("maker leaves", group.members[0])
    group.wait_for_the_last()
    group.check(gone)
