"""What the checker accepts for shared objects runs them: objects of every kind, on every such stack."""

from __future__ import annotations

import logging
from functools import cache
from itertools import combinations, permutations, product

import pytest

from orcalike.runtime.dispatch import Runtime
from orcalike.transport import stacks
from orcalike.transport.drivers.sim import Delays
from orcalike.transport.errors import StackError
from orcalike.transport.stacks import parse_stack, register
from tests.protocol import sim_runtime
from tests.protocol.every_call import Plain
from tests.protocol.model import Cast
from tests.protocol.sim_runtime import Simulation
from tests.protocol.sim_scene import MS, Scene

GIVE = ("PACK", "STABLE", "XFER", "TOTAL", "MBRSHIP")
"""Layers that give something."""

PASS = ("DROP", "DROP(delay=30,span=200000)", "DROP:DROP(delay=9)", "PLAIN")
"""What may stand in between."""

GAPS_MAX = 2
"""In so many places at once."""

PARTS = 8
"""The stacks are run in so many tests."""


LIMIT = 10_000 * MS
"""All that a scene begins is over within a second or so; what comes then is heartbeats."""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer of a user's, which changes nothing, is known."""
    monkeypatch.setattr(stacks, "_LAYERS", dict(stacks._LAYERS))
    monkeypatch.setattr(sim_runtime, "LIMIT", LIMIT)
    register(Plain)


def is_accepted(layers: tuple[str, ...]) -> bool:
    try:
        parse_stack(":".join((*layers, "COM:sim")), Runtime)
    except StackError:
        return False
    return True


@cache
def accepted() -> list[str]:
    """All orders of all choices of layers, with others in between, that objects can stand on."""
    found = []
    orders = [o for n in range(len(GIVE) + 1) for o in permutations(GIVE, n) if is_accepted(o)]
    for order in orders:
        for count in range(GAPS_MAX + 1):
            for gaps in combinations(range(len(order) + 1), count):
                for fillers in product(PASS, repeat=count):
                    between = dict(zip(gaps, fillers, strict=True))
                    layers = [
                        layer
                        for place in range(len(order) + 1)
                        for layer in (between.get(place), *order[place : place + 1])
                        if layer is not None
                    ]
                    if is_accepted(tuple(layers)):
                        found.append(":".join((*layers, "COM:sim")))
    return found


def test_the_stacks_that_are_accepted() -> None:
    """As many as there should be: PACK on top, then STABLE or not, then the rest in one order."""
    found = accepted()
    assert "PACK:XFER:TOTAL:MBRSHIP:COM:sim" in found
    assert "PACK:STABLE:XFER:TOTAL:MBRSHIP:COM:sim" in found
    assert all(text.startswith("PACK:") for text in found)
    assert len(found) == len(set(found)) == sum(1 + gaps * 4 + pairs * 16 for gaps, pairs in SIZES)


SIZES = ((4, 6), (5, 10))
"""Without STABLE, and with it: places below PACK, and pairs of them."""


@pytest.mark.parametrize("part", range(PARTS))
def test_each_stack_that_is_accepted_runs_objects(
    part: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Three members, one of them late and one that leaves: what each replica holds, and how each
    call ends, is what the reference model says.
    """
    caplog.set_level(logging.CRITICAL, "orcalike")
    for seed, text in enumerate(accepted()[part::PARTS]):
        scene = Scene(
            seed=seed,
            size=3,
            witness=False,
            stack=text,
            delays=Delays(least=10_000, mean=50_000),
            acts=25,
            span=3 * MS,
            leavers=frozenset({2} if seed % 2 else {}),
            late=frozenset(),
            readers=0,
        )
        simulation = Simulation(scene)
        simulation.run()
        assert any(isinstance(each, Cast) for each in simulation.canon), text
