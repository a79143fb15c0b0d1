"""Members on several hosts, under a key: each listens and is reached at its own address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.lib.network import Host, hosts
from tests.lib.programs import Program, Programs


@pytest.fixture
def three() -> Iterator[Sequence[Host]]:
    """Three hosts on one network."""
    with hosts(3) as found:
        yield found


def check_all_equal(programs: Programs, members: Sequence[Program]) -> None:
    """Have all members stop and end; all have seen the same, and each other's writes."""
    programs.call("stop")
    facts = [member.next_fact() for member in members]
    assert len({str(fact["digest"]) for fact in facts}) == 1
    for fact in facts:
        assert fact["writers"] == {str(each["pid"]): each["written"] for each in facts}
    assert [member.end() for member in members] == [0] * len(members)
    assert "".join(member.complaints() for member in members) == ""


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
def test_a_group_over_three_hosts(programs: Programs, three: Sequence[Host], family: str) -> None:
    """The first listens at all its addresses, and is reached at one; the others at their own hosts."""
    own = [f"[{host.address6}]" if family == "IPv6" else host.address for host in three]
    everywhere = "[::]" if family == "IPv6" else "0.0.0.0"
    environment = {
        "PAUSE": "0.01",
        "ORCALIKE_INTERFACE": "fd77::/64" if family == "IPv6" else "eth0",
    }
    first = programs.start_on(
        three[0], "busy_member.py", "make", f"tcp:{everywhere}:7471", **environment
    )
    assert first.next_fact()["address"] == f"tcp:{own[0]}:7471"
    members = [first]
    for host, address in zip(three[1:], own[1:], strict=True):
        seed = f"tcp:{own[0]}:7471"
        members.append(programs.start_on(host, "busy_member.py", "join", seed, PAUSE="0.01"))
        fact = members[-1].next_fact()
        assert str(fact["address"]).startswith(f"tcp:{address}:")
        assert fact["size"] == len(members)
    check_all_equal(programs, members)
