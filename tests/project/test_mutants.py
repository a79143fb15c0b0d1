"""The mutants of the campaign still fit the sources, and name tests that are there."""

from __future__ import annotations

import ast

import pytest

from tests.campaign.mutants import ROOT, Mutant, load

MUTANTS = load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies_once_and_changes_something(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    assert mutant.apply(source) != source
    assert mutant.breaks
    assert mutant.tests


def test_the_tests_that_must_fail_are_there() -> None:
    functions: dict[str, set[str]] = {}
    for test in sorted({test for mutant in MUTANTS for test in mutant.tests}):
        file, _, function = test.partition("::")
        if file not in functions:
            tree = ast.parse((ROOT / file).read_text())
            functions[file] = {
                node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            }
        name = function.rpartition("::")[2].partition("[")[0]
        assert not name or name in functions[file], test


def test_mutants_have_names_of_their_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)


def test_a_mutant_whose_text_is_gone_or_ambiguous_does_not_apply() -> None:
    mutant = Mutant("name", "file", "old", "new", "a promise", ("tests",))
    assert mutant.apply("an old text") == "an new text"
    for text in ("a text", "an old, old text"):
        with pytest.raises(ValueError, match="not once"):
            mutant.apply(text)
