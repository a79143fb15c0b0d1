"""Under way: this member's invocations that have no outcome yet.

The caller's own replica is where an outcome comes from: a member counts its messages (`ticket`), and finds the
invocation that it has issued under the count. While nothing holds an invocation, nothing is kept for it. Here their
outcomes are waited for, and those are taken back that are waited for no longer.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from orcalike.runtime import waits
from orcalike.runtime.codes import Code
from orcalike.runtime.errors import NestedWrite
from orcalike.runtime.invocation import name_of, title_of, unanswered, withdrawal_error
from orcalike.runtime.raising import fresh
from orcalike.transport.errors import NotEnoughMembers

from orcalike.runtime.invocation cimport GRACE, UNDER_WAY, Invocation, Invoker
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport READ, Replica, thread_slot
from orcalike.runtime.room cimport WARNED, wait_for
from orcalike.transport.drivers.deferral cimport drop_later, hold
from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.layers.pack cimport MESSAGES_MAX

cdef enum:
    SHOWN = 50000000        # ns after which a wait is entered in the table of waits

cdef bytes NOTHING = bytes([0, Code.VOID << 1])     # what stands in the place of a call that was taken back


cdef class UnderWay(Invoker):
    """One member's invocations that have no outcome yet."""

    def __cinit__(self):
        memset(self.issued, 0, sizeof(self.issued))

    cdef Invocation take(self, uint64_t ticket):
        """The invocation under that count, if something holds it: the caller's to complete."""
        cdef void* issued = self.issued[ticket & (MESSAGES_MAX - 1)]
        self.issued[ticket & (MESSAGES_MAX - 1)] = NULL
        return None if issued is NULL else <Invocation>issued

    cpdef lose(self, Invocation invocation, error):
        """An invocation of this member's own, if it is any, ends without having run here."""
        if invocation is None:
            return
        if self.history is not None:
            self.history.lost(invocation, error)
        invocation.fail(error)

    cdef int lose_all(self, object error) except -1:
        """All that is under way ends so."""
        cdef Py_ssize_t i
        cdef void* issued
        self.last = None                # it is not asked for, if nothing else holds it
        for i in range(MESSAGES_MAX):
            issued = self.issued[i]
            if issued is not NULL:
                self.issued[i] = NULL
                self.lose(<Invocation>issued, error)
        return 0

    cdef object await_outcome(self, Invocation invocation, int64_t timeout, bint withdraw):
        cdef int64_t until = NEVER
        cdef int64_t now
        cdef bint done
        cdef bint interrupted = True
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        try:
            if timeout == NEVER:        # the clock is not looked at for what is done by then
                done = self.driver.cast_for(invocation) or self.driver.wait(invocation, self.driver.clock() + SHOWN)
            else:
                now = self.driver.clock()
                until = now + timeout
                done = wait_for(self.driver, invocation, now + min(timeout, SHOWN), True)
            if not done:
                self.wait_visibly(invocation, until)
            interrupted = False
        finally:
            if interrupted and invocation.outcome == UNDER_WAY:
                self.withdraw(invocation, "interrupted")
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        if not withdraw:
            raise TimeoutError(f"{title_of(invocation)} has no outcome yet; it goes on")
        self.withdraw(invocation, "timeout")
        try:
            wait_for(self.driver, invocation, self.driver.clock() + max(timeout, GRACE), True)
        except BaseException:
            invocation.abandoned = True # its caller knows that it has no outcome
            raise
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        raise unanswered(invocation)

    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1:
        """A wait that takes long: people may see it, and are warned where the group is blocked."""
        replica = <Replica>invocation.replica
        name = "" if replica is None else (<Replica>replica).name
        if thread_slot()[0] is not NULL or self.driver.is_inside():
            raise NestedWrite(f"{title_of(invocation)} was waited for in the midst of an operation or of orcalike, "
                              "as by a finalizer: that would be for ever")
        hold()
        try:
            waits.enter("reply", name, name_of(invocation.operation))
            self.runtime.long_waits.began(invocation)
            while not wait_for(self.driver, invocation, min(until, self.driver.clock() + WARNED),
                           until != NEVER):
                if self.driver.clock() >= until:
                    break
                self.runtime.long_waits.still_waiting(invocation)
                if invocation.wanted:
                    self.receipts.still_waiting(invocation)
        finally:
            self.runtime.long_waits.over(invocation)
            waits.leave()
            drop_later()
        return 0

    cdef int watch(self) except -1:
        if self.no_outcomes is not None:
            raise fresh(self.no_outcomes)
        if self.pack.gathers:
            self.driver.kick()
        if not self.watching:
            self.watching = True
            self.runtime.long_waits.watch()
        self.driver.look_later()
        return 0

    cdef int begin_await(self, Invocation invocation) except -1:
        return self.driver.begin_await(invocation)

    cdef int end_await(self, Invocation invocation) except -1:
        return self.driver.end_wait(invocation)

    def awaited(self):
        """The invocations that coroutines wait for."""
        found = [<Invocation>issued for issued in self.issued[:MESSAGES_MAX] if issued is not NULL]
        found += [call.invocation for call in self.runtime.long_waits.parked()]
        return [each for each in found if each is not None and (<Invocation>each).waiters]

    def has_place(self, Invocation invocation):
        """Whether a call is no write of this member's, or was dispatched here."""
        return (isinstance(invocation.operation, Operation)
                and (<Operation>invocation.operation).traits & READ
                or invocation.ticket < self.pack.returned)

    cpdef int degree_of(self, Invocation invocation) except -1:
        """The degree of an invocation that has no place in the order yet."""
        cdef int degree = -1
        if isinstance(invocation.operation, Operation):
            degree = (<Operation>invocation.operation).degree
        elif not self.has_place(invocation):
            return self.pack.degrees.of(invocation.ticket)
        return self.degrees.effective if degree < 0 else degree

    cdef int take_back(self, Invocation invocation, str why) except -1:
        """Have it never leave, so that what stands in its place does nothing; if it has left, withdraw it in the order."""
        cdef int degree = self.degree_of(invocation)
        cdef list taken = []
        try:
            # A history says what was cast; and from inside an operation the stack cannot be asked.
            if self.history is None and thread_slot()[0] is NULL:
                self.driver.call_within(1.0, self.void, invocation, taken)
        finally:                        # a handler may raise while that waits
            if taken:
                self.issued[invocation.ticket & (MESSAGES_MAX - 1)] = NULL
                self.lose(invocation, self.not_sent(invocation, degree, why))
            else:
                self.runtime.manager.send_withdrawal(invocation.ticket)

    def void(self, Invocation invocation, list taken, now):
        """If an invocation has not left, put into its place what does nothing; an input of the driver."""
        if invocation.outcome == UNDER_WAY and self.pack.take_back(invocation.ticket, NOTHING):
            taken.append(invocation)

    cdef object not_sent(self, Invocation invocation, int degree, str why):
        """How an invocation ends that was taken back."""
        if why == "timeout" and self.degrees.is_too_small(degree):
            return NotEnoughMembers(f"{title_of(invocation)}: {self.degrees.say_too_few(degree)}; the time "
                                    "limit passed, and it was not sent")
        return withdrawal_error(invocation)

    cpdef bint withdraw(self, Invocation invocation, str why):
        if invocation.outcome != UNDER_WAY or self.failure is not None:
            return False
        if (invocation.wanted and self.receipts.give_up(invocation, why)) or invocation.withdrawn:
            return True
        hold()
        try:
            invocation.withdrawn = why
            if not isinstance(invocation.operation, Operation) or not (
                    (<Operation>invocation.operation).traits & READ):
                self.take_back(invocation, why)
            elif invocation.replica.withdraw_read(invocation):
                invocation.fail(withdrawal_error(invocation))
        finally:
            drop_later()
        return True

    cdef int forget(self, Invocation invocation) noexcept:
        if self.issued[invocation.ticket & (MESSAGES_MAX - 1)] is <void*>invocation:
            self.issued[invocation.ticket & (MESSAGES_MAX - 1)] = NULL
        return 0

    def settled(self):
        """Whether all that this member has invoked is ordered and was dispatched here."""
        return self.pack.returned == self.pack.ticket
