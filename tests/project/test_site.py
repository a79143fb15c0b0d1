"""The site of the manual has every page, and its API reference every public name; no Sphinx here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import orcalike
from orcalike import messages, objects, testing
from orcalike.testing import plugin
from tests.lib.guest_modules import GUESTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(
    r"^\.\. (?P<kind>currentmodule|auto\w+|data):: (?P<name>\w[\w.]*)", re.MULTILINE
)


def listed() -> Iterator[Path]:
    """The pages that the toctrees of the first page name."""
    for toctree in TOCTREE.finditer((DOCS / "index.md").read_text(encoding="utf-8")):
        for line in toctree["lines"].splitlines():
            if line and not line.startswith(":"):
                named = re.fullmatch(r".*<(.*)>", line)
                yield (DOCS / f"{named[1] if named else line}.md").resolve()


def described() -> Iterator[str]:
    """The names that the pages of the API reference have an entry for."""
    for page in sorted((DOCS / "api").glob("*.md")):
        module = ""
        for directive in DIRECTIVE.finditer(page.read_text(encoding="utf-8")):
            if directive["kind"] == "currentmodule":
                module = directive["name"]
            else:
                yield f"{module}.{directive['name']}"


def test_the_toctree_has_every_page_once() -> None:
    pages = {*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "examples" / "README.md"}
    assert sorted(listed()) == sorted(pages - {DOCS / "index.md"})


@pytest.mark.parametrize("module", [orcalike, messages, objects, testing, *GUESTS])
def test_the_reference_has_every_public_name_once(module: ModuleType) -> None:
    public = [f"{module.__name__}.{name}" for name in module.__all__]
    assert sorted(n for n in described() if n.rpartition(".")[0] == module.__name__) == sorted(
        public
    )


def test_the_reference_has_every_fixture_once() -> None:
    kind = type(plugin.orcalike_group)
    fixtures = [
        f"{plugin.__name__}.{name}"
        for name, value in vars(plugin).items()
        if isinstance(value, kind) and not name.startswith("_")
    ]
    assert sorted(n for n in described() if n.rpartition(".")[0] == plugin.__name__) == sorted(
        fixtures
    )


def test_all_of_messages_is_public() -> None:
    own = {
        name
        for name, value in vars(messages).items()
        if getattr(value, "__module__", None) == messages.__name__ and not name.startswith("_")
    }
    assert own <= set(messages.__all__)
