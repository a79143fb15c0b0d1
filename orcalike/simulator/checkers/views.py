"""I11 to I17: views, and what belongs to which."""

from __future__ import annotations

from orcalike.simulator.checkers.facts import Checker, Facts, Identity, Installed, Key, Name


class VirtualSynchrony(Checker):
    """I11: members that go from V to V' together have delivered the same casts in V."""

    id = "I11"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._agreed: dict[tuple[Identity, Identity], tuple[int, int, Key]] = {}

    def view(self, member: int, view: Installed, start: int | None, held: int | None) -> None:
        seen = self.facts.seen.get(member)
        if seen is None or seen.view is None:
            return
        if view.number != seen.view.number + 1:
            self.fail(member, f"view {view.identity} after {seen.view.identity}")
        if member in view.witnesses:
            return  # what it keeps is not handed up
        pair = seen.view.identity, view.identity
        other, count, _ = self._agreed.setdefault(pair, (member, seen.count, seen.last))
        if count != seen.count:
            self.fail(
                member,
                f"{seen.count} casts in {seen.view.identity} before {view.identity}, {count} at {other:x}",
            )


class InView(Checker):
    """I12: nothing is delivered in a view that has its place before that view, or is of a non-member."""

    id = "I12"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._members: set[int] = set()
        """Of any view: what a member cast is also delivered when it has left."""

    def view(self, member: int, view: Installed, start: int | None, held: int | None) -> None:
        self._members.update(view.members)

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        view = self.facts.seen[member].view
        start = self.facts.starts.get(view.identity) if view is not None else None
        if view is not None and start is not None and key[0] < start:
            self.fail(member, f"{key} in view {view.identity}, which begins with {start}")
        if name[0] not in self._members:
            self.fail(member, f"{key} of {name[0]:x}, which was in no view")


class ViewSanity(Checker):
    """I13: views grow at each member, are the same everywhere, and include oneself."""

    id = "I13"

    def view(self, member: int, view: Installed, start: int | None, held: int | None) -> None:
        seen = self.facts.seen.get(member)
        if seen is not None and seen.exited is not None:
            self.fail(member, f"view {view.identity} after it was out: {seen.exited}")
        if seen is not None and seen.view is not None and view.identity <= seen.view.identity:
            self.fail(member, f"view {view.identity} after {seen.view.identity}")
        if self.facts.views.get(view.identity, view) != view:
            self.fail(member, f"other members in view {view.identity} than elsewhere")
        if member not in view.members:
            self.fail(member, f"it is not in its view {view.identity}")
        if len(set(view.members)) != len(view.members):
            self.fail(member, f"a member is twice in view {view.identity}")


class MembershipInOrder(Checker):
    """I14: a view has one place in the order, the same for all, and after those before it."""

    id = "I14"

    def view(self, member: int, view: Installed, start: int | None, held: int | None) -> None:
        if start is None:
            return
        known = self.facts.starts.get(view.identity, start)
        if known != start:
            self.fail(member, f"view {view.identity} before {start}, elsewhere before {known}")
        seen = self.facts.seen.get(member)
        if seen is not None and start <= seen.last[0]:
            self.fail(member, f"view {view.identity} before {start}, and {seen.last} was delivered")


class OnePrimary(Checker):
    """I15: one primary view at a time in a lineage, each with the quorum of H1 in the one before."""

    id = "I15"

    def view(self, member: int, view: Installed, start: int | None, held: int | None) -> None:
        for other in self.facts.rivals.get(view.identity[:2], ()):
            if other != view.identity:
                living = self.facts.members_of(other)
                if living:
                    self.fail(member, f"{view.identity} while {living[0]:x} is in {other}")
        if view.identity not in self.facts.views:
            self._check_followers(member, view)
        seen = self.facts.seen.get(member)
        before = seen.view if seen is not None else None
        if before is not None and before.lineage == view.lineage:
            self._check_quorum(member, before, view)

    def _check_followers(self, member: int, view: Installed) -> None:
        """What comes after a view that no member had installed comes after another one."""
        facts = self.facts
        if facts.latest.get(view.lineage, 0) <= view.number:
            return
        for later in facts.views:
            if later[0] == view.lineage and later[1] > view.number:
                living = facts.members_of(later)
                if living:
                    self.fail(member, f"{view.identity} while {living[0]:x} is in {later}")

    def _check_quorum(self, member: int, before: Installed, view: Installed) -> None:
        """H1: which members can have agreed to this view, and are they enough?"""
        facts = self.facts
        promised = facts.promised.get(before.identity, set())
        voters = {each for each in before.members if each in view.members or each in promised}
        missing = [each for each in before.members if each not in voters]
        size = len(before.members)
        enough = 2 * len(voters) > size
        enough |= 2 * len(voters) == size and before.members[0] in voters
        enough |= all(each in facts.seen and facts.seen[each].is_gone for each in missing)
        if not enough:
            self.fail(
                member, f"{len(voters)} of the {size} of {before.identity} made {view.identity}"
            )
        least = facts.least_in(before)
        if least and len(voters) < size - least:
            self.fail(
                member,
                f"{len(voters)} of the {size} of {before.identity} made {view.identity}, "
                f"with degree {least}",
            )
        if view.ends_state:
            self._check_state(member, before, view)

    def _check_state(self, member: int, before: Installed, view: Installed) -> None:
        """H1 (c): the state goes with those that leave, not with those that are only silent."""
        for each in before.members:
            seen = self.facts.seen.get(each)
            lives = seen is not None and bool(seen.sources) and not seen.dead
            if lives and each not in before.witnesses and each not in self.facts.leavers:
                self.fail(member, f"{view.identity} has no state, and {each:x} lives and has it")


class Fencing(Checker):
    """I16: nothing of a view is accepted once the next one is installed anywhere.

    But for what the next one takes over: that has its place in the order already.
    """

    id = "I16"

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        facts = self.facts
        view = facts.seen[member].view
        if view is None or facts.latest[view.lineage] <= view.number:
            return
        if not facts.casts[name].degree or (view.lineage, key) in facts.placed:
            return
        for identity, cut in facts.cuts.items():
            later = identity[0] == view.lineage and identity[1] > view.number
            if later and cut <= key[0]:
                self.fail(member, f"{key} in {view.identity}, and {identity} holds up to {cut}")


class JoinState(Checker):
    """I17: a joiner's state is what all others had at the view that admits it."""

    id = "I17"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._digests: dict[Identity, tuple[int, int]] = {}

    def state(self, member: int, view: Installed, digest: int) -> None:
        other, known = self._digests.setdefault(view.identity, (member, digest))
        if known != digest:
            self.fail(member, f"its state at {view.identity} is not that of {other:x}")
