"""Warnings reach people, if the program has set up no logging; else they go where it says."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging
import orcalike as orca

{setup}

@orca.shared
class Door:
    @orca.write
    def slam(self) -> None:
        raise ValueError("the frame is broken")

with orca.join() as group:
    door = group.share(Door, "door")
    door.slam.nowait()
    group.fence()
"""
FAILURE = "slam failed, and its outcome was not asked for: ValueError('the frame is broken')"


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ("", "orcalike: Door.{}\n"),
        ("logging.basicConfig(format='LOG %(message)s')", "LOG Door.{}\n"),
        ("logging.getLogger('orcalike').addHandler(logging.NullHandler())", ""),
        (
            "logging.getLogger('elsewhere').addHandler(logging.StreamHandler())",
            "orcalike: Door.{}\n",
        ),
        ("logging.getLogger('orcalike').setLevel(logging.CRITICAL)", ""),
    ],
    ids=["none", "root", "of the logger", "of another logger", "level"],
)
def test_a_failure_is_logged_once(setup: str, expected: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert ended.stderr == expected.format(FAILURE)
