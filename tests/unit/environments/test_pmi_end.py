"""How a process that has spoken PMI-1 ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orcalike.environments import pmi_end

Pipe = tuple[int, int]


@pytest.fixture
def pipes() -> Iterator[tuple[Pipe, Pipe]]:
    """Two pipes: of PMI, and of what the process prints."""
    found = os.pipe(), os.pipe()
    yield found
    for ends in found:
        for each in ends:
            os.close(each)


def test_an_abort_follows_what_was_printed(
    pipes: tuple[Pipe, Pipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mpiexec` may show nothing any more that it reads after it."""
    (pmi, to_pmi), (output, to_output) = pipes
    monkeypatch.setattr(sys, "last_value", ValueError(), raising=False)
    monkeypatch.setattr(pmi_end, "OUTPUT", (to_output,))
    monkeypatch.setattr(pmi_end, "READ_WITHIN", 60.0)
    os.write(to_output, b"a traceback")
    os.set_blocking(pmi, False)
    ending = threading.Thread(target=pmi_end._say, args=(to_pmi, os.getpid()))
    ending.start()
    ending.join(0.2)
    with pytest.raises(BlockingIOError):
        os.read(pmi, 100)
    assert os.read(output, 100) == b"a traceback"
    ending.join(60)
    assert os.read(pmi, 100) == b"cmd=abort exitcode=1\n"


def test_not_for_long(pipes: tuple[Pipe, Pipe]) -> None:
    _, (output, to_output) = pipes
    os.write(to_output, b"which nothing reads")
    began = time.monotonic()
    pmi_end.wait_until_read((to_output,), 0.01)
    assert time.monotonic() - began >= 0.01
    assert os.read(output, 100) == b"which nothing reads", "it was given up, and not taken"


def test_only_for_pipes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("what is in a file is not waited for")
    file = os.open(tmp_path / "file", os.O_RDWR)
    try:
        ending = threading.Thread(target=pmi_end.wait_until_read, args=((file, -1), 1e9))
        ending.start()
        ending.join(60)
        assert not ending.is_alive()
    finally:
        os.close(file)
