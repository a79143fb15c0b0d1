"""The public names of orcalike and their signatures are those that are written down."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

import orcalike
from orcalike import messages
from tests.lib.public_names import MODULES, STORED, public_names


def test_public_names_and_signatures_are_as_written_down() -> None:
    """What changes here on purpose: `python -m tests.lib.public_names`, and CHANGELOG.md says it."""
    assert public_names() == STORED.read_text(encoding="utf-8").splitlines()


def test_a_signature_that_changes_is_found() -> None:
    before = public_names()

    def send_to_group(group: messages.MessageGroup, data: bytes) -> None:
        """Without a time limit."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "send_to_group", send_to_group)
        changed = set(before) ^ set(public_names())
    assert len(changed) == 2
    assert all(line.startswith("orcalike.messages.send_to_group(") for line in changed)


def docstrings(value: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Those of something public and of what it has, each with its name."""
    name = str(getattr(value, "__qualname__", value))
    yield name, inspect.getdoc(value) or ""
    if isinstance(value, property) and value.fget is not None:
        returned = inspect.get_annotations(value.fget, eval_str=False).get("return")
        kind = getattr(sys.modules[value.fget.__module__], str(returned).partition("[")[0], None)
        if isinstance(kind, type) and "__call__" in vars(kind):
            yield from docstrings(kind, depth)
    elif isinstance(value, type) and depth < 2 and value.__module__.startswith("orcalike"):
        for attribute, member in vars(value).items():
            if not attribute.startswith("_") or attribute == "__call__":
                yield from docstrings(member, depth + 1)


def test_public_docstrings_need_no_list_of_features() -> None:
    """`help` and the API pages show them to readers that do not have docs/internals at hand."""
    code = re.compile(r"\((?:[A-Z]\d{1,3}[a-z]?(?:, | to |\)))+")
    public = [getattr(module, name) for module in MODULES for name in module.__all__]
    found = [
        (name, text)
        for value in [*MODULES, *public]
        for name, text in docstrings(value)
        if code.search(text)
    ]
    assert not found


def test_public_modules_are_attributes_of_the_package() -> None:
    """As a type checker believes; and they are not imported before they are used."""
    program = """if True:
        import sys
        import orcalike as orca
        assert {"messages", "objects", "testing"} <= {*dir(orca)}
        assert "orcalike.messages" not in sys.modules
        print(orca.objects.Counter(3).value, orca.messages.send_to_group.__name__, orca.testing.Members.__name__)
    """
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.stdout.split() == ["3", "send_to_group", "Members"], ended.stderr
    with pytest.raises(AttributeError, match="module 'orcalike' has no attribute 'cli_of_none'"):
        _ = orcalike.cli_of_none  # type: ignore[attr-defined]
