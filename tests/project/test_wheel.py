"""What `pip install` gives: a wheel that works away from the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKS = ("runtime", "transport", "examples")
SET_BY_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
FIRST_PROGRAM = re.compile(r"^```python (\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints on both outputs; it must end well."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ended = subprocess.run(
        command,
        cwd=cwd,
        env=clean,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources alone, as a clone has them."""
    copy = tmp_path_factory.mktemp("tree")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    return copy


def take_compiled(tree: Path) -> None:
    """Give a tree what `make build` has compiled, where the build looks for what is up to date."""
    shutil.copytree(ROOT / "build" / "orcalike", tree / "build" / "orcalike")
    library = tree / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for top in ("runtime", "transport"):
        for compiled in (ROOT / top).rglob("*.so"):
            place = library / "orcalike" / compiled.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(compiled, place)


@pytest.fixture(scope="module")
def distributions(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel and then the source distribution, built with the tools of this environment.

    Nothing is compiled a second time. Both are built by the hooks that pip calls, in one process, which finds
    out once what each compiled module depends on.
    """
    take_compiled(tree)
    out = tmp_path_factory.mktemp("distributions")
    # Each file that is copied would be a line that is written, and flushed.
    program = "import logging; logging.disable(20); from setuptools import build_meta as b; "
    program += "; ".join(f"b.{build}({str(out)!r})" for build in ("build_wheel", "build_sdist"))
    run(sys.executable, "-W", "ignore", "-c", program, cwd=tree)
    return out


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    """The wheel."""
    (built,) = distributions.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel in it."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place)
    pip = [sys.executable, "-m", "pip", f"--python={place / 'bin' / 'python'}"]
    run(*pip, "install", "--quiet", "--no-compile", wheel, cwd=place)
    return place / "bin"


def sources(tree: Path, *suffixes: str) -> set[str]:
    """The files of the package, the linked folders included, by their place in it."""
    found = {path for path in (tree / "orcalike").rglob("*") if not path.is_symlink()}
    named = {f"orcalike/{path.relative_to(tree / 'orcalike').as_posix()}" for path in found}
    for link in LINKS:
        below = [path for path in (tree / link).rglob("*") if path.is_file()]
        named |= {f"orcalike/{path.relative_to(tree).as_posix()}" for path in below}
    return {name for name in named if name.endswith(suffixes)}


def test_the_wheel_has_what_it_needs_and_nothing_that_was_made(tree: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    compiled = {name.partition(".")[0] for name in names if name.endswith(".so")}

    assert compiled == {name.removesuffix(".pyx") for name in sources(tree, ".pyx")}
    assert names >= sources(tree, ".py", ".pyi", ".pxd", ".tsp", "py.typed")
    assert {"orcalike/py.typed", "orcalike/examples/tsp.py"} <= names
    assert "orcalike/testing/plugin.py" in names
    unwanted = ("mutant", ".java", "bench/peers/")
    assert [name for name in names if any(map(name.__contains__, unwanted))] == []
    sources_in_c = {name for name in names if name.endswith((".pyx", ".c", ".toml"))}
    assert sources_in_c == {"orcalike/bench/pingpong.c"}  # compiled where it is measured
    assert {name.split("/")[0].split("-")[0] for name in names} == {"orcalike"}


def test_the_source_distribution_has_the_folders_in_their_places(
    tree: Path, distributions: Path
) -> None:
    """Links become folders, so that a build from it sees the same import tree."""
    (built,) = distributions.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}

    assert all(members[f"orcalike/{link}"].isdir() for link in LINKS)
    assert members.keys() >= sources(tree, ".py", ".pyi", ".pyx", ".pxd", ".h", ".tsp", "py.typed")
    assert members.keys() >= {"setup.py", "pyproject.toml", "README.md", "LICENSE", "Makefile"}
    assert members.keys() >= {str(path.relative_to(tree)) for path in (tree / "docs").rglob("*.md")}
    made = [name for name in members if name.endswith((".c", ".so", ".pyc"))]
    compiled_by_tests = {name for name in made if name.startswith("tests/lib/ring/")}
    assert compiled_by_tests == {
        path.relative_to(tree).as_posix() for path in (tree / "tests" / "lib" / "ring").glob("*.c")
    }
    made = [name for name in made if name not in compiled_by_tests]
    assert all(name.endswith("bench/pingpong.c") for name in made), made


def test_the_makefile_finds_what_is_compiled_in_the_source_distribution(
    distributions: Path, tmp_path: Path
) -> None:
    (built,) = distributions.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    apart = {name: value for name, value in os.environ.items() if name not in SET_BY_MAKE}
    for place in (ROOT, unpacked):
        listed = subprocess.run(
            ["make", "--print-data-base", "--dry-run", "clean"],
            cwd=place,
            env=apart,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not listed.stderr
        (found,) = (line for line in listed.stdout.splitlines() if line.startswith("SOURCES := "))
        assert "orcalike/transport/layers/pack.pyx" in found.replace("//", "/").split()


def test_the_first_program_runs_from_another_folder(environment: Path, tmp_path: Path) -> None:
    """With fewer numbers: test_docs.py runs all of it."""
    found = FIRST_PROGRAM.search((ROOT / "README.md").read_text())
    assert found is not None
    name, text = found.groups()
    assert text.count("100_000") == 1
    (tmp_path / name).write_text(text.replace("100_000", "1_000"))

    alone = run(environment / "python", name, cwd=tmp_path)
    launched = run(environment / "orcalike", "run", "-n", "2", name, cwd=tmp_path)
    assert alone.count("\n") == 1
    assert f"[0] {alone}" in launched


def test_the_examples_are_in_it(environment: Path, tmp_path: Path) -> None:
    assert "tsp" in run(environment / "orcalike", "examples", "list", cwd=tmp_path)
    where = "import orcalike; print(orcalike.__file__)"
    assert str(environment.parent) in run(environment / "python", "-c", where, cwd=tmp_path)
