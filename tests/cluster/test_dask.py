"""Dask's workers as members, on a cluster of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.processes import Facts
    from tests.lib.programs import Programs

pytest.importorskip("distributed", reason="Dask is not installed: make guests")

HASH_SEED = "6640"
"""What Dask gives to its workers, so that the client has the same."""


def facts_of(programs: Programs, scenario: str, **environment: str) -> list[Facts]:
    """What a scenario prints, to its end; orcalike logs nothing."""
    program = programs.start(
        "dask_guests.py", scenario, PYTHONHASHSEED=HASH_SEED, ORCALIKE_CHECK="", **environment
    )
    facts = []
    while (fact := program.next_fact()) != {"end": True}:
        facts.append(fact)
    assert program.end() == 0, program.stderr()
    logged = program.complaints().splitlines()  # Dask's own lines are its own
    assert [line for line in logged if line.startswith("orcalike")] == []
    return facts


def test_workers_come_and_go(programs: Programs) -> None:
    first, counted, late, retired, killed, after, over, again = facts_of(programs, "come_and_go")
    assert first == {"size": 3, "medium": "unix", "folder": True}
    assert counted == {"client": False, "hits": 20, "read": [20, 20]}
    assert late == {"size": 4, "read": [20, 20, 20]}
    assert retired == {"retired": True}
    assert killed == {"done": 20, "left": True}
    assert after == {"hits": True, "read": True}
    assert not any(over["members"])
    assert (over["mine"], over["folder"]) == (False, False)
    assert again == {"size": True}


def test_over_hosts_a_key_is_used_that_no_text_holds(programs: Programs) -> None:
    log = programs.directory / "log"
    (fact,) = facts_of(programs, "over_hosts", LOG=str(log))
    key = fact.pop("key")
    assert fact.pop("address").startswith("tcp:127.0.0.1:")
    assert fact == {"hits": 10, "resilience": 1, "shown": False}
    texts = [path.read_bytes() for path in programs.directory.glob("log*")]
    assert len(texts) == 2
    for text in texts:
        assert key.encode() not in text
        assert repr(bytes.fromhex(key)).encode() not in text


def test_a_second_client_joins_and_leaves(programs: Programs) -> None:
    refused, joined, left, over = facts_of(programs, "two_clients")
    assert "this process is no member of the group 'ours'" in refused["refused"]
    assert joined == {"size": 2, "name": "ours"}
    assert left == {"size": 1}
    assert over == {"members": [False]}


def test_an_asynchronous_client(programs: Programs) -> None:
    assert facts_of(programs, "on_a_loop") == [{"hits": 5, "size": 2}, {"mine": False}]


def test_workers_that_are_threads(programs: Programs) -> None:
    there, over = facts_of(programs, "in_one_process")
    assert there == {"size": 3, "hits": 10, "read": [10, 10]}
    assert over == {"mine": False}
