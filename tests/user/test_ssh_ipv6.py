"""`orcalike run -H` over hosts that are named by IPv6 numbers, with a real sshd on each."""

from __future__ import annotations

import re

from tests.lib.ssh_hosts import COUNTS, SshHosts

SAYS_WHERE = f"{COUNTS}    import os; print(os.environ['ORCALIKE_LISTEN'], flush=True)\n"


def addresses(output: str) -> list[str]:
    """Where the ranks listen, by rank."""
    found = dict(re.findall(r"^\[(\d)\] tcp:(\S+):\d+$", output, re.MULTILINE))
    return [found[rank] for rank in sorted(found)]


def test_hosts_by_number(two: SshHosts) -> None:
    result = two.run("-H", "[fd77::2]:2,[fd77::3]:2", two.write(SAYS_WHERE))
    assert result.returncode == 0, result.stderr
    assert len(re.findall(r"^\[\d\] 40$", result.stdout, re.MULTILINE)) == 4
    assert addresses(result.stdout) == ["[fd77::2]"] * 2 + ["[fd77::3]"] * 2
    assert "4 members on 2 hosts (ssh)" in result.stderr
    assert two.rest() == []


def test_hosts_by_number_in_a_file(two: SshHosts) -> None:
    file = two.directory / "hosts"
    file.write_text(
        "localhost\nroot@[FD77:0::2] slots=2  # as others may write it\nc advertise=[fd77::3]\n"
    )
    result = two.run("--hostfile", str(file), two.write(SAYS_WHERE))
    assert result.returncode == 0, result.stderr
    assert addresses(result.stdout) == ["[fd77::1]", "[fd77::2]", "[fd77::2]", "[fd77::3]"]
    file.write_text("b\n[fd77::3 slots=2\n")
    result = two.run("--hostfile", str(file), two.write(SAYS_WHERE))
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{file}, line 2: '[fd77::3' is no host: write" in result.stderr
    assert two.rest() == []


def test_a_network_may_be_ipv6(two: SshHosts) -> None:
    result = two.run("-H", "b,c", "--interface", "fd77::/64", two.write(SAYS_WHERE))
    assert addresses(result.stdout) == ["[fd77::2]", "[fd77::3]"], result.stderr


def test_a_number_that_is_none_of_the_hosts(two: SshHosts) -> None:
    result = two.run("-H", "[fd77::2],[fd77::9]", two.write(COUNTS))
    assert result.returncode == 69
    assert "cannot reach host [fd77::9]: ssh: connect to host fd77::9 port 22: " in result.stderr
    assert "; try: ssh fd77::9 true" in result.stderr
    assert two.rest() == []
