"""What the programs of these tests share: meeting places, and facts for the test to read."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

MEETINGS = Path(os.environ.get("MEETINGS", "."))
DEADLINE = 250.0
_key = MEETINGS / os.environ.get("KEY", "key")
KEY = _key if _key.exists() else None
STACK = os.environ.get("STACK")


def meet(place: str, count: int) -> None:
    """Wait until `count` processes are here. No message of the group is sent for it."""
    (MEETINGS / f"{place}.{os.getpid()}").touch()
    wait_for(lambda: len(list(MEETINGS.glob(f"{place}.*"))) >= count, f"{count} at {place}")


def called(name: str) -> bool:
    """Whether the test has said so, or another process."""
    return (MEETINGS / name).exists()


def call(name: str) -> None:
    """Say so."""
    (MEETINGS / name).touch()


def wait_for(condition: object, what: str) -> None:
    """Wait until `condition()` holds."""
    assert callable(condition)
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.005)


def tell(**facts: object) -> None:
    """One line for the test."""
    os.write(1, (json.dumps(facts) + "\n").encode())
