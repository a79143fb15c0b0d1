"""Run a program with a mutant of a Python module in it: nothing is copied, and nothing is built.

python -m tests.campaign.mutants.planted forget-promise pytest --assert=plain tests/protocol
python -m tests.campaign.mutants.planted forget-promise orcalike simulate --seeds 0..99 --shrink
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import PurePosixPath
from types import CodeType, ModuleType

from tests.campaign.mutants import Mutant, load
from tests.lib.command_lines import parser_of


class _Loader(SourceFileLoader):
    """Loads the mutant's module, never from a cache."""

    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self.mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        return compile(self.mutant.apply(source), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Finds the mutant's module before any other finder does."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.module = module_of(mutant)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == self.module else None
        if spec is not None:
            assert spec.origin is not None
            spec.loader = _Loader(fullname, spec.origin, self.mutant)
        return spec


def is_plantable(mutant: Mutant) -> bool:
    """Whether it is an edit of a Python module of the product."""
    return PurePosixPath(mutant.file).suffix == ".py"


def module_of(mutant: Mutant) -> str:
    """The module that it is an edit of, as programs import it."""
    parts = PurePosixPath(mutant.file).with_suffix("").parts
    return ".".join(parts if parts[0] == "orcalike" else ("orcalike", *parts))


def main() -> None:
    """Plant the mutant and run the module that is asked for."""
    parser = parser_of("tests.campaign.mutants.planted", __doc__)
    parser.add_argument("mutant", metavar="MUTANT")
    parser.add_argument("module", metavar="MODULE", help="what is run as a program")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    (mutant,) = (each for each in load() if each.name == options.mutant)
    assert is_plantable(mutant), f"{mutant.file} must be built"
    assert module_of(mutant) not in sys.modules, "it is imported already"
    sys.meta_path.insert(0, _Finder(mutant))
    sys.argv = [options.module, *options.arguments]
    runpy.run_module(options.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
