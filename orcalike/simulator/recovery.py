"""What a group must have come to when the faults are over (G29).

There is one primary view of all its members that run, with nothing left to deliver; or, if too few of
them are left by the rule H1, a group that says that it is blocked.
"""

from __future__ import annotations

from typing import Protocol

from orcalike.simulator.application import Application
from orcalike.simulator.checkers.facts import MAJORITY, Violation
from orcalike.simulator.checkers.monitor import Monitor
from orcalike.simulator.scenario import Scenario
from orcalike.transport.drivers.sim import World
from orcalike.transport.view import View, resets_of


class Recovering(Protocol):
    """A run, as far as its end is looked at."""

    scenario: Scenario
    world: World
    monitor: Monitor
    applications: dict[int, Application]
    current: dict[str, Application]
    newest: View | None

    def living(self, view: View | None) -> list[Application]:
        """The members of a view that run."""


class Recovery:
    """Looks at a run: what is not as it must be in the end, and whether it is excused."""

    def __init__(self, run: Recovering) -> None:
        self._run = run

    def trouble(self) -> str | None:
        """What is not as it must be in the end; None if all is."""
        newest = self.newest_living()
        if newest is None:
            return None  # no member is left that could let a joiner in
        for member in newest.members:
            if not self._run.applications[member.incarnation].node.alive:
                return f"{member} is dead, and in {newest.identity}"
            if self._run.applications[member.incarnation].exited is not None:
                return f"{member} is out, and in {newest.identity}"
        for each in self._inside():
            if self._is_stranded(each):
                continue
            if each.entered is None or each.entered.identity != newest.identity:
                return f"{each.process} is in {each.entered and each.entered.identity}, not {newest.identity}"
        for each in self._run.current.values():
            if each.waits and each.node.alive and each.entered is None and each.exited is None:
                return f"{each.process} has not come in: {each.failed}"
        return self._pending(newest)

    def _is_stranded(self, application: Application) -> bool:
        """Whether it is blocked, or was reset, and no member is left that it could ask.

        Blocked, it asks those of its view: they are gone, and no process that is in the group runs
        where one of them ran. Reset, it seeks all those that it was ever in a view with.
        """
        if application.entered is None:
            return False
        if application.blocked is not None:
            members = [
                self._run.applications[each.incarnation] for each in application.entered.members
            ]
            others = [
                self._run.current[each.process] for each in members if each is not application
            ]
        elif resets_of(application.entered.lineage):
            others = [
                each
                for each in self._acquaintances(application)
                if each.entered != application.entered
            ]
        else:
            return False
        return not any(
            each is not application and each.inside and each.node.alive for each in others
        )

    def _acquaintances(self, application: Application) -> list[Application]:
        """All that were ever in a view with it."""
        facts = self._run.monitor.facts
        views = [facts.views[view] for view, at in facts.installed.items() if application.me in at]
        return [
            self._run.applications[each] for each in {me for view in views for me in view.members}
        ]

    def _pending(self, view: View) -> str | None:
        """What is still to be delivered."""
        facts = self._run.monitor.facts
        if self.is_short():
            return None
        places = {each.total.next for each in self._run.living(view)}
        if len(places) > 1:
            return f"members are at different places of the order: {sorted(places)}"
        for each in self._run.living(view):
            if not each.transfer.complete:
                return f"{each.process} has no complete state"
            for other in () if each.stack.me.witness else self._run.living(view):
                had = self._run.monitor.seen(each.me).sources.get(other.me, 0)
                if had != facts.sent.get(other.me, 0):
                    return f"{each.process} has {had} of {facts.sent[other.me]} casts of {other.process}"
        return None

    def is_short(self) -> bool:
        """Whether something waits for more members with replicas than there are (H2)."""
        newest = self.newest_living()
        if newest is not None and resets_of(newest.lineage):
            return False  # no degree takes more than there are
        living = self._run.living(newest)
        replicas = sum(not each.stack.me.witness for each in living)
        sources = [
            self._run.monitor.seen(each.me).sources for each in living if not each.stack.me.witness
        ]
        return any(
            replicas <= cast.degree < MAJORITY
            and any(seen.get(sender, 0) < number for seen in sources)
            for (sender, number), cast in self._run.monitor.facts.casts.items()
        )

    def _inside(self) -> list[Application]:
        """All that run and are in the group, as far as they know."""
        return [each for each in self._run.applications.values() if each.inside and each.node.alive]

    def newest_living(self) -> View | None:
        """The newest view that a member which runs is in; None if there is none."""
        views = [each.entered for each in self._inside() if each.entered is not None]
        return max(views, key=lambda view: view.identity, default=None)

    def finished(self) -> list[int]:
        """The members of that view that run, by incarnation."""
        return [each.me for each in self._run.living(self.newest_living())]

    def check_blocked(self) -> None:
        """The group has not recovered: was it bound to?"""
        newest = self.newest_living()
        trouble = self.trouble()
        living = self.present(newest)
        may = self.may_go_on(newest, living) if newest is not None else False
        if may is True:
            names = [each.process for each in living]
            raise Violation("I28", f"{names} of {newest} may go on by H1, and do not: {trouble}")
        if may is False:
            for each in living:
                if each.blocked is None:
                    raise Violation(
                        "I28", f"{each.process} does not say that it is blocked: {trouble}"
                    )
        self._run.monitor.finish([each.me for each in living], blocked=True)

    def is_excused(self) -> bool:
        """Whether a member that is out is waited for, as its process lives on the host of another (H13).

        Its endpoint stands here, where that of a process that has left is closed.
        """
        newest, world = self.newest_living(), self._run.world
        living = self._run.living(newest)
        return any(
            one.exited is not None and world.lives(other.node, one.me)
            for one in living
            for other in living
            if other is not one
        )

    def present(self, view: View | None) -> list[Application]:
        """The members of a view that can still promise the end of it.

        One that has left cannot: it was in the view after this one when that was decided, and answers
        no more. Nor can one that was expelled from a view after this one. Both count among
        the members (H1), as the dead do; so the others may be bound to stay blocked.
        """
        later = (
            self._run.newest is not None
            and view is not None
            and self._run.newest.identity > view.identity
        )
        return [
            each
            for each in self._run.living(view)
            if each.exited is None or not (each.leaves or later)
        ]

    def may_go_on(self, view: View, living: list[Application]) -> bool | None:
        """Whether these may form the next primary view (H1); None if it depends on what others know."""
        size, present = len(view.members), {each.me for each in living}
        facts = self._run.monitor.facts
        least = facts.least_in(facts.views[view.identity])
        if least and len(living) < size - least:
            return False
        if not any(each.transfer.complete and not each.stack.me.witness for each in living):
            return None
        if 2 * len(living) > size:
            return True
        if 2 * len(living) == size and view.members[0].incarnation in present:
            return True
        if any(
            self._run.applications[member.incarnation].node.alive
            for member in view.members
            if member.incarnation not in present
        ):
            return False  # one that is missing is not dead, so no member can know that it is
        return None if len(present) < size else True

    def backlog(self) -> int:
        """How many casts the member that has most to come still waits for."""
        living = self._run.living(self.newest_living())
        sent = self._run.monitor.facts.sent
        return max(
            (
                sum(sent.get(other.me, 0) - seen.get(other.me, 0) for other in living)
                for seen in (self._run.monitor.seen(each.me).sources for each in living)
            ),
            default=0,
        )
