"""Arguments of `join` that cannot be meant, and what it says of a place that cannot be used."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime import registered
from orcalike.transport.drivers.addresses import UNIX_PATH_MAX


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": ""}, "name='': leave it out for the group of the program"),
        ({"listen": ""}, "listen='': there is no address in it; leave it out"),
        ({"at": ""}, "at='': there is no address in it; leave it out"),
        ({"seeds": ""}, "seeds='': there is no address in it; leave it out"),
        ({"size": True}, "size=True: a number of members"),
        ({"key": 3, "listen": "tcp:127.0.0.1:0"}, "key=3: 32 bytes, or the path of a file"),
        (
            {"key": None, "listen": "unix:x", "seeds": ["unix:x"]},
            "where this process listens itself",
        ),
        ({"seeds": ["tcp:[::1]:7", "tcp:[0::1]:7"], "listen": "tcp:[::1]:7"}, "listens itself"),
    ],
)
def test_what_cannot_be_meant(arguments: dict[str, Any], error: str) -> None:
    """A text without an address is as a rule a variable that is not set."""
    with pytest.raises((ValueError, TypeError), match=error):
        orca.connect(**arguments, timeout=60)


def test_a_number_is_no_key_and_no_open_file() -> None:
    reader, writer = os.pipe()
    with pytest.raises(TypeError, match=f"key={reader}"):
        orca.connect(listen="tcp:127.0.0.1:0", key=reader)  # type: ignore[arg-type]
    os.close(reader)  # it is open still
    os.close(writer)


def test_a_process_that_can_listen_nowhere_beside_its_seed(tmp_path: Path) -> None:
    folder = tmp_path / ("n" * UNIX_PATH_MAX)
    folder.mkdir()
    with pytest.raises(
        orca.OrcalikeError,
        match=f"cannot listen at unix:{folder}/.*longer than.* beside the member that it joins$",
    ):
        orca.connect(seeds=f"unix:{folder}/g", timeout=60)


def test_members_that_did_not_come_in_time_are_counted(tmp_path: Path) -> None:
    with pytest.raises(
        orca.JoinFailed, match=r"within 0 s: 1 of 3 members are in; in it are rank 0 \(unix"
    ):
        orca.connect(listen=f"unix:{tmp_path}/group", size=3, timeout=0)


def test_a_program_that_may_fork_and_has_no_directory_for_a_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/none")
    monkeypatch.setitem(registered.functions, "tests:work", lambda group: None)
    for begin in (orca.connect, orca.Manager):
        with pytest.raises(orca.OrcalikeError, match=r"No such file.*set TMPDIR to a directory"):
            begin()
