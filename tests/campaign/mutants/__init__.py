"""Mutants: small edits of the sources, each of which breaks a promise that a test must notice.

A check that nothing can fail checks nothing. Each `.toml` file beside this one lists mutants of one
part of the product; `python -m tests.campaign.mutants` plants them one by one in a copy of the tree.
"""

from __future__ import annotations

import re
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
    """Test ids of pytest; one of them must fail, or all of them if it names what it `violates`."""
    equivalent: str = ""
    """Why no test can fail, if the edit changes nothing that can be seen."""
    violates: tuple[str, ...] = ()
    """Invariants (docs/internals/invariants.md), of which a failure must be a violation."""
    also: tuple[tuple[str, str], ...] = ()
    """Further edits of the same file that belong to it: old and new text of each."""

    def apply(self, text: str) -> str:
        """The file's text with the edits; raises ValueError if one does not occur exactly once."""
        for old, new in ((self.old, self.new), *self.also):
            count = text.count(old)
            if count != 1:
                raise ValueError(
                    f"mutant {self.name}: its text occurs {count} times in {self.file}, not once; "
                    "give it the text that is there now, in tests/campaign/mutants, or take it out"
                )
            text = text.replace(old, new)
        return text

    def is_caught_by(self, failed: str) -> bool:
        """Whether what failed is what the mutant breaks."""
        if not self.violates:
            return bool(failed)
        found = re.findall(r"Violation: (\w+):", failed)
        return (
            found != []
            and {*found} <= {*self.violates}
            and all(map(failed.__contains__, self.tests))
        )


def load(pattern: str = "") -> list[Mutant]:
    """The mutants whose name, file or promise contains `pattern`, by file and name."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for fields in tomllib.loads(path.read_text())["mutant"]:
            for name in ("tests", "violates"):
                fields[name] = tuple(fields.get(name, ()))
            fields["also"] = tuple((old, new) for old, new in fields.get("also", ()))
            mutant = Mutant(**fields)
            if pattern in f"{path.stem} {mutant.name} {mutant.file} {mutant.breaks}":
                found.append(mutant)
    return sorted(found, key=lambda each: (each.file, each.name))
