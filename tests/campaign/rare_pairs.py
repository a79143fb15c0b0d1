"""Finds scenarios for the pairs of state and kind of message that few seeds show (G30), and writes them to `pairs/`.

    python -m tests.campaign.rare_pairs 400..20000

Run it when G30 misses pairs, since what is sent has changed. Files whose pair does not come any more are removed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from orcalike.simulator.checkers.facts import Violation
from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import Scenario
from orcalike.simulator.shrink import shrink
from tests.campaign.simulated import FEW_SEEDS, RARE, WANTED, Pair, pairs_in
from tests.lib.command_lines import parser_of


def shows(pair: Pair) -> Callable[[Scenario], Violation | None]:
    """For the shrinker: what a scenario "breaks" if the pair comes in it."""
    return lambda scenario: Violation("pair", "") if pair in pairs_in(scenario) else None


def kept() -> set[Pair]:
    """The pairs that the files show; those that show their pair no longer are removed."""
    seen: set[Pair] = set()
    for path in sorted(RARE.glob("*.json")):
        kind, state = path.stem.rsplit("_", 1)
        pairs = pairs_in(Scenario.from_json(path.read_text()))
        if (state, kind) not in pairs:
            print(f"{path.name} does not show its pair any more", flush=True)
            path.unlink()
        seen |= pairs
    return seen


def find(seeds: range) -> set[Pair]:
    """Write a scenario for each pair that is missing; returns those that no seed shows."""
    missing = WANTED - kept() - set(chain.from_iterable(map(pairs_in, map(draw, FEW_SEEDS))))
    for seed in seeds:
        scenario = draw(seed)
        for pair in missing & pairs_in(scenario):
            state, kind = pair
            small = shrink(scenario, "pair", find_violation=shows(pair))
            (RARE / f"{kind}_{state}.json").write_text(small.to_json())
            print(f"{kind} when {state}: seed {seed}", flush=True)
            missing -= pairs_in(small)
        if not missing:
            break
    return missing


if __name__ == "__main__":
    parser = parser_of("tests.campaign.rare_pairs", __doc__)
    parser.add_argument("seeds", metavar="FIRST..LAST", help="LAST itself is not tried")
    first, last = map(int, parser.parse_args().seeds.split(".."))
    for state, kind in sorted(find(range(first, last))):
        print(f"{kind} never came when {state}")
