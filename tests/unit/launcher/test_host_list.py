"""The hosts of `-H` and of a hostfile: what is understood, and what each slip gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from orcalike.launcher.errors import LaunchError
from orcalike.launcher.host_list import ListedHost, fill, parse_hosts, read_hostfile

FILE = """
# two racks
alpha slots=4       # Open MPI's way
beta:2
gamma
me@delta slots=1 advertise=10.0.0.5
[fd00::5]:3
[fd00::6] slots=2 advertise=[fd00::7]
"""


def test_hosts_of_an_option() -> None:
    assert parse_hosts("a:4,me@b.example-1:2,c") == [
        ListedHost("a", 4),
        ListedHost("me@b.example-1", 2),
        ListedHost("c", 1),
    ]
    assert parse_hosts("[fd00::5]:3,[fd00::6]") == [
        ListedHost("[fd00::5]", 3),
        ListedHost("[fd00::6]"),
    ]
    assert parse_hosts("me@[fe80::5%eth0]:3") == [ListedHost("me@[fe80::5%eth0]", 3)]


def test_hosts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text(FILE)
    assert read_hostfile(path) == [
        ListedHost("alpha", 4),
        ListedHost("beta", 2),
        ListedHost("gamma", 1),
        ListedHost("me@delta", 1, "10.0.0.5"),
        ListedHost("[fd00::5]", 3),
        ListedHost("[fd00::6]", 2, "fd00::7"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is no host"),
        ("a,,b", "'' is no host"),
        ("a:0", "'0' is not how many ranks"),
        ("a:x", "'x' is not how many ranks"),
        ("a:-1", "'-1' is not how many ranks"),
        ("a:4097", "1 to 4096"),
        ("a:٣", "is not how many ranks"),
        ("-oProxyCommand=reboot", "is no host"),
        ("a b", "is no host"),
        ("a;reboot", "is no host"),
        ("me@-x", "is no host"),
        ("$(reboot)", "is no host"),
        ("[fd00:::1]:2", "'\\[fd00:::1\\]:2' is no host: .*\\[fd00::5\\]:4"),
        ("[fd00::1:2", "'\\[fd00::1:2' is no host"),
        ("fd00::1]:2", "is no host"),
        ("fd00::1:2", "'fd00::1:2' is no host: .*\\[fd00::5\\]:4"),
        ("[fd00::1]2", "is no host"),
        ("[fd00::1]:", "'' is not how many ranks"),
        ("[hello]", "is no host"),
        ("[10.0.0.5]", "is no host"),
        ("[fd00::1%]", "is no host"),
        ("[]", "is no host"),
        ("[fd00::1],[fd00:0::1]", "the host \\[fd00:0::1\\] is named twice"),
        ("me@[fd00::1],me@[FD00::1]:3", "is named twice: .*\\(me@\\[FD00::1\\]:4\\)"),
        ("a:2,b,a:3", "the host a is named twice: name it once, with all of its slots \\(a:5\\)"),
    ],
)
def test_slips_in_an_option(text: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message) as raised:
        parse_hosts(text)
    assert raised.value.code == 2
    assert str(raised.value).startswith(f"-H {text}: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a slots=many", "'many' is not how many ranks"),
        ("a slots", "'slots' is not understood: write `a slots=4`"),
        ("a max_slots=4", "'max_slots=4' is not understood"),
        ("a advertise=", "is not understood"),
        ("a advertise=[fd00::5", "'advertise=\\[fd00::5' is no address .*10.0.0.5 or fd00::5"),
        ("a advertise=a.example", "is no address"),
        ("a advertise=10.0.0.5:7471", "is no address"),
        ("a advertise=0.0.0.0", "is no address"),
        ("[fd00::5 slots=2", "'\\[fd00::5' is no host"),
        ("b", "the host b is named twice"),
        ("a\x00b", "is no host"),
    ],
)
def test_slips_in_a_file(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(f"b\n\n{line}\n")
    with pytest.raises(LaunchError, match=message) as raised:
        read_hostfile(path)
    assert str(raised.value).startswith(f"{path}, line 3: ")


def test_files_that_name_no_host(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    with pytest.raises(LaunchError, match="No such file"):
        read_hostfile(path)
    with pytest.raises(LaunchError, match="Is a directory"):
        read_hostfile(tmp_path)
    path.write_text("# nothing\n")
    with pytest.raises(LaunchError, match="it names no host"):
        read_hostfile(path)
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(LaunchError, match="more than 1048576 bytes"):
        read_hostfile(path)


def test_the_first_hosts_are_filled_first() -> None:
    hosts = [ListedHost("a", 2), ListedHost("b", 3), ListedHost("c", 1)]
    assert fill(hosts, 6) == [2, 3, 1]
    assert fill(hosts, 3) == [2, 1, 0]
    with pytest.raises(
        LaunchError, match="-n 7 is more than the 6 slots of a:2, b:3, c:1: lower -n"
    ):
        fill(hosts, 7)
