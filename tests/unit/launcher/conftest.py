"""What tests of agents share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orcalike.launcher import agent as module
from tests.lib.agent_launcher import HANDLED, Host, Launcher
from tests.lib.descriptors import count_files


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    monkeypatch.setattr(module, "LocalHost", Host)
    monkeypatch.setattr(module, "own_host", lambda **_: "127.0.0.1")
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    files = count_files()
    made = Launcher(tmp_path)
    yield made
    made.close()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    assert count_files() == files
