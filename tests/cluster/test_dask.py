"""Dask's workers as members, on a cluster of this host."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.processes import Facts
    from tests.lib.programs import Programs

# Programs import it, and not the tests: it takes half a second.
pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None, reason="Dask is not installed: make guests"
)

HASH_SEED = "6640"
"""What Dask gives to its workers, so that the client has the same."""


def facts_of(programs: Programs, *scenarios: str, **environment: str) -> list[list[Facts]]:
    """What each scenario of one process prints, to its end; orcalike logs nothing."""
    program = programs.start(
        "dask_guests.py", *scenarios, PYTHONHASHSEED=HASH_SEED, ORCALIKE_CHECK="", **environment
    )
    found: list[list[Facts]] = []
    for scenario in scenarios:
        found.append([])
        while (fact := program.next_fact()) != {"end": scenario}:
            found[-1].append(fact)
    assert program.end() == 0, program.stderr()
    logged = program.complaints().splitlines()  # Dask's own lines are its own
    assert [line for line in logged if line.startswith("orcalike")] == []
    return found


def test_workers_come_and_go(programs: Programs) -> None:
    (facts,) = facts_of(programs, "come_and_go")
    first, counted, late, retired, killed, after, over, again = facts
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
    ((fact,),) = facts_of(programs, "over_hosts", LOG=str(log))
    key = fact.pop("key")
    assert fact.pop("address").startswith("tcp:127.0.0.1:")
    assert fact == {"hits": 10, "resilience": 1, "shown": False}
    texts = [path.read_bytes() for path in programs.directory.glob("log*")]
    assert len(texts) == 2
    for text in texts:
        assert key.encode() not in text
        assert repr(bytes.fromhex(key)).encode() not in text


def test_clients_and_workers_of_several_kinds(programs: Programs) -> None:
    """A second client joins and leaves; an asynchronous client; workers that are threads."""
    scenarios = facts_of(programs, "two_clients", "on_a_loop", "in_one_process")
    two_clients, on_a_loop, in_one_process = scenarios

    refused, joined, left, over = two_clients
    assert "this process is no member of the group 'ours'" in refused["refused"]
    assert joined == {"size": 2, "name": "ours"}
    assert left == {"size": 1}
    assert over == {"members": [False]}

    assert on_a_loop == [{"hits": 5, "size": 2}, {"mine": False}]

    there, over = in_one_process
    assert there == {"size": 3, "hits": 10, "read": [10, 10]}
    assert over == {"mine": False}
