"""I27 and I28: what is kept has a bound, and the group goes on once nothing is wrong any more."""

from __future__ import annotations

from orcalike.simulator.checkers.facts import Checker


class Bounded(Checker):
    """I27: what a member keeps that is not stable is no more than the window."""

    id = "I27"

    def gauge(self, member: int, packets: int, packets_max: int, size: int, size_max: int) -> None:
        if packets > packets_max:
            self.fail(member, f"{packets} packets are not stable, with a window of {packets_max}")
        if size > size_max:
            self.fail(member, f"{size} bytes are not stable, with a window of {size_max}")


class Liveness(Checker):
    """I28: after the faults one view has all its members alive, and nothing is left to deliver."""

    id = "I28"

    def finish(self, live: list[int], blocked: bool) -> None:
        if blocked or not live:
            return
        views = {member: self.facts.seen[member].view for member in live}
        newest = max((view.identity for view in views.values() if view is not None), default=None)
        for member, view in views.items():
            if view is None or view.identity != newest:
                self.fail(member, f"it is in {view and view.identity}, not in {newest}")
            elif set(view.members) != set(live):
                gone = [each for each in view.members if each not in live]
                self.fail(member, f"{len(gone)} of the members of {newest} do not run")
        replicas = [each for each, view in views.items() if view and each not in view.witnesses]
        last = {self.facts.seen[member].last for member in replicas}
        if len(last) > 1:
            self.fail(live[0], f"members ended at different places: {sorted(last)}")
