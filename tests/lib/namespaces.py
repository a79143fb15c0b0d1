"""Commands that run in namespaces of their own, as in a container."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def in_namespace(*options: str) -> list[str]:
    """The start of a command in namespaces of its own; skips the test if there can be none."""
    command = ["unshare", *options]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("namespaces cannot be made here")
    return command
