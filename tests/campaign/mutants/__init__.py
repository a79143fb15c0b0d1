"""Mutants: small edits of the sources, each of which breaks a promise that a test must notice.

A check that nothing can fail checks nothing. Each `.toml` file beside this one lists mutants of one
part of the product; `python -m tests.campaign.mutants` plants them one by one in a copy of the tree.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
"""The tree that the mutants are edits of."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of the sources."""

    name: str
    file: str
    """Relative to the root of the tree."""
    old: str
    """What is replaced; it occurs once in the file."""
    new: str
    breaks: str
    """The promise that is broken, with its invariant."""
    tests: tuple[str, ...]
    """Test ids of pytest; one of them must fail."""
    equivalent: str = ""
    """Why no test can fail, if the edit changes nothing that can be seen."""

    def apply(self, text: str) -> str:
        """The file's text with the edit; raises ValueError if `old` does not occur exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(
                f"mutant {self.name}: its text occurs {count} times in {self.file}, not once; "
                "give it the text that is there now, in tests/campaign/mutants, or take it out"
            )
        return text.replace(self.old, self.new)


def load(pattern: str = "") -> list[Mutant]:
    """The mutants whose name, file or promise contains `pattern`, by file and name."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for fields in tomllib.loads(path.read_text())["mutant"]:
            mutant = Mutant(**{**fields, "tests": tuple(fields["tests"])})
            if pattern in f"{path.stem} {mutant.name} {mutant.file} {mutant.breaks}":
                found.append(mutant)
    return sorted(found, key=lambda each: (each.file, each.name))
