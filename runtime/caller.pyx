"""Caller: how this member's invocations leave, and how their outcomes are waited for.

A call is marshalled in place into the open packet. The caller's own replica is where its outcome
comes from: a member counts its messages (`ticket`), and finds the invocation that it has issued
under the count. While nobody holds an invocation, nothing is kept for it. A member that has a window
of invocations under way, not ordered yet, waits for room.

What comes in is for `dispatch`, whose `Runtime` is a caller too.
"""

import logging

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from orcalike.runtime import waits
from orcalike.runtime.arguments import positional
from orcalike.runtime.changes import withdrawal_error
from orcalike.runtime.errors import (
    GroupClosed,
    NestedWrite,
    ObjectDropped,
    TooManyWaiting,
    WindowFull,
)
from orcalike.runtime.invocation import name_of, title_of, unanswered, without_room
from orcalike.runtime.raising import fresh
from orcalike.runtime.receipts import NO_STABLE
from orcalike.transport.degree import NUMBER_MAX
from orcalike.transport.errors import NotEnoughMembers, StackError
from orcalike.transport.view import resets_of

from orcalike.runtime.call cimport Call
from orcalike.runtime.invocation cimport (
    GRACE,
    UNDER_WAY,
    Invocation,
    Invoker,
    loop_here,
    nanoseconds,
    must_not_block,
    refuse_loop,
    tell,
)
from orcalike.runtime.left cimport read_last_state
from orcalike.runtime.operation cimport READ, Operation
from orcalike.runtime.plain cimport put
from orcalike.runtime.receipts cimport Receipts
from orcalike.runtime.replica cimport (
    CLOSED,
    DROPPED,
    FAULTY,
    LOCKED,
    QUEUED,
    SIGNALLED,
    TASKS_MAX,
    Replica,
    thread_slot,
)
from orcalike.runtime.task cimport hand_on, submit
from orcalike.transport.drivers.deferral cimport drop, drop_later, hold
from orcalike.transport.drivers.driver cimport Driver, Waitable
from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.bytes cimport put_varint
from orcalike.transport.wire.message cimport Message

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject*) noexcept
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t) noexcept

cdef enum:
    SIMPLE_MAX = 512        # bytes of arguments that are written in place
    EXTRA = 16              # bytes of a message beside its arguments, at the most
    SHOWN = 50000000        # ns after which a wait is entered in the table of waits
    WARNED = 10000000000    # ns between warnings of a group that is blocked
    FENCE = 5               # as `codes.Code` has it
    VOID = 9


_log = logging.getLogger("orcalike")


class RoomLacking(Exception):
    """The time limit of a call passed while it waited for room."""


cdef class Caller(Invoker):
    """One member's invocations, on the way out."""

    def __init__(self, Stack stack):
        super().__init__(stack)
        self.stack = stack
        self.driver = Driver()
        self.room_futures = []
        self.room_limits = {}
        self.patient = True
        self.attach_receipts()
        memset(self.issued, 0, sizeof(self.issued))

    cdef int attach_receipts(self) except -1:
        self.receipts = None
        if self.stack.focus("STABLE") is not None:
            self.receipts = Receipts(self.stack, self)
        return 0

    # Sending.

    cdef Invocation invoke_nowait(self, object replica, object operation, PyObject* const* args,
                                  Py_ssize_t count, PyObject* names, unsigned int wanted):
        cdef Invocation invocation = self.commit_call(replica, operation, args, count, names,
                                                      wanted)
        if self.pack.ready:
            self.driver.kick()
        return invocation

    cdef Invocation commit_call(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names, unsigned int wanted):
        """Put a write into the open packet; the caller sees to it that it leaves."""
        cdef int degree = (<Operation>operation).degree
        self.check(<Replica>replica)
        if degree < 0:
            degree = self.group_degree
        if degree:
            degree = self.degree_for(operation, degree)
        if wanted:
            self.check_stable(operation, wanted)
        if thread_slot()[0] is not NULL:
            self.refuse_nested(operation)
        if self.pack.is_full():
            self.wait_for_room(0)
        if self.history is not None:
            return self.record_call(<Replica>replica, <Operation>operation, args, count, names,
                                    degree, wanted)
        self.encode(<Replica>replica, <Operation>operation, args, count, names, degree)
        return self.issue(replica, operation, wanted)

    cdef object invoke(self, object replica, object operation, PyObject* const* args,
                       Py_ssize_t count, PyObject* names, int64_t timeout, unsigned int wanted):
        refuse_loop(operation)
        if timeout != NEVER:
            return self.invoke_within(replica, operation, args, count, names, timeout, wanted)
        # The driver sends it, once this thread stands ready to receive the answer.
        return self.await_outcome(self.commit_call(replica, operation, args, count, names, wanted),
                                  NEVER, True)

    cdef object invoke_within(self, object replica, object operation, PyObject* const* args,
                              Py_ssize_t count, PyObject* names, int64_t timeout,
                              unsigned int wanted):
        """The same with a time limit, which holds while it waits for room, too."""
        cdef Invocation invocation
        cdef int64_t until = self.limit_room(timeout)
        try:
            invocation = self.commit_call(replica, operation, args, count, names, wanted)
        except RoomLacking:
            raise without_room(operation) from None
        finally:
            self.limit_room(NEVER)
        return self.await_outcome(invocation, max(0, until - self.driver.clock()), True)

    cdef int64_t limit_room(self, int64_t timeout) except -1:
        """This thread waits for room for so long, or as long as it takes; returns until when."""
        cdef unsigned long me = PyThread_get_thread_ident()
        if timeout == NEVER:
            self.room_limits.pop(me, None)
            return NEVER
        self.room_limits[me] = self.driver.clock() + timeout
        return self.room_limits[me]

    cdef Invocation issue(self, object replica, object operation, unsigned int wanted):
        """The invocation that belongs to the message that was committed last."""
        cdef Invocation invocation = Invocation.__new__(Invocation)
        invocation.invoker = self
        invocation.ticket = self.pack.ticket - 1
        invocation.operation = operation
        invocation.replica = replica
        invocation.wanted = wanted
        self.issued[invocation.ticket & (WINDOW - 1)] = <void*>invocation
        self.writes += 1
        if self.failure is not None:        # since it was looked at
            self.issued[invocation.ticket & (WINDOW - 1)] = NULL
            self.lose(invocation, self.failure)
        return invocation

    cdef int encode(self, Replica replica, Operation operation, PyObject* const* args,
                    Py_ssize_t count, PyObject* names, unsigned char degree) except -1:
        """Marshal a call into the open packet; simple arguments in place."""
        cdef unsigned char* p
        cdef unsigned char* stop
        cdef Py_ssize_t i
        if (names is NULL and operation.fits(count - 1)
                and not (degree and self.pack.mixes(degree))):
            p = self.pack.reserve(SIMPLE_MAX)
            stop = p + SIMPLE_MAX
            p = put_varint(p, replica.number)
            p = put_varint(p, <uint32_t>operation.index << 1)
            for i in range(1, count):
                p = put(p, stop, args[i])
                if p is NULL:
                    break
            else:
                if degree:
                    self.pack.raise_degree(degree)
                return self.pack.commit(p)
        given = tuple([<object>args[i] for i in range(1, count)])
        named = {}
        if names is not NULL or not operation.fits(count - 1):
            for i in range(PyTuple_GET_SIZE(names) if names is not NULL else 0):
                named[<object>PyTuple_GET_ITEM(names, i)] = <object>args[count + i]
            given, named = positional(operation, given, named)
        return self.encode_slow(replica, operation, given, named, degree)

    cdef int encode_slow(self, Replica replica, Operation operation, tuple args, dict named,
                         unsigned char degree) except -1:
        """The same for any arguments that can travel."""
        cdef uint32_t code = <uint32_t>operation.index << 1
        cdef bytes body
        if named:
            args = (*args, named)
            code |= 1
        body = self.codec.encode_slow(args, operation.title)
        if len(body) > SIMPLE_MAX and not self.pack.has_room_for(len(body) + EXTRA):
            self.wait_for_room(len(body) + EXTRA)
            self.check(replica)
        self.commit(replica.number, code, body, degree)
        return 0

    cdef Invocation record_call(self, Replica replica, Operation operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names, unsigned char degree,
                                unsigned int wanted):
        """`commit_call` where a history is kept."""
        given = tuple([<object>args[i] for i in range(1, count)])
        named = {}
        for i in range(PyTuple_GET_SIZE(names) if names is not NULL else 0):
            named[<object>PyTuple_GET_ITEM(names, i)] = <object>args[count + i]
        given, named = positional(operation, given, named)
        if named:
            given = (*given, named)
        body = self.codec.encode_slow(given, operation.title)
        return self.commit_recorded(replica, operation, <uint32_t>operation.index << 1 | bool(named),
                                    given, body, degree, wanted)

    cdef Invocation commit_recorded(self, Replica replica, object operation, uint32_t code,
                                    tuple args, bytes body, unsigned char degree,
                                    unsigned int wanted):
        """Put a message into the open packet once its invocation is on file."""
        cdef uint32_t number = 0 if replica is None else replica.number
        cdef Invocation invocation = None
        while invocation is None:
            hold()
            try:
                with self.history.lock:
                    self.check(replica)     # the group may have gone meanwhile
                    if self.has_room(len(body)):
                        self.history.invoked(self.pack.ticket, replica, name_of(operation), args,
                                             body)
                        self.commit(number, code, body, degree)
                        invocation = self.issue(replica, operation, wanted)
                if invocation is None:
                    self.wait_for_room(len(body))   # others were faster
            finally:
                drop_later()
        return invocation

    cpdef commit(self, uint32_t number, uint32_t code, bytes body, unsigned char degree=0):
        """Put one message into the open packet."""
        cdef unsigned char* p
        if degree:
            self.pack.raise_degree(degree)
        p = self.pack.reserve(len(body) + EXTRA)
        p = put_varint(put_varint(p, number), code)
        memcpy(p, <const char*>body, len(body))
        self.pack.commit(p + len(body))

    cdef int degree_for(self, object operation, int degree) except -1:
        """The degree of a call, where it is not 0; raises where the view is too small for it."""
        if self.single:
            return 0
        if not self.patient and self.is_too_small(degree):
            raise NotEnoughMembers(f"{name_of(operation)}: {self.say_too_few(degree)}; it was not sent")
        return degree

    cdef bint is_too_small(self, int degree) except -1:
        """Whether what is of this degree waits until the view has more members (H2)."""
        view = (<object>self).view
        return (degree <= NUMBER_MAX and len(view.replicas) <= degree
                and not self.available and not resets_of(view.lineage))

    def too_few(self):
        """Why writes of a degree in use wait for more members; None where none has to."""
        cdef int degree = 0 if self.single else self.degrees.largest()
        return self.say_too_few(degree) if self.is_too_small(degree) else None

    def say_too_few(self, int degree):
        """What a degree takes, and what the view has."""
        return (f"degree {degree} takes {degree + 1} members with replicas, and the view has "
                f"{len((<object>self).view.replicas)}")

    @property
    def effective_degree(self):
        """The degree of what has none of its own."""
        return 0 if self.single else self.group_degree

    def set_least(self, int least):
        """R has changed; the stack is told when the upcalls have returned."""
        self.least = least
        self.core.again(self)

    cpdef Invocation invoke_group(self, int code, tuple args, str what, unsigned int wanted=0,
                                  int degree=-1):
        """Invoke what the group itself does; returns the invocation.

        Its degree is the group's where none is given.
        """
        cdef Invocation invocation
        self.check(None)
        self.refuse_nested(what)
        if degree < 0:
            degree = self.group_degree
        if degree:
            degree = self.degree_for(what, degree)
        if wanted:
            self.check_stable(what, wanted)
        body = self.codec.encode_slow(args, what)
        if not self.has_room(len(body)):
            self.wait_for_room(len(body))
            self.check(None)
        if self.history is not None:
            invocation = self.commit_recorded(None, what, code << 1, args, body, degree, wanted)
        else:
            self.commit(0, code << 1, body, degree)
            invocation = self.issue(None, what, wanted)
        if self.pack.ready:
            self.driver.kick()
        return invocation

    def invoke_atomic(self, atomic, args, named, wanted=0):
        """Invoke an atomic function; returns the invocation."""
        return self.manager.invoke_atomic(atomic, args, named, wanted)

    def call_atomic(self, atomic, args, named, timeout, wanted=0):
        """Invoke an atomic function, and wait for the outcome; `timeout` in seconds."""
        cdef int64_t until
        refuse_loop(atomic)
        until = self.limit_room(nanoseconds(timeout))
        hold()
        try:
            invocation = self.manager.invoke_atomic(atomic, args, named, wanted)
            if until != NEVER:
                until = max(0, until - self.driver.clock())
            outcome = self.await_outcome(invocation, until, True)
        except RoomLacking:
            drop_later()
            raise without_room(atomic) from None
        except BaseException:
            drop_later()
            raise
        finally:
            self.limit_room(NEVER)
        drop()
        return outcome

    cdef int check_stable(self, object operation, unsigned int wanted) except -1:
        """Raise where nobody here knows what so many members have applied."""
        if self.receipts is None:
            raise StackError(f"{name_of(operation)} with stable={wanted}: {NO_STABLE}")
        return self.receipts.check(operation, wanted)

    def mark(self):
        """Put a fence into the order that nobody waits for; returns its ticket."""
        return self.post(FENCE, (), "a mark")

    def post(self, int code, tuple args, str what, int degree=-1):
        """Have the group itself do something, which nobody waits for; returns its ticket.

        Its degree is the group's where none is given.
        It never waits for room: there is one for each call that is waited for, at the most.
        """
        cdef bytes body = self.codec.encode_slow(args, what)
        cdef uint64_t ticket
        degree = self.effective_degree if degree < 0 else degree
        hold()
        try:
            if self.history is None:
                ticket = self.pack.ticket
                self.commit(0, code << 1, body, degree)
            else:
                with self.history.lock:
                    ticket = self.pack.ticket
                    self.history.invoked(ticket, None, what, args, body)
                    self.commit(0, code << 1, body, degree)
            self.driver.kick()
        finally:
            drop_later()
        return ticket

    def proceed_with(self, layer):
        """Have a layer, or what belongs to this one, go on; from any thread."""
        self.core.again(layer)
        self.driver.kick()

    cdef object owe(self):
        return None if self.receipts is None else self.receipts.owe()

    cdef int check(self, Replica replica) except -1:
        """Raise where nothing can be invoked any more."""
        if replica is not None and replica.flags & FAULTY and self.failure is not None:
            raise fresh(self.failure)
        if replica is not None and replica.flags & (DROPPED | CLOSED):
            if replica.flags & CLOSED:
                if isinstance(self.failure, GroupClosed):
                    raise fresh(self.failure)
                raise GroupClosed(f"{replica.name!r}: the group was left")
            raise ObjectDropped(f"{replica.name!r} was ended with group.drop")
        if self.failure is not None:
            raise fresh(self.failure)
        if self.notice is not None:
            notice, self.notice = self.notice, None
            raise notice
        return 0

    cdef int refuse_nested(self, object what) except -1:
        if thread_slot()[0] is not NULL:
            name = name_of(what)
            raise NestedWrite(f"{name} was called from inside an operation of another object: "
                              "pass the value as an argument, or declare an @atomic function")
        return 0

    cdef bint has_room(self, Py_ssize_t size) noexcept:
        """Whether this member may have so many bytes more under way."""
        return (self.pack.has_room_for(size + EXTRA) if size > SIMPLE_MAX
                else not self.pack.is_full())

    cdef int wait_for_room(self, Py_ssize_t size) except -1:
        """This member has too much under way: wait, or raise on an event loop.

        What needs more room than a small message keeps it free from these meanwhile: else it would
        wait for ever behind a stream of them.
        """
        cdef bint large = size > SIMPLE_MAX
        cdef Pack pack = self.pack      # the member may join again meanwhile, with another one
        cdef object limit = self.room_limits.get(PyThread_get_thread_ident())
        cdef int64_t until = NEVER if limit is None else limit
        cdef int64_t now
        if must_not_block():
            self.refused = max(self.refused, size)
            raise WindowFull("too many invocations are not ordered yet: await group.drain()")
        while not self.has_room(size):      # looked at again, since leaving lets other threads run
            hold()
            try:
                waits.enter("room", "", "nowait")
                if large:
                    pack.claim()
                try:
                    while not self.has_room(size):
                        self.check(None)
                        if self.room_waitable is None:
                            self.room_waitable = Waitable()
                        self.driver.kick()
                        now = self.driver.clock()
                        if now >= until:
                            raise RoomLacking
                        if not wait(self.driver, self.room_waitable, min(until, now + WARNED),
                                    until != NEVER) and until > now + WARNED:
                            self.long_waits.log_full()
                finally:
                    if large:
                        self.give_up_claim(pack)
                    waits.leave()
            finally:
                drop_later()
        return 0

    cdef int give_up_claim(self, Pack pack) except -1:
        """What is small may go on; it waits for no input if nothing is under way."""
        pack.unclaim()
        self.tell_room()
        return 0

    # Waiting.

    cdef object await_outcome(self, Invocation invocation, int64_t timeout, bint withdraw):
        cdef int64_t until = NEVER
        cdef int64_t now
        cdef bint done
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        now = self.driver.clock()
        try:
            if timeout == NEVER:
                done = self.driver.wait(invocation, now + SHOWN)
            else:
                until = now + timeout
                done = wait(self.driver, invocation, now + min(timeout, SHOWN), True)
            if not done:
                self.wait_visibly(invocation, until)
        except BaseException:
            if invocation.outcome == UNDER_WAY:
                self.withdraw(invocation, "interrupted")
            raise
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        if not withdraw:
            raise TimeoutError(f"{title_of(invocation)} has no outcome yet; it goes on")
        self.withdraw(invocation, "timeout")
        try:
            wait(self.driver, invocation, self.driver.clock() + max(timeout, GRACE), True)
        except BaseException:
            invocation.seen = True      # its caller knows that it has no outcome
            raise
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        raise unanswered(invocation)

    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1:
        """A wait that takes long: people may see it, and are warned where the group is blocked."""
        replica = <Replica>invocation.replica
        name = "" if replica is None else (<Replica>replica).name
        hold()
        try:
            waits.enter("reply", name, name_of(invocation.operation))
            self.long_waits.began(invocation)
            while not wait(self.driver, invocation, min(until, self.driver.clock() + WARNED),
                           until != NEVER):
                if self.driver.clock() >= until:
                    break
                self.long_waits.still_waiting(invocation)
                if invocation.wanted:
                    self.receipts.still_waiting(invocation)
        finally:
            self.long_waits.over(invocation)
            waits.leave()
            drop_later()
        return 0

    cdef int watch(self, object loop) except -1:
        if not self.watching:
            self.watching = True
            self.long_waits.watch(loop)
        self.driver.look_later()
        return 0

    def awaited(self):
        """The invocations that coroutines wait for."""
        cdef Py_ssize_t i
        cdef list found = []
        for i in range(WINDOW):
            if self.issued[i] is not NULL and (<Invocation>self.issued[i]).waiters:
                found.append(<Invocation>self.issued[i])
        for call in self.long_waits.parked():
            if call.invocation is not None and (<Invocation>call.invocation).waiters:
                found.append(call.invocation)
        return found

    def members_needed(self, Invocation invocation):
        """How many members with replicas there must be for a call to go on; 0 for no more than there are."""
        cdef int degree = 0 if self.single or self.has_place(invocation) else self.degree_of(invocation)
        if degree > 0 and self.is_too_small(degree):
            return degree + 1
        if invocation.wanted > <unsigned int>len((<object>self).view.replicas):
            return invocation.wanted
        return 0

    def has_place(self, Invocation invocation):
        """Whether a call is no write of this member's, or was dispatched here."""
        return (isinstance(invocation.operation, Operation)
                and (<Operation>invocation.operation).traits & READ
                or invocation.ticket < self.pack.returned)

    def wanted_of(self, Invocation invocation):
        """How many members are to have applied it, once it has run here; else 0."""
        if invocation.wanted and invocation.ticket in self.receipts.held:
            return invocation.wanted
        return 0

    cdef int degree_of(self, Invocation invocation) except -1:
        """The degree of an invocation."""
        cdef int degree = -1
        if isinstance(invocation.operation, Operation):
            degree = (<Operation>invocation.operation).degree
        return self.effective_degree if degree < 0 else degree

    cdef bint take_back(self, Invocation invocation) except -1:
        """Have it never leave, if it has not left: what stands in its place does nothing."""
        cdef list taken = []
        # A history says what was cast; and from inside an operation the stack cannot be asked.
        if self.history is not None or thread_slot()[0] is not NULL:
            return False
        self.driver.call_within(1.0, self.void, invocation, taken)
        if taken:
            self.issued[invocation.ticket & (WINDOW - 1)] = NULL
        return bool(taken)

    def void(self, Invocation invocation, list taken, now):
        """If an invocation has not left, put into its place what does nothing; an input of the driver."""
        cdef Message message = self.pack.find_unsent(invocation.ticket)
        if message is not None and invocation.outcome == UNDER_WAY:
            message.data()[0] = 0
            message.data()[1] = VOID << 1
            taken.append(invocation)

    cdef object not_sent(self, Invocation invocation, str why):
        """How an invocation ends that was taken back."""
        cdef int degree = self.degree_of(invocation)
        if why == "timeout" and self.is_too_small(degree):
            return NotEnoughMembers(f"{title_of(invocation)}: {self.say_too_few(degree)}; the time "
                                    "limit passed, and it was not sent")
        return withdrawal_error(invocation)

    cpdef bint withdraw(self, Invocation invocation, str why):
        if invocation.outcome != UNDER_WAY or self.failure is not None:
            return False
        if invocation.wanted and self.receipts.give_up(invocation, why):
            return True
        if invocation.withdrawn is not None:
            return True
        hold()
        try:
            invocation.withdrawn = why
            if not isinstance(invocation.operation, Operation) or not (
                    (<Operation>invocation.operation).traits & READ):
                if self.take_back(invocation):
                    self.lose(invocation, self.not_sent(invocation, why))
                else:
                    self.manager.send_withdrawal(invocation.ticket)
            elif invocation.replica.withdraw_read(invocation):
                invocation.fail(withdrawal_error(invocation))
        finally:
            drop_later()
        return True

    cdef int forget(self, Invocation invocation) noexcept:
        if self.issued[invocation.ticket & (WINDOW - 1)] is <void*>invocation:
            self.issued[invocation.ticket & (WINDOW - 1)] = NULL
        return 0

    def may_invoke(self):
        """Whether this member may invoke more."""
        return not self.pack.is_full()

    async def room(self):
        """Wait until this member may invoke more: what was refused before, too."""
        cdef Py_ssize_t size = self.refused
        cdef bint large = size > SIMPLE_MAX
        cdef Pack pack = self.pack
        self.refused = 0
        if large:
            pack.claim()
        try:
            while not self.has_room(size):
                self.check(None)
                future = loop_here().create_future()
                self.room_futures.append(future)
                self.driver.kick()
                # Another thread may have made room meanwhile, or ended the group, and told nobody.
                if not self.has_room(size) and self.failure is None:
                    await future
        finally:
            if large:
                self.give_up_claim(pack)

    cdef int tell_room(self) except -1:
        """There is room again for those who wait for it."""
        cdef Waitable waitable = self.room_waitable
        if not self.pack.has_ample_room() and self.failure is None:
            return 0
        if waitable is not None:
            self.room_waitable = None
            waitable.wake()
        futures, self.room_futures = self.room_futures, []
        for future in futures:
            tell(future)
        return 0

    def settled(self):
        """Whether all that this member has invoked is ordered and was dispatched here."""
        return self.pack.returned == self.pack.ticket

    # Reads that cannot run at once.

    cdef object read(self, object replica, object operation, PyObject* const* args,
                     Py_ssize_t count, PyObject* names, int64_t timeout):
        cdef Invocation invocation
        cdef object outcome
        hold()
        try:
            invocation = self.start_read(replica, operation, args, count, names, timeout != NEVER)
            if invocation.outcome == UNDER_WAY and must_not_block():
                self.withdraw(invocation, "refused")
                refuse_loop(operation)
            outcome = self.await_outcome(invocation, timeout, True)
        except BaseException:
            drop_later()
            raise
        drop()
        return outcome

    cdef Invocation read_nowait(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names):
        return self.start_read(replica, operation, args, count, names, True)

    cdef Invocation start_read(self, object replica, object operation, PyObject* const* args,
                               Py_ssize_t count, PyObject* names, bint brief):
        """Queue for the mutex as a write does; a guard that is false waits on the spot."""
        cdef Replica target = <Replica>replica
        cdef Invocation invocation
        cdef Call call
        if thread_slot()[0] is not NULL:
            self.refuse_nested(operation)
        if target.flags & (DROPPED | FAULTY) or (not target.flags & CLOSED and self.failure is not None
                                      and (<Operation>operation).guard is not None):
            self.check(target)              # else it shows the last state
        given = tuple([<object>args[i] for i in range(1, count)])
        named = {}
        for i in range(PyTuple_GET_SIZE(names) if names is not NULL else 0):
            named[<object>PyTuple_GET_ITEM(names, i)] = <object>args[count + i]
        invocation = Invocation.__new__(Invocation)
        invocation.invoker = self
        invocation.operation = operation
        invocation.replica = replica
        if target.flags & CLOSED:
            read_last_state(invocation, operation, <object>args[0], given, named)
            return invocation
        if target.queue is not None and len(target.queue) >= TASKS_MAX:
            invocation.fail(TooManyWaiting(
                f"{target.name!r}: {len(target.queue)} calls wait until it is free; this one did "
                "not run and never will"))
            return invocation
        call = Call(self, operation, 0, None, given, named).for_reader(invocation, brief)
        call.replicas = [replica]
        self.reads_slow += 1
        hold()
        try:
            submit(call)
        finally:
            drop_later()
        return invocation

    cdef int release(self, object replica) except -1:
        """A read of a free object is over, and meanwhile something came for the object."""
        cdef Replica freed = <Replica>replica
        hold()
        try:
            freed.flags &= ~<unsigned int>SIGNALLED
            if freed.flags & QUEUED:
                freed.flags |= LOCKED
                hand_on(freed)
        except BaseException:
            drop_later()
            raise
        return drop()


cdef bint wait(Driver driver, Waitable waitable, int64_t until, bint timed) except -1:
    """Have this thread wait for an outcome, until then.

    One with a time limit does not receive: it would run the operations of others meanwhile, and not
    come back if one of them does not end.
    """
    if timed:
        return driver.wait_asleep(waitable, until)
    return driver.wait(waitable, until)
