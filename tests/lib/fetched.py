"""Programs of others that tests run, and that are not installed: unpacked below `build/tests`, once.

A test that needs one that cannot be had is skipped, and says which.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "tests"
WITHIN = 120.0
"""Seconds that a download may take."""


def fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of that name, which `fetch` has filled, now or earlier; skips if it cannot."""
    folder = FOLDER / name
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of tests that run at the same time one fetches
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                fetch(folder)
            except (OSError, subprocess.SubprocessError) as error:
                pytest.skip(f"{name} cannot be had here: {error}")
            (folder / "complete").touch()
    return folder


def debian_packages(name: str, *packages: str) -> Path:
    """A folder with these packages of the system's release, unpacked."""

    def fetch(folder: Path) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": WITHIN}
        subprocess.run(["apt-get", "download", *packages], cwd=folder, check=True, **quiet)  # type: ignore[call-overload]
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
            package.unlink()

    return fetched(name, fetch)


def python_package(name: str) -> Path:
    """The prefix into which a package of the dependency group `launchers` is installed, it alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = next(each for each in project["dependency-groups"]["launchers"] if name in each)

    def fetch(folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--ignore-installed",
        ]
        subprocess.run(
            [*command, "--prefix", str(folder), wanted],
            check=True,
            timeout=WITHIN,
            capture_output=True,
            env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        )

    return fetched(name, fetch)
