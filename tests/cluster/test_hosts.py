"""Members on several hosts, under a key: each listens and is reached at its own address."""

from __future__ import annotations

import shutil
import time
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
        "ORCALIKE_INTERFACE": "fd77::/64" if family == "IPv6" else "eth0",
    }
    first = programs.start_on(
        three[0], "busy_member.py", "make", f"tcp:{everywhere}:7471", **environment
    )
    assert first.next_fact()["address"] == f"tcp:{own[0]}:7471"
    members = [first]
    for host, address in zip(three[1:], own[1:], strict=True):
        seed = f"tcp:{own[0]}:7471"
        members.append(programs.start_on(host, "busy_member.py", "join", seed))
        fact = members[-1].next_fact()
        assert str(fact["address"]).startswith(f"tcp:{address}:")
        assert fact["size"] == len(members)
    check_all_equal(programs, members)


def make_three(programs: Programs, three: Sequence[Host], **environment: str) -> list[Program]:
    """A member on each host, the oldest first."""
    seed = f"tcp:{three[0].address}:7471"
    members = [programs.start_on(three[0], "cut_off.py", "make", seed, **environment)]
    fact_of(members[0], "in")
    for host in three[1:]:
        members.append(programs.start_on(host, "cut_off.py", "join", seed))
        fact_of(members[-1], "in")
    return members


def fact_of(member: Program, what: str) -> dict[str, object]:
    """The next thing of that kind that a member says."""
    while True:
        fact = member.next_fact()
        if fact["what"] == what:
            return fact


def view_of(member: Program, *ranks: int) -> None:
    """Wait until that is its view."""
    while fact_of(member, "view")["members"] != list(ranks):
        pass


@pytest.mark.parametrize("way", ["cut", "down"])
def test_a_host_that_is_cut_off_is_expelled_and_comes_back(
    programs: Programs, three: Sequence[Host], way: str
) -> None:
    """The others go on meanwhile; and when one of them is killed, the two that are left do, too.

    All count silence alike, though the environment of one alone says how long.
    """
    members = make_three(programs, three, ORCALIKE_DETECTION="1s")
    first, second, third = members
    getattr(three[1], way)()
    view_of(first, 0, 2)
    view_of(third, 0, 2)
    getattr(three[1], "mend" if way == "cut" else "up")()
    fact_of(second, "expelled")
    fact_of(second, "in again")
    view_of(first, 0, 1, 2)
    third.kill()
    view_of(first, 0, 1)
    programs.call("stop")
    for member in (first, second):
        fact = fact_of(member, "end")
        assert fact["count"] in (fact["added"], int(str(fact["added"])) + (member is second))
        assert fact["disorder"] == []
        assert member.end() == 0


def test_over_hosts_silence_is_longer(programs: Programs, three: Sequence[Host]) -> None:
    """2 s, and for all members what the first one has, which may have it from its environment."""
    seed = f"tcp:{three[0].address}:7471"
    for given, seconds in ({}, 2.0), ({"ORCALIKE_DETECTION": "700ms"}, 0.7):
        maker = programs.start_on(three[0], "cut_off.py", "make", seed, **given)
        assert fact_of(maker, "in")["detection"] == seconds
        joiner = programs.start_on(three[1], "cut_off.py", "join", seed)
        assert fact_of(joiner, "in")["detection"] == seconds
        other = programs.start_on(three[1], "cut_off.py", "join", seed, ORCALIKE_DETECTION="3s")
        assert other.end() == 1
        assert f"ConfigMismatch: the group has detection='{seconds:g}s', not '3s'" in other.stderr()
        programs.call("stop")
        assert (joiner.end(), maker.end()) == (0, 0)
        (programs.directory / "stop").unlink()


def test_a_wrong_key_is_found_within_seconds(programs: Programs, three: Sequence[Host]) -> None:
    """The joiner says so; the member says no more than a line a second, and goes on."""
    seed = f"tcp:{three[0].address}:7471"
    maker = programs.start_on(three[0], "busy_member.py", "make", seed)
    maker.next_fact()
    (programs.directory / "wrong").write_bytes(bytes(32))
    (programs.directory / "wrong").chmod(0o600)
    began = time.monotonic()
    wrong = [
        programs.start_on(three[1], "busy_member.py", "join", seed, KEY="wrong") for _ in range(3)
    ]
    for joiner in wrong:
        assert joiner.end() == 1
        assert "orcalike.AuthenticationError: the key of this process" in joiner.stderr()
    lines = [line for line in maker.complaints().splitlines() if "refused" in line]
    assert 1 <= len(lines) <= time.monotonic() - began + 2
    right = programs.start_on(three[2], "busy_member.py", "join", seed)
    right.next_fact()
    programs.call("stop")
    assert maker.next_fact()["digest"] == right.next_fact()["digest"]
    assert (maker.end(), right.end()) == (0, 0)


CONNECTS = """
import socket, sys, time
number, target, *sources = sys.argv[1:]
host, port = target.rsplit(":", 1)
held = []
for source in sources:
    for _ in range(int(number)):
        held.append(socket.create_connection((host, int(port)), source_address=(source, 0)))
print('{"held": %d}' % len(held), flush=True)
while True:                                     # those that were closed are made again
    for i, sock in enumerate(held):
        sock.setblocking(False)
        try:
            if not sock.recv(1):
                source = sock.getsockname()[0]
                sock.close()
                held[i] = socket.create_connection((host, int(port)), source_address=(source, 0))
        except BlockingIOError:
            pass
        except OSError:
            pass
    time.sleep(0.01)
"""


def test_silent_connections_from_many_addresses_keep_no_process_out(
    programs: Programs, three: Sequence[Host]
) -> None:
    """64 from each of 10 addresses of another host, all the time: a joiner from a third one gets in."""
    seed = f"{three[0].address}:7471"
    maker = programs.start_on(three[0], "busy_member.py", "make", f"tcp:{seed}")
    maker.next_fact()
    sources = [f"10.77.0.{number}" for number in range(100, 110)]
    for source in sources:
        three[1].add_address(f"{source}/24")
    silent = programs.start_on(three[1], "-c", CONNECTS, "64", seed, *sources)
    assert silent.next_fact() == {"held": 640}
    late = [programs.start_on(host, "busy_member.py", "join", f"tcp:{seed}") for host in three]
    for joiner in late:
        joiner.next_fact()
    silent.kill()
    programs.call("stop")
    assert len({str(each.next_fact()["digest"]) for each in (maker, *late)}) == 1
    assert [each.end() for each in (maker, *late)] == [0] * 4


@pytest.mark.parametrize("medium", ["--unix", "--tcp"])
def test_a_run_listens_on_the_loopback_interface_alone(
    programs: Programs, three: Sequence[Host], medium: str
) -> None:
    """All that a run listens at, as the kernel has it, on a host on which nothing else runs."""
    host = three[0]
    if shutil.which("ss") is None:
        pytest.skip("the program ss (iproute2) says what is listened at")
    run = programs.start_on(
        host, "-m", "orcalike", "run", "-q", "--no-prefix", medium, "-n2", "busy_member.py", "run"
    )
    for _ in range(2):
        run.next_fact()
    listening = [line.split()[4] for line in host.run("ss", "-lntuH").splitlines()]
    hosts_listened_at = {address.rpartition(":")[0] for address in listening}
    assert hosts_listened_at == (set() if medium == "--unix" else {"127.0.0.1"})
    programs.call("stop")
    assert run.end() == 0
