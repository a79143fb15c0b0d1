"""Which mutants the tests notice: the bars G26 and G31."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from tests.campaign.bars import Bar, Figure, Scale
from tests.campaign.mutants import ROOT, Mutant, load
from tests.campaign.mutants.tree import NoVerdict, Tree, run_tests, what_failed


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one mutant."""

    mutant: Mutant
    word: str
    """caught, survived, equivalent, or error."""
    detail: str
    seconds: float

    @property
    def good(self) -> bool:
        """Whether the tests do what they must."""
        return self.word in ("caught", "equivalent")


def try_one(tree: Tree, mutant: Mutant, tests: Sequence[str]) -> Verdict:
    """Plant a mutant and run its tests."""
    asked = replace(mutant, tests=tuple(tests), violates=()) if tests else mutant

    def look() -> str:
        with tree.planted(asked):
            return tree.fails(asked.tests, stop=not asked.violates)

    return _checked(asked, look)


def try_in_place(mutants: Sequence[Mutant]) -> dict[str, Verdict]:
    """Run the tests of mutants of Python modules here, in forks that have them alone; by name of the mutant."""
    names = [mutant.name for mutant in mutants]
    done = run_tests(ROOT, sys.executable, "-m", "tests.campaign.mutants.forks", *names)
    said = {name: (code, text) for name, code, text in map(json.loads, done.stdout.splitlines())}
    if said.keys() != set(names):
        raise NoVerdict(f"the forks ended too soon:\n{done.stderr[-2000:]}")
    return {each.name: _checked(each, partial(what_failed, *said[each.name])) for each in mutants}


def _checked(mutant: Mutant, look: Callable[[], str]) -> Verdict:
    """What came of a mutant, if `look` says what failed."""
    start = time.monotonic()
    try:
        failed = look()
    except NoVerdict as error:
        word, failed = "error", str(error)
    else:
        word = "caught" if failed else "equivalent" if mutant.equivalent else "survived"
        if failed and mutant.equivalent:
            word, failed = "error", f"it is said to be equivalent, and is not: {failed}"
        elif failed and not mutant.is_caught_by(failed):
            word, failed = "error", f"what it breaks is not what failed: {failed}"
    return Verdict(mutant, word, failed, time.monotonic() - start)


def try_all(
    mutants: Sequence[Mutant],
    folder: Path,
    *,
    jobs: int = 1,
    tests: Sequence[str] = (),
    tell: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Try the mutants in `jobs` copies of the tree under `folder`; tells of each as it comes.

    Raises NoVerdict if the tests fail without any mutant.
    """
    trees: SimpleQueue[Tree] = SimpleQueue()
    first = Tree(folder / "0")
    trees.put(first)
    for number in range(1, jobs):
        trees.put(Tree(folder / str(number)))
    named = dict.fromkeys(test for mutant in mutants for test in tests or mutant.tests)
    if named and (failed := first.fails(list(named))):
        raise NoVerdict(f"without any mutant: {failed}")

    def work(mutant: Mutant) -> Verdict:
        tree = trees.get()
        try:
            verdict = try_one(tree, mutant, tests)
        finally:
            trees.put(tree)
        tell(verdict)
        return verdict

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(work, mutants))


def measure_mutants(scale: Scale) -> list[Figure]:
    """G31: each mutant is caught, or is known to change nothing that can be seen.

    G26: those of the core are caught by the invariant that they break.
    """
    mutants = load()
    every = max(1, round(1 / scale.times))
    with tempfile.TemporaryDirectory(prefix="orcalike-mutants-") as folder:
        verdicts = try_all(mutants[::every], Path(folder), jobs=2)
    words = [verdict.word for verdict in verdicts]
    text = f"{words.count('caught')} of {len(words)} caught, {words.count('equivalent')} equivalent"
    notes = [
        f"{verdict.mutant.name}: {verdict.word} {verdict.detail}"
        for verdict in verdicts
        if not verdict.good
    ]
    of_core = [verdict for verdict in verdicts if verdict.mutant.violates]
    caught = sum(verdict.word == "caught" for verdict in of_core)
    enough = caught == len(of_core) >= scale.of(25, 25)
    return [
        Figure("G26", f"{caught} of {len(of_core)} caught", enough),
        Figure("G31", text, not notes, notes),
    ]


BARS = [
    Bar(
        ("G26", "G31"),
        {"G26": ">= 25 of the core, all caught", "G31": "each mutant caught or equivalent"},
        measure_mutants,
    )
]
