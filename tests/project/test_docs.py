"""What the documents show, done as they say: programs that run, commands with their output.

A block's info string says what it is:

- `python NAME.py` is a program that a command of the same document runs;
- `text NAME.txt` is a file that these programs read;
- `python run` is a program by itself; the `text` block after it, if any, is what it prints;
- `console run` is commands, each after a `$`, and what they print. A command that ends in `&` is
  waited for at the end of the block, `echo $?` shows the code of the one before;
- `console with PACKAGE` is the same, if the package is installed: `make guests`.

In what is printed `...` stands for anything, a line of `...` for any lines, and lines may come in
another order, for ranks print when they do.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from orcalike import objects

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SECONDS = 280
BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]+)(?:#[^)]*)?\)")
COMMANDS = {
    "orcalike": [sys.executable, "-m", "orcalike"],
    "python": [sys.executable],
    "mpiexec": [str(Path(sys.executable).with_name("mpiexec"))],
}
SAVED = re.compile(r"(?:python|text) (?P<name>\S+\.(?:py|txt))")
OTHERS = re.compile(r"(\d+ others? goe?s? on|no other is left)$")
"""How many others run when the launcher notices an end is a matter of time."""
ENVIRONMENT = re.compile(r"(?P<name>[A-Z_]+)=(?P<value>\S*) ")


@dataclass(frozen=True)
class Block:
    """One fenced block of a document."""

    info: str
    text: str
    line: int
    follows: str = ""
    """The `text` block right after it."""


def blocks(document: Path) -> list[Block]:
    """All fenced blocks of a document, in their order."""
    source = document.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(source))
    return [
        Block(
            one["info"],
            one["text"],
            source.count("\n", 0, one.start()) + 1,
            after["text"] if after and _is_output(source[one.end() : after.start()], after) else "",
        )
        for one, after in zip_longest(found, found[1:])
    ]


def _is_output(between: str, after: re.Match[str]) -> bool:
    return after["info"] == "text" and not between.strip()


def programs(document: Path) -> dict[str, str]:
    """The programs that a document has its reader save."""
    return {
        name: block.text
        for block in blocks(document)
        if (name := block.info.removeprefix("python ")).endswith(".py")
    }


def files(document: Path) -> dict[str, str]:
    """The programs, and what they read."""
    return {
        saved["name"]: block.text
        for block in blocks(document)
        if (saved := SAVED.fullmatch(block.info))
    }


def start(command: str, directory: Path) -> subprocess.Popen[str]:
    # Two programs of a page that begin at once may warn of each other's hash seed, if one joins before the other shares.
    environment = {"PYTHONHASHSEED": "0", **os.environ}
    while given := ENVIRONMENT.match(command):
        environment[given["name"]] = given["value"]
        command = command[given.end() :]
    first, *rest = shlex.split(command)
    if first == "mpiexec":  # which runs another of them
        rest = [word for each in rest for word in COMMANDS.get(each, [each])]
    return subprocess.Popen(
        [*COMMANDS[first], *rest],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> str:
    with process:
        try:
            return process.communicate(timeout=SECONDS)[0]
        finally:
            process.kill()


def run_commands(text: str, directory: Path) -> list[str]:
    """Run a block's commands: how all that they print differs from the rest of the block."""
    lines = text.splitlines()
    printed: list[str] = []
    behind: list[subprocess.Popen[str]] = []
    code, asked = 0, True
    for command in (line[2:] for line in lines if line.startswith("$ ")):
        if command == "echo $?":
            printed.append(str(code))
            asked = True
            continue
        if code and not asked:
            break
        if command.endswith("&"):
            behind.append(start(command.removesuffix("&"), directory))
            continue
        process = start(command, directory)
        printed += end(process).splitlines()
        code, asked = process.returncode, False
    for process in behind:
        printed += end(process).splitlines()
        code = code or process.returncode
    if code and not asked:
        return [f"exit code {code}, which nothing asks for: {printed}"]
    return differences(printed, [line for line in lines if not line.startswith("$ ")])


def differences(printed: list[str], shown: list[str]) -> list[str]:
    """Each line that is shown and was not printed, and, without a line of `...`, each other one."""
    rest, missing = [OTHERS.sub("others go on", line) for line in printed], []
    for line in shown:
        if line == "...":
            continue
        some = OTHERS.sub("others go on", line)
        pattern = ".*".join(map(re.escape, some.split("...")))
        match = next((one for one in rest if re.fullmatch(pattern, one)), None)
        if match is None:
            missing.append(f"{line!r} is shown, and was not printed: {printed}")
        else:
            rest.remove(match)
    return missing + [f"printed, and not shown: {line}" for line in rest if "..." not in shown]


@pytest.fixture
def place(document: Path, tmp_path: Path) -> Path:
    """A directory with the document's programs, and their files."""
    for name, text in files(document).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def by_name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_name)
def test_what_is_shown_runs(document: Path, place: Path) -> None:
    for block in blocks(document):
        if block.info == "console run":
            assert run_commands(block.text, place) == []
        elif block.info == "python run":
            (place / "shown.py").write_text("\n" * block.line + block.text)  # errors show the line
            assert run_commands(f"$ python shown.py\n{block.follows}", place) == []


def with_packages() -> Iterator[tuple[Path, str]]:
    """The documents whose commands need a package, and each of these."""
    for document in DOCUMENTS:
        needed = (block.info.partition("console with ")[2] for block in blocks(document))
        yield from ((document, package) for package in dict.fromkeys(needed) if package)


@pytest.mark.parametrize(
    ("document", "package"),
    [*with_packages()],
    ids=lambda it: it if isinstance(it, str) else it.name,
)
def test_what_is_shown_with_a_package_runs(
    document: Path, package: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: make guests")
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)  # sockets need a short path
        monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Dask says so if another test's dashboard has the port of its own.
        monkeypatch.setenv("PYTHONWARNINGS", "ignore:Port 8787 is already in use")
        # Its workers may still beat as its scheduler ends, and log an error that is none.
        monkeypatch.setenv("DASK_LOGGING__DISTRIBUTED", "critical")
        for block in blocks(document):
            if block.info == f"console with {package}":
                assert run_commands(block.text, place) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_name)
def test_programs_to_save_are_run(document: Path) -> None:
    """A program that no command and no other program of the document uses is never tried."""
    used = "\n".join(block.text for block in blocks(document))
    for name in programs(document):
        assert re.search(rf"^\$ .*\b{re.escape(name)}|\bimport {name[:-3]}\b|\bfrom {name[:-3]} ",
                         used, re.MULTILINE), name  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [*DOCUMENTS, *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"))],
    ids=by_name,
)
def test_links_lead_somewhere(document: Path) -> None:
    text = BLOCK.sub("", document.read_text(encoding="utf-8"))
    broken = [
        link["path"]
        for link in LINK.finditer(text)
        if not (document.parent / link["path"]).exists()
    ]
    assert not broken


def test_each_promise_names_tests_that_there_are() -> None:
    model, testing = ((ROOT / "docs" / name).read_text() for name in ("model.md", "testing.md"))
    promises = re.findall(r"^(\d+\. )\*\*(.+?)\.?\*\*", model, re.MULTILINE)
    rows = dict(re.findall(r"^\| (\d+\. .+?) \| (.+) \|$", testing, re.MULTILINE))
    assert list(rows) == [number + name for number, name in promises]
    for tests in rows.values():
        named = re.findall(r"`(tests/\S+?\.py)::(\w+)`", tests)
        assert named
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text()


def test_the_readme_begins_with_a_program() -> None:
    first = blocks(ROOT / "README.md")[0]
    assert first.info == "python longest.py"


def test_each_ready_made_object_is_on_its_page() -> None:
    text = (ROOT / "docs" / "objects.md").read_text(encoding="utf-8")
    assert [name for name in objects.__all__ if not re.search(rf"`{name}\b", text)] == []
