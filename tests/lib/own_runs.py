"""A folder for the runs of one test, and commands that look for runs there and nowhere else.

`orcalike status` and others look for the runs of this user, also in `/tmp/orcalike-UID`, where those are that
were started without `XDG_RUNTIME_DIR`: a program that a developer runs beside the tests is none of theirs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_LOOK = """
from orcalike.cli.verbs import main
from orcalike.launcher import runtime_folders
everywhere = runtime_folders._runtime_bases
runtime_folders._runtime_bases = lambda: everywhere()[:1]
main()
"""

LOOKING = ("-c", _LOOK)
"""In place of `-m orcalike`: the command, which looks for runs in the first of the folders alone."""

ORCALIKE = (sys.executable, *LOOKING)
"""The command, which finds the test's own runs alone."""


def take_folder(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Path:
    """Have the test's runs in a new folder, which is that of its commands, too; gives the one above theirs."""
    directory = factory.mktemp("x")
    directory.chmod(0o700)
    patch.setenv("XDG_RUNTIME_DIR", str(directory))
    return directory


@pytest.fixture
def own_runs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only the runs of this test are there to be found, by `ORCALIKE`."""
    return take_folder(tmp_path_factory, monkeypatch)
