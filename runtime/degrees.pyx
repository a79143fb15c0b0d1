"""The resilience degrees in use: what they take, what the view has, and the smallest of them, R (H1, H2)."""

import logging

from orcalike.runtime.invocation import name_of
from orcalike.transport.degree import ALL, AVAILABLE, NUMBER_MAX, least_of
from orcalike.transport.errors import NotEnoughMembers
from orcalike.transport.view import resets_of

_log = logging.getLogger("orcalike")


cdef class Degrees:
    """What the degrees of the objects, and of the group, come to at one member."""

    def __init__(self, runtime):
        self.runtime = runtime
        self.patient = True

    # Of one call.

    cdef int check(self, object operation, int degree) except -1:
        """Raise where the view is too small for the degree of a call."""
        if self.is_too_small(degree):
            raise NotEnoughMembers(f"{name_of(operation)}: {self.say_too_few(degree)}; it was not sent")
        return 0

    cpdef bint is_too_small(self, int degree) except -1:
        """Whether what is of this degree waits until the view has more members (H2)."""
        view = self.runtime.view
        return (degree <= NUMBER_MAX and len(view.replicas) <= degree
                and not self.available and not resets_of(view.lineage))

    def too_few(self):
        """Why writes of a degree in use wait for more members; None if none has to."""
        cdef int degree = 0 if self.single else self.largest()
        return self.say_too_few(degree) if self.is_too_small(degree) else None

    def say_too_few(self, int degree):
        """What a degree takes, and what the view has."""
        return (f"degree {degree} takes {degree + 1} members with replicas, and the view has "
                f"{len(self.runtime.view.replicas)}")

    @property
    def effective(self):
        """The degree of what has none of its own."""
        return 0 if self.single else self.group

    # Of the group.

    def count(self):
        """R may have changed: the smallest degree above 0 of whatever can be written (H2)."""
        if self.single:
            return
        replicas = self.runtime.table.named()
        least = least_of((self.group, *(replica.least for replica in replicas)))
        least |= AVAILABLE if self.available else 0
        if least != self.least:
            self.least = least
            self.runtime.set_least(least)

    def of_change(self, least):
        """The degree with which an object with these operations comes or goes.

        All hold it where R may change with it; whether it does is known only at its place in the
        order. -1 stands for the group's degree, which covers the object where it is no larger.
        """
        covered = least == 0 or 1 <= self.group <= least
        return -1 if covered else ALL

    def largest(self):
        """The largest number of members that a degree in use asks for beside the caller."""
        infos = [replica.info for replica in self.runtime.replicas[1:] if replica is not None]
        found = [self.effective]
        found += [op.degree for info in infos if info is not None for op in info.operations]
        return max((degree for degree in found if degree <= NUMBER_MAX), default=0)

    def lower(self):
        """From here on a degree is MIN(r, members - 1), as `degree="available"` has it."""
        self.available = True
        self.count()

    def note_single(self, info):
        """Say once that a degree counts for nothing here, as no other process can hold a copy (H2)."""
        if self.single and not self.said_single and (info is None or info.least):
            self.said_single = True
            _log.warning(
                "%s asks for a resilience degree, which is 0 in a group of one that no process can join: "
                "give join() listen= or seeds=, or start the program with `orcalike run`",
                "the group" if info is None else info.name,
            )
