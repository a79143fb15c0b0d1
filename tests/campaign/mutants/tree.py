"""A copy of the tree in a temporary folder, in which mutants are planted and built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.campaign.mutants import ROOT, Mutant

BUILD = (sys.executable, "setup.py", "-q", "build_ext", "--inplace")
TESTS_MAX = 3600.0
"""Seconds that the tests of one mutant may take."""


class NoVerdict(Exception):
    """A mutant could not be tried: it does not apply or build, or its tests do not run."""


class Tree:
    """A built copy of the sources and tests."""

    def __init__(self, folder: Path, source: Path = ROOT) -> None:
        """Copy and build the tree at `source`; raises NoVerdict if it does not build."""
        self.folder = folder
        files = _run(source, "git", "ls-files", "--cached", "--others", "--exclude-standard")
        built = [*source.glob("runtime/**/*.so"), *source.glob("transport/**/*.so")]
        names = [*files.stdout.splitlines(), *(str(each.relative_to(source)) for each in built)]
        for name in names:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (source / name).exists():
                shutil.copy2(source / name, target, follow_symlinks=False)
        for each in (*source.glob("build/orcalike"), *source.glob("build/lib*")):
            shutil.copytree(each, folder / each.relative_to(source))
        setup = folder / "setup.py"
        setup.write_text(setup.read_text().replace('"-O2"', '"-O0"'))  # builds five times faster
        self.build()

    def build(self) -> None:
        """Compile what has changed; raises NoVerdict if that fails."""
        done = _run(self.folder, *BUILD)
        if done.returncode:
            raise NoVerdict("it does not build:\n" + (done.stdout + done.stderr)[-2000:])

    def fails(self, tests: Sequence[str], *, stop: bool = True) -> str:
        """As the function `fails`, in this tree."""
        return fails(self.folder, tests, stop=stop)

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """The tree with the mutant in it. Raises NoVerdict if it does not apply or build."""
        source = self.folder / mutant.file
        kept = {path: (path.read_bytes(), path.stat()) for path in self._made_from(source)}
        try:
            source.write_text(mutant.apply(source.read_text()))
            if source.suffix in (".pyx", ".h"):
                self.build()
            yield
        except ValueError as error:
            raise NoVerdict(str(error)) from None
        finally:
            for path, (content, stat) in kept.items():
                path.write_bytes(content)
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def _made_from(self, source: Path) -> list[Path]:
        """The source itself, and what is built from it; of a header all that setup.py rebuilds for one."""
        if source.suffix == ".h":
            users = [
                path
                for path in self.folder.glob("transport/*/*.pyx")
                if "ring/" in path.read_text()
            ]
            return [source, *(made for user in users for made in self._made_from(user))]
        if source.suffix != ".pyx":
            return [source]
        relative = source.relative_to(self.folder)
        made = (self.folder / "build" / "orcalike" / relative).with_suffix(".c")
        name = f"{source.stem}.*.so"
        # Each build copies all of build/lib into place.
        library = self.folder.glob(f"build/lib*/orcalike/{relative.parent}/{name}")
        return [source, made, *source.parent.glob(name), *library]


def fails(folder: Path, tests: Sequence[str], *, stop: bool = True) -> str:
    """Run tests in a folder; returns what failed, "" if all pass. Raises NoVerdict.

    `stop`: at the first failure.
    """
    options = ("-x",) if stop else ()
    command = (sys.executable, "-m", "pytest", *options, "-q", "-p", "no:cacheprovider", *tests)
    done = run_tests(folder, *command)
    return what_failed(done.returncode, done.stdout + done.stderr)


def run_tests(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that runs tests; raises NoVerdict if it does not end."""
    try:
        return _run(folder, *command, timeout=TESTS_MAX)
    except subprocess.TimeoutExpired:
        raise NoVerdict(f"the tests did not end within {TESTS_MAX:.0f} s") from None


def what_failed(code: int, printed: str) -> str:
    """What failed, of how pytest ended and what it printed; "" if all pass. Raises NoVerdict."""
    if code in (0, 1):
        failed = [line for line in printed.splitlines() if line.startswith("FAILED")]
        return " ".join(failed) or "failed" if code else ""
    if code < 0:
        return f"the tests ended by signal {-code}"
    raise NoVerdict("the tests do not run:\n" + printed[-2000:])


def _run(
    folder: Path, *command: str, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, where its own packages are found before all others."""
    return subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "1000",  # so that what failed is said in whole lines
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
