"""Keys of real members over TCP: another one is refused with words, and one is changed under load."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import orcalike as orca
from orcalike.session.key_file import read
from orcalike.transport.errors import NOT_PROVED

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lib.programs import Programs


def keygen(path: Path, *arguments: str) -> list[str]:
    """Change the file of keys; returns the ids, the one that seals first."""
    command = [sys.executable, "-m", "orcalike", "keygen", *arguments, str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return [entry.key.id.hex() for entry in read(path)]


@pytest.fixture
def keys(programs: Programs) -> Path:
    """The file that all members of a test take their keys from."""
    path = programs.directory / "key"
    path.unlink(missing_ok=True)
    keygen(path)
    return path


def test_a_joiner_with_another_key_learns_it(programs: Programs, keys: Path) -> None:
    maker = programs.start("busy_member.py", "make", "tcp:127.0.0.1:0")
    address = str(maker.next_fact()["address"])
    keygen(programs.directory / "another")
    wrong = programs.start("busy_member.py", "join", address, KEY="another")
    assert wrong.end() == 1
    last = wrong.stderr().splitlines()[-1]
    assert last.startswith("orcalike.AuthenticationError: the key of this process is not that of")
    assert address in last
    right = programs.start("busy_member.py", "join", address)
    right.next_fact()
    programs.call("stop")
    assert maker.next_fact()["digest"] == right.next_fact()["digest"]
    assert (maker.end(), right.end()) == (0, 0)


def test_an_address_at_which_no_process_listens_is_no_wrong_key(keys: Path) -> None:
    """The group may be made later: that is tried until the time is over."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        pytest.raises(orca.JoinFailed, match="Connection refused") as caught,
        orca.join(seeds=f"tcp:127.0.0.1:{port}", key=keys, timeout=3),
    ):
        pass
    assert NOT_PROVED not in str(caught.value)


def test_the_key_is_changed_while_members_write(programs: Programs, keys: Path) -> None:
    """A member joins after each step; all the others go on, and the last one never had the old key."""
    (old,) = keygen(keys, "--list")
    members = [programs.start("busy_member.py", "make", "tcp:127.0.0.1:0")]
    address = str(members[0].next_fact()["address"])
    _, new = keygen(keys, "--add")
    for step in ((), ("--use", new), ("--remove", old)):
        if step:
            keygen(keys, *step)
        members.append(programs.start("busy_member.py", "join", address))
        members[-1].next_fact()
    assert keygen(keys, "--list") == [new]
    programs.call("stop")
    facts = [member.next_fact() for member in members]
    assert len({str(fact["digest"]) for fact in facts}) == 1
    for fact in facts:
        assert fact["writers"] == {str(each["pid"]): each["written"] for each in facts}
    assert [member.end() for member in members] == [0] * 4
    assert "".join(member.complaints() for member in members) == ""


@pytest.mark.parametrize("lacks", ["the maker", "the joiner", "both"])
def test_members_without_pynacl_are_as_others(programs: Programs, lacks: str) -> None:
    """It seals short records; one end may have it and the other one not."""
    package = programs.directory / "without" / "nacl"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('raise ImportError("it is not installed here")\n')
    says = "from orcalike.transport.drivers import record_cipher as r; print(r.why_not_quick())"
    without = {"PYTHONPATH": str(package.parent)}
    assert "not installed here" in programs.python("-c", says, **without).stdout
    maker = programs.start(
        "busy_member.py", "make", "tcp:127.0.0.1:0", **({} if lacks == "the joiner" else without)
    )
    address = str(maker.next_fact()["address"])
    joiner = programs.start(
        "busy_member.py", "join", address, **({} if lacks == "the maker" else without)
    )
    joiner.next_fact()
    programs.call("stop")
    one, other = maker.next_fact(), joiner.next_fact()
    assert one["digest"] == other["digest"]
    assert len(one["writers"]) == 2
    assert (maker.end(), joiner.end()) == (0, 0)
    assert maker.complaints() == joiner.complaints() == ""
