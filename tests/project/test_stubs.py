"""Each compiled module has a stub, and the stub says what the module has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for top in ("runtime", "transport") for path in (ROOT / top).rglob("*.pyx"))
ALLOWED = r"""
# Instances are called through a pointer of theirs, and no slot of the type's is shown for it.
orcalike\.runtime\.operation\.Operation\.__call__
# A layer's own field of a downcall's name; to a type checker it stays the downcall.
orcalike\.transport\.layers\.\w+\.\w+\.view
orcalike\.transport\.layers\.total\.Total\.stable
# From CPython 3.13 on the module of a compiled function without arguments is shown as one.
orcalike\.runtime\.running\.running_place
orcalike\.transport\.drivers\.driver\.clock
"""
CONFIG = """
[mypy]
[mypy-numpy.*]
follow_imports = skip
follow_imports_for_stubs = True
"""
"""No stub has a type of numpy's, and mypy would read a hundred modules for them."""


def test_each_compiled_module_has_a_stub() -> None:
    assert SOURCES
    assert [path for path in SOURCES if not path.with_suffix(".pyi").exists()] == []


def test_stubs_fit_the_compiled_modules(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text(ALLOWED)
    config = tmp_path / "mypy.ini"
    config.write_text(CONFIG)
    modules = [
        ".".join(("orcalike", *path.relative_to(ROOT).with_suffix("").parts)) for path in SOURCES
    ]
    options = ["--ignore-missing-stub", "--ignore-disjoint-bases", f"--allowlist={allowed}"]
    options += ["--ignore-unused-allowlist", f"--mypy-config-file={config}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *options, *modules],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
