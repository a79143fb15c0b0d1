"""`options(stable=k)` in simulated groups of whole runtimes: done means that k members have applied it.

At the step at which such an invocation is done, at least k replicas show its trace, whatever was
locked, waited for a guard, ran in a pop-up thread, joined or left meanwhile (H66, H68).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import orcalike as orca
from orcalike.errors import GroupClosed
from orcalike.simulator.checkers.facts import Violation
from orcalike.transport.layers.stable import Stable
from tests.protocol.sim_runtime import Participant, Simulation
from tests.protocol.sim_scene import Scene


class StableSimulation(Simulation):
    """The simulation of runtimes, with STABLE, and with invocations that want k members."""

    def __init__(self, seed: int) -> None:
        scene = Scene.draw(seed)
        super().__init__(replace(scene, stack=scene.stack.replace(":XFER", ":STABLE:XFER")))
        self.asked: list[tuple[str, int, Participant, orca.Invocation[Any]]] = []
        self.seen: set[str] = set()
        step = self.world.step

        def step_and_look() -> bool:
            went_on = step()
            self.look()
            return went_on

        self.world.step = step_and_look  # type: ignore[method-assign]

    def _schedule(self) -> None:
        super()._schedule()
        for number in range(self.rng.choice([3, 20])):
            participant = self.rng.choice(self.participants)
            self._at_some_time(partial(self.ask, participant, number), 3 * self.scene.span)

    def ask(self, participant: Participant, number: int) -> None:
        journal = participant.object_of("journal")
        if journal is None or not participant.inside or not participant.runtime.sender.may_invoke():
            return
        trace = f"stable {number}"
        k = self.rng.randint(1, len(self.participants))
        operation = self.rng.choice([journal.note, journal.note_slowly, journal.put])
        self.asked.append((trace, k, participant, operation.options(stable=k).nowait(trace)))

    def traces(self, participant: Participant) -> set[str]:
        """What a member's journal shows."""
        for replica in participant.runtime.replicas:
            if replica is not None and replica.name == "journal" and replica.object is not None:
                events = getattr(replica.object, "events", ())
                return {event.removeprefix("put ") for event in events}
        return set()

    def look(self) -> None:
        """An invocation that is done was applied by as many as it had asked for."""
        for trace, k, participant, invocation in self.asked:
            if trace in self.seen or not invocation.done():
                continue
            self.seen.add(trace)
            if isinstance(invocation.exception(), GroupClosed):
                continue
            assert invocation.exception() is None
            have = [p.number for p in self.participants if trace in self.traces(p)]
            if len(have) < k:
                raise Violation(
                    "H66",
                    f"{trace} of {participant.number} is done, and only {have} have it, not {k}",
                )

    def _finish(self) -> str:
        digest = super()._finish()
        live = [p for p in self.participants if p.inside and not p.stack.me.witness]
        for trace, k, participant, invocation in self.asked:
            applied = all(trace in self.traces(p) for p in live)
            if participant in live and applied and k <= len(live) and not invocation.done():
                raise Violation("H66", f"{trace} is applied by {len(live)}, and {k} are not enough")
        for participant in live:
            layer = participant.stack.focus("STABLE")
            assert isinstance(layer, Stable)
            rows = layer.matrix.stability().matrix
            if any(len(set(row)) > 1 for row in rows):
                raise Violation("H66", f"{participant.number} ends with {rows}")
        return digest
