"""What cleans up after a launcher is there from the first moment on."""

from __future__ import annotations

from pathlib import Path

from orcalike.launcher.reaper import IGNORED, NAME, Reaper


def test_it_has_its_name_and_ignores_signals_when_the_launcher_goes_on(tmp_path: Path) -> None:
    """Else what kills a run inside of another one, or a Ctrl-C, would end it before it can act."""
    for _ in range(5):
        folder = tmp_path / "run"
        folder.mkdir()
        reaper = Reaper(folder)
        process = Path(f"/proc/{reaper.pid}")
        name, status = (process / "comm").read_text(), (process / "status").read_text()
        reaper.close()
        assert name == f"{NAME}\n"
        ignored = int(status.split("SigIgn:")[1].split()[0], 16)
        assert [number for number in IGNORED if not ignored & 1 << number - 1] == []
        assert not folder.exists()
