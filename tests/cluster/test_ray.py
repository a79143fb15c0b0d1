"""The processes of a Ray job as members, on this host: by Unix sockets, and by TCP under a key."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.programs import Programs

pytest.importorskip("ray", reason="Ray is not installed: make guests")


def test_tasks_and_actors_are_members(programs: Programs) -> None:
    """Twice in one job: what is over leaves nothing behind."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        program = programs.start("ray_guests.py", RAY_FOLDER=folder, ORCALIKE_CHECK="")
        for medium in ("unix", "tcp"):
            assert program.next_fact() == {"medium": medium, "rank": 1}
            assert program.next_fact() == {"hits": 20, "several": True}
            assert program.next_fact() == {"read": 20}
            assert program.next_fact() == {"idle": True, "read": 20}
            assert program.next_fact() == {"hits": 20, "process": True}
            assert program.next_fact() == {"member": False, "folder": False}
            assert "no group 'default' is attached" in str(program.next_fact()["refused"])
        assert program.next_fact() == {"end": True}
        assert program.end() == 0
    assert "orcalike" not in program.complaints()
