"""A run for which the system has no room, or that names no command: why is said in a line, and nothing stays behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from orcalike.launcher import reaper, remote_command, runtime_folders
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.host_list import ListedHost
from tests.lib.descriptors import count_files


def test_no_space_for_the_folder_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_folders, "runtime_base", lambda: tmp_path)

    def without_space(self: Path, mode: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", without_space)
    with pytest.raises(LaunchError, match=f"{tmp_path}.*No space left.*XDG_RUNTIME_DIR") as raised:
        runtime_folders.make_run_folder("run")
    assert raised.value.code == 70


def test_no_process_for_the_reaper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "run"
    directory.mkdir()

    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", fork)
    files = count_files()
    with pytest.raises(LaunchError, match=r"temporarily unavailable.*ulimit -u") as raised:
        reaper.start_reaper(directory)
    assert raised.value.code == 70
    assert not directory.exists()
    assert count_files() == files


@pytest.mark.parametrize("trouble", ["there is none", "it hangs"])
def test_an_mpiexec_that_does_not_say_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}")
    if trouble == "it hangs":
        (tmp_path / "mpiexec").write_text("#!/bin/sh\nexec /bin/sleep 1000\n")
        (tmp_path / "mpiexec").chmod(0o755)
        monkeypatch.setattr(remote_command, "PROBE_SECONDS", 0.1)
    words = {"there is none": "No such file", "it hangs": "has not ended"}[trouble]
    with pytest.raises(LaunchError, match=f"mpiexec.*{words}.*--via") as raised:
        remote_command.host_command("mpi", ListedHost("a", 1))
    assert raised.value.code == 69


def test_an_ssh_whose_words_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCALIKE_SSH", "ssh 'x")
    with pytest.raises(LaunchError, match="ORCALIKE_SSH=ssh 'x: No closing quotation") as raised:
        remote_command.host_command("ssh", ListedHost("a", 1))
    assert raised.value.code == 2
