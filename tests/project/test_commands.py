"""What a module's docstring says can be run says how, too: `python -m MODULE --help`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def runnable() -> list[str]:
    """The modules that are programs, and whose text shows the command."""
    found = []
    for path in sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("orcalike/simulator/**/*.py")]):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        text = path.read_text(encoding="utf-8")
        if f"python -m {module}" in text and '\nif __name__ == "__main__":' in text:
            found.append(module)
    return found


@pytest.mark.parametrize("module", runnable())
def test_a_module_that_can_be_run_says_how(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: "), done.stdout
