"""A group over TCP has its order in memory while all members are on one host, and through a sequencer while they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.lib.network import Host, hosts
from tests.lib.programs import Program, Programs

MEMORY, SEQUENCER = "memory", "sequencer"
ROUNDS = 4


@pytest.fixture
def two() -> Iterator[Sequence[Host]]:
    """Two hosts on one network."""
    with hosts(2) as found:
        yield found


def order_of(members: Sequence[Program], size: int, kind: str) -> None:
    """Wait until the group has that order at each of these members; while some have gone over, others may not have."""
    for member in members:
        while member.next_fact()["order"] != [size, kind]:
            pass


def check_all(programs: Programs, members: Sequence[Program], gone: dict[int, int]) -> None:
    """All stop; they have one history, with all that has returned once, that of members which are `gone` as well."""
    programs.call("stop")
    facts = []
    for member in members:
        while "fingerprint" not in (fact := member.next_fact()):
            pass
        facts.append(fact)
    assert len({str(fact["fingerprint"]) for fact in facts}) == 1
    written = gone | {int(str(fact["pid"])): int(str(fact["written"])) for fact in facts}
    for fact in facts:
        assert fact["disorder"] == []
        newest = fact["newest"]
        assert isinstance(newest, dict)
        assert {pid: newest[str(pid)] for pid in written} == written
    assert [member.end() for member in members] == [0] * len(members)


def make(programs: Programs, two: Sequence[Host]) -> tuple[list[Program], str]:
    """Two members on the first host, and where others find them."""
    seed = f"tcp:{two[0].address}:7471"
    options = {"ORCALIKE_DETECTION": "1s"}
    near = [programs.start_on(two[0], "going_over.py", "a", "make", seed, **options)]
    order_of(near, 1, MEMORY)
    near.append(programs.start_on(two[0], "going_over.py", "b", "join", seed))
    order_of(near, 2, MEMORY)
    return near, seed


@pytest.mark.parametrize("way", ["leaves", "is killed"])
def test_the_order_goes_over_as_a_member_of_another_host_comes_and_back_as_it_goes(
    programs: Programs, two: Sequence[Host], way: str
) -> None:
    """While all write; nothing that has returned is lost, and each writer's own writes stay in their order."""
    near, seed = make(programs, two)
    gone: dict[int, int] = {}
    for number in range(ROUNDS):
        name = f"far{number}"
        far = programs.start_on(two[1], "going_over.py", name, "join", seed)
        order_of([*near, far], 3, SEQUENCER)
        if way == "leaves":
            programs.call(name)
            while "written" not in (fact := far.next_fact()):
                pass
            gone[int(str(fact["pid"]))] = int(str(fact["written"]))
            assert far.end() == 0
        else:
            far.kill()
        order_of(near, 2, MEMORY)
    check_all(programs, near, gone)


def test_the_order_is_in_memory_for_one_that_joins_by_another_address(
    programs: Programs, two: Sequence[Host]
) -> None:
    """It learns by the greeting where the member is reached, and that this is on its own host."""
    advertised = {"ORCALIKE_ADVERTISE": two[0].address}
    everywhere = "tcp:0.0.0.0:7471"
    members = [programs.start_on(two[0], "going_over.py", "a", "make", everywhere, **advertised)]
    order_of(members, 1, MEMORY)
    seed = "tcp:127.0.0.1:7471"
    members.append(programs.start_on(two[0], "going_over.py", "b", "join", seed, **advertised))
    for member in members:
        assert member.next_fact()["order"] == [2, MEMORY], "from the first view of both"
    check_all(programs, members, {})


def test_the_order_goes_to_memory_when_a_member_has_the_descriptors_that_it_lacked(
    programs: Programs, two: Sequence[Host]
) -> None:
    """The next change of view tries again, while all write."""
    near, seed = make(programs, two)
    near.append(programs.start_on(two[0], "going_over.py", "short", "join", seed))
    order_of(near, 3, SEQUENCER)
    programs.call("enough")
    near.append(programs.start_on(two[0], "going_over.py", "c", "join", seed))
    order_of(near, 4, MEMORY)
    check_all(programs, near, {})


def test_one_of_the_host_is_killed_in_either_order(programs: Programs, two: Sequence[Host]) -> None:
    """The others go on: from memory in memory, over a sequencer with the majority."""
    near, seed = make(programs, two)
    near.append(programs.start_on(two[0], "going_over.py", "c", "join", seed))
    order_of(near, 3, MEMORY)
    near.pop().kill()
    order_of(near, 2, MEMORY)
    far = programs.start_on(two[1], "going_over.py", "far", "join", seed)
    order_of([*near, far], 3, SEQUENCER)
    near.pop(0).kill()  # it has given the numbers
    order_of([*near, far], 2, SEQUENCER)
    check_all(programs, [*near, far], {})
