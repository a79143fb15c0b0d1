"""Sender: how this member's invocations leave.

A call is marshalled in place into the open packet. A member that has a window of invocations under way, not ordered yet,
waits for room.

What comes in is for `dispatch`, whose `Runtime` owns the sender.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.runtime.arguments import positional
from orcalike.runtime.awaiting import blocking_call
from orcalike.runtime.codes import ATOMIC_HEAD, Code
from orcalike.runtime.errors import GroupClosed
from orcalike.runtime.invocation import name_of, without_room
from orcalike.runtime.raising import fresh
from orcalike.runtime.receipts import NO_STABLE
from orcalike.runtime.replica import dropped
from orcalike.runtime.room import RoomLacking
from orcalike.transport.errors import StackError

from orcalike.runtime.event_loops cimport must_not_block, refuse_loop
from orcalike.runtime.invocation cimport UNDER_WAY, Invocation, nanoseconds
from orcalike.runtime.local_reads cimport begin_read, catch_up, given_of, is_free, named_of, read_free
from orcalike.runtime.operation cimport ARGS_MAX, Operation
from orcalike.runtime.receipts cimport Receipts
from orcalike.runtime.replica cimport CLOSED, DROPPED, FAULTY, INSISTED, LOCKED, QUEUED, SIGNALLED, Replica, interest_of, refuse_nested, thread_slot
from orcalike.runtime.room cimport EXTRA, FAST_MAX, SIMPLE_MAX, Room
from orcalike.runtime.task cimport hand_on
from orcalike.runtime.under_way cimport UnderWay
from orcalike.transport.drivers.deferral cimport drop, drop_later, hold
from orcalike.transport.drivers.driver cimport Driver
from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.layers.pack cimport Pack
from orcalike.transport.wire.message cimport Message

cdef enum:
    MOMENT = 250000000      # ns for which an event loop waits for a mutex: an operation's own bound


cdef inline uint64_t spares_of(Replica replica) noexcept:
    """What a write of an object spares, as a message does."""
    return ~interest_of(replica)


@cython.final
cdef class Sender(UnderWay):
    """One member's invocations, on the way out."""

    def __init__(self, runtime, Codec codec, Degrees degrees):
        self.runtime = runtime
        self.codec = codec
        self.degrees = degrees
        self.driver = Driver()
        self.room = Room(self)

    cdef int stand_on(self, Pack pack, Receipts receipts) except -1:
        """Marshal into that layer from now on; the member may join again, with another one."""
        self.pack = self.room.pack = pack
        self.order = &pack.core.order
        self.receipts = receipts
        return 0

    # Sending.

    cdef Invocation invoke_nowait(self, object replica, object operation, PyObject* const* args,
                                  Py_ssize_t count, PyObject* names, unsigned int wanted, bint awaited):
        cdef Invocation invocation = self.commit_call(replica, operation, args, count, names, wanted, False, awaited)
        if invocation.outcome == UNDER_WAY:     # else its result is the caller's alone
            self.last = invocation
        let_leave(self, awaited)
        return invocation

    cdef Invocation commit_call(self, object replica, object operation, PyObject* const* args, Py_ssize_t count,
                                PyObject* names, unsigned int wanted, bint waits, bint awaited):
        """Send a write, or put it into the open packet, which the caller has leave; `waits` for the outcome, or it is `awaited`."""
        cdef int degree = (<Operation>operation).degree
        cdef PyObject* placed[ARGS_MAX]
        cdef Py_ssize_t total
        cdef Invocation invocation
        if names is not NULL:
            total = (<Operation>operation).put_in_place(args, count, names, placed)
            if total >= 0:
                args, count, names = placed, total, NULL
        if is_refused(self, <Replica>replica):
            self.refuse(<Replica>replica)
        if degree < 0:
            degree = self.degrees.group
        if degree:
            degree = self.degrees.for_call(operation, degree)
        if wanted:
            self.check_stable(operation, wanted)
        if thread_slot()[0] is not NULL:
            refuse_nested(operation, waits)
        if self.pack.is_full():
            self.room.wait(0)
        if self.history is not None:
            return self.record_call(<Replica>replica, <Operation>operation, args, count, names, degree, wanted, waits, awaited)
        invocation = prepare(self, replica, operation)
        if names is NULL and may_go_fast(self, awaited, wanted):
            if self.cast_fast(invocation, <Replica>replica, <Operation>operation, args, count, degree, waits):
                return invocation
            self.check(<Replica>replica)    # others may have come between
            if self.pack.is_full():
                self.room.wait(0)
        self.encode(<Replica>replica, <Operation>operation, args, count, names, degree)
        issue(self, invocation, wanted)
        return invocation

    cdef bint cast_fast(self, Invocation invocation, Replica replica, Operation operation, PyObject* const* args,
                        Py_ssize_t count, unsigned char degree, bint waits) except -1:
        """Send a call of plain arguments from the core: into the order, where it runs at once (transport/fast.pyx), or into the packet."""
        cdef unsigned char call[FAST_MAX]
        cdef unsigned char* stop = put_call(call, FAST_MAX, replica, operation, args, count) if operation.fits(count) else NULL
        cdef bint fast = False, sent = False
        if stop is NULL or not self.driver.try_enter(self.pack.core):
            return False
        try:
            fast = sent = self.pack.cast_fast(call, stop - call, degree, spares_of(replica))
            if not sent and stop - call <= SIMPLE_MAX and not is_refused(self, replica) and not self.pack.is_full():
                self.pack.put(call, stop - call, degree, spares_of(replica))
                sent = True             # before the core is left, as its thread may not come back from that soon
            if sent:
                issue(self, invocation, 0)
        finally:
            self.leave_core(invocation, fast, waits)
        return sent

    cdef int leave_core(self, Invocation invocation, bint fast, bint waits) except -1:
        """Leave the core. A call that was put right into the order runs before that; the caller `waits` for its outcome, or does not."""
        cdef bint interrupted = fast and waits
        try:
            self.driver.leave_after(self.pack.core if fast else None)
            interrupted = False
        finally:
            if interrupted and invocation.outcome == UNDER_WAY:
                self.withdraw(invocation, "interrupted")
        return 0

    cdef object invoke(self, object replica, object operation, PyObject* const* args,
                       Py_ssize_t count, PyObject* names, int64_t timeout, unsigned int wanted):
        refuse_loop(operation)
        if timeout != NEVER:
            return self.invoke_within(replica, operation, args, count, names, timeout, wanted)
        invocation = self.commit_call(replica, operation, args, count, names, wanted, True, True)
        outcome = self.await_outcome(invocation, NEVER, True)   # it leaves when this thread can receive
        if invocation.renew():
            self.spare = invocation
        return outcome

    cdef object invoke_within(self, object replica, object operation, PyObject* const* args, Py_ssize_t count,
                              PyObject* names, int64_t timeout, unsigned int wanted):
        """The same with a time limit, which holds while it waits for room, too."""
        cdef int64_t until = self.room.limit(self.driver, timeout)
        try:
            invocation = self.commit_call(replica, operation, args, count, names, wanted, True, False)
        except RoomLacking:
            raise without_room(operation) from None
        finally:
            self.room.limit(self.driver, NEVER)
        return self.await_outcome(invocation, max(0, until - self.driver.clock()), True)

    cdef int encode(self, Replica replica, Operation operation, PyObject* const* args,
                    Py_ssize_t count, PyObject* names, unsigned char degree) except -1:
        """Marshal a call into the open packet; simple arguments in place."""
        cdef unsigned char* p
        if names is NULL and operation.fits(count) and not (degree and self.pack.mixes(degree)):
            p = put_call(self.pack.reserve(SIMPLE_MAX), SIMPLE_MAX, replica, operation, args, count)
            if p is not NULL:
                if degree:
                    self.pack.raise_degree(degree)
                self.pack.next_spares = spares_of(replica)
                return self.pack.commit(p)
        return self.encode_slow(replica, operation, args, count, names, degree)

    cdef int encode_slow(self, Replica replica, Operation operation, PyObject* const* args,
                         Py_ssize_t count, PyObject* names, unsigned char degree) except -1:
        """The same for any arguments that can travel."""
        cdef uint32_t code = <uint32_t>operation.index << 1
        cdef tuple given = given_of(args, count)
        cdef dict named = {}
        cdef bytes body
        if names is not NULL or not operation.fits(count):
            given, named = positional(operation, given, named_of(args, count, names))
        if named:
            given = (*given, named)
            code |= 1
        body = self.codec.encode_slow(given, operation.title)
        if len(body) > SIMPLE_MAX and not self.pack.has_room_for(len(body) + EXTRA):
            self.room.wait(len(body) + EXTRA)
            self.check(replica)
        self.commit(replica.number, code, body, degree)
        return 0

    cdef Invocation record_call(self, Replica replica, Operation operation, PyObject* const* args, Py_ssize_t count,
                                PyObject* names, unsigned char degree, unsigned int wanted, bint waits, bint awaited):
        """`commit_call` where a history is kept."""
        given, named = positional(operation, given_of(args, count), named_of(args, count, names))
        if named:
            given = (*given, named)
        body = self.codec.encode_slow(given, operation.title)
        return self.commit_recorded(replica, operation, <uint32_t>operation.index << 1 | bool(named), given, body, degree, wanted,
                                    waits, awaited)

    cdef Invocation commit_recorded(self, Replica replica, object operation, uint32_t code, tuple args, bytes body,
                                    unsigned char degree, unsigned int wanted, bint waits, bint awaited):
        """Send a message, or put it into the open packet, once its invocation is on file."""
        cdef uint32_t number = 0 if replica is None else replica.number
        cdef Invocation invocation = prepare(self, replica, operation)
        cdef bint issued = False, inside = False, fast = False
        while not issued:
            hold()
            try:
                with self.history.lock:
                    self.check(replica)     # the group may have gone meanwhile
                    issued = self.room.has(len(body))
                    if issued:
                        self.history.invoked(self.pack.ticket, replica, name_of(operation), args, body)
                        inside = may_go_fast(self, awaited, wanted) and self.driver.try_enter(self.pack.core)
                        fast = inside and self.put_fast(number, code, body, degree)
                        if not fast:
                            self.commit(number, code, body, degree)
                        issue(self, invocation, wanted)
                if not issued:
                    self.room.wait(len(body))   # others were faster
            finally:
                try:
                    if inside:          # others can write the history by now
                        self.leave_core(invocation, fast, waits)
                finally:
                    drop_later()
        return invocation

    cpdef commit(self, uint32_t number, uint32_t code, bytes body, unsigned char degree=0):
        """Put one message into the open packet."""
        if degree:
            self.pack.raise_degree(degree)
        self.pack.commit(put_body(self.pack.reserve(len(body) + EXTRA), number, code, body))

    cdef bint put_fast(self, uint32_t number, uint32_t code, bytes body, unsigned char degree) except -1:
        """Put one message right into the order, if it is small and nothing is before it; `leave_core` comes next."""
        cdef unsigned char call[FAST_MAX]
        return len(body) + EXTRA <= FAST_MAX and self.pack.cast_fast(call, put_body(call, number, code, body) - call, degree, 0)

    cpdef Invocation invoke_group(self, int code, tuple args, str what, unsigned int wanted=0, int degree=-1, bint awaited=False,
                                  bint leaves=True):
        """Invoke what the group itself does; returns the invocation, for which the caller is about to wait if it is `awaited`.

        Its thread runs what comes before then, which may not end: one that waits with a limit does not have the message leave
        here (`leaves`), but another thread, as it waits. Its degree is the group's where none is given.
        """
        cdef unsigned char known[FAST_MAX]
        cdef unsigned char* stop
        cdef bytes body
        cdef Invocation invocation
        cdef bint inside, fast = False
        self.check(None)
        refuse_nested(what, False)
        if degree < 0:
            degree = self.degrees.group
        if degree:
            degree = self.degrees.for_call(what, degree)
        if wanted:
            self.check_stable(what, wanted)
        stop = self.codec.put_known(known, known + FAST_MAX, args)
        body = (known[:stop - known] if stop is not NULL
                else self.codec.encode_slow(args, what, ATOMIC_HEAD if code == Code.ATOMIC else 0))
        if not self.room.has(len(body)):
            self.room.wait(len(body))
            self.check(None)
        if self.history is not None:
            invocation = self.commit_recorded(None, what, code << 1, args, body, degree, wanted, False, awaited)
        else:
            invocation = prepare(self, None, what)
            inside = may_go_fast(self, awaited, wanted) and self.driver.try_enter(self.pack.core)
            try:
                fast = inside and self.put_fast(0, code << 1, body, degree)
                if not fast:
                    self.commit(0, code << 1, body, degree)
                issue(self, invocation, wanted)
            finally:
                if inside:
                    self.leave_core(invocation, fast, False)
        if leaves and not fast:
            let_leave(self, awaited)
        return invocation

    def invoke_atomic(self, atomic, args, named, wanted=0, awaited=False):
        """Invoke an atomic function; returns the invocation."""
        return self.runtime.atomic_calls.invoke(atomic, args, named, wanted, awaited, True)

    def call_atomic(self, atomic, args, named, timeout, wanted=0):
        """Invoke an atomic function, and wait for the outcome; `timeout` in seconds."""
        cdef int64_t until
        refuse_loop(atomic)
        refuse_nested(atomic, True)
        until = self.room.limit(self.driver, nanoseconds(timeout))
        hold()
        try:
            invocation = self.runtime.atomic_calls.invoke(atomic, args, named, wanted, until == NEVER, until == NEVER)
            self.room.limit(self.driver, NEVER)     # before a handler calls something, while this waits
            until = NEVER if until == NEVER else max(0, until - self.driver.clock())
            outcome = self.await_outcome(invocation, until, True)
        except RoomLacking:
            drop_later()
            raise without_room(atomic) from None
        except BaseException:
            drop_later()
            raise
        finally:
            self.room.limit(self.driver, NEVER)
        drop()
        return outcome

    cdef int check_stable(self, object operation, unsigned int wanted) except -1:
        """Raise if it is not known here what so many members have applied."""
        if self.receipts is None:
            raise StackError(f"{name_of(operation)} with stable={wanted}: {NO_STABLE}")
        return self.receipts.check(operation, wanted)

    def post(self, int code, tuple args, str what, int degree=-1, Replica replica=None):
        """Have the group itself do something, or an object, which nothing waits for; returns its ticket.

        Its degree is the group's where none is given. It never waits for room: there are two for each call that is waited for, at most.
        """
        cdef uint32_t number = 0 if replica is None else replica.number
        cdef bytes body = self.codec.encode_slow(args, what)
        cdef uint64_t ticket
        degree = self.degrees.effective if degree < 0 else degree
        hold()
        try:
            if self.history is None:
                ticket = self.pack.ticket
                self.commit(number, code << 1, body, degree)
            else:
                with self.history.lock:
                    ticket = self.pack.ticket
                    self.history.invoked(ticket, replica, what, args, body)
                    self.commit(number, code << 1, body, degree)
            self.driver.kick()
        finally:
            drop_later()
        return ticket

    cdef int post_call(self, object replica, object operation, tuple args) except -1:
        if self.failure is None:
            self.post((<Operation>operation).index, args, operation.title, (<Operation>operation).degree, <Replica>replica)
        return 0

    cdef object begin_pending(self):
        return None if self.receipts is None else self.receipts.begin_pending()

    cdef int let_go_on(self, object source, bint writes_others) except -1:
        cdef bint inside = self.driver.is_inside()
        cdef int position
        if self.order[0] is NULL or inside and not self.runtime.runs_own:
            return 0                    # the member whose write it was says so
        position = self.runtime.view.position(source)
        if writes_others:
            self.pack.core.due = ~<uint64_t>0
        elif position >= 0:             # below 64, where the order is in memory
            self.pack.core.due |= <uint64_t>1 << position
        if inside:
            self.pack.core.schedule(self.pack.core.ear)
        else:                           # a thread that has held the object up
            self.driver.kick_later()
        return 0

    def hurry_others(self):
        """Have all members apply what is in the order, also those in which nothing waits: something here waits for that."""
        if self.order[0] is NULL or len(self.runtime.view.members) == 1:
            return
        self.pack.core.due = ~<uint64_t>0
        if self.driver.is_inside():
            self.pack.core.schedule(self.pack.core.ear)
        else:
            self.driver.kick_later()

    cdef int queue_full(self, object replica) except -1:
        self.runtime.queue_full(replica)
        return 0

    cdef int queue_has_room(self, object replica) except -1:
        self.runtime.queue_has_room(replica)
        return 0

    cdef int watch_threads(self) except -1:
        if not self.threads_watched and self.on_threads is not None:
            self.threads_watched = True
            self.on_threads()
        return 0

    @property
    def seed(self):
        """The group's."""
        return self.runtime.seed

    def rng_of_reads(self):
        """A generator for the reads of this process, from the group's seed."""
        return self.runtime.rng_of_reads()

    def check_open(self):
        """Raise if nothing can be invoked any more."""
        self.check(None)

    async def wait_for_room(self):
        """Wait until this member may invoke more: what was refused before, too."""
        await self.room.come()

    cdef int check(self, Replica replica) except -1:
        """Raise where nothing can be invoked any more."""
        return self.refuse(replica) if is_refused(self, replica) else 0

    cdef int refuse(self, Replica replica) except -1:
        """Raise for what was found; an object with a fault serves as long as the group does."""
        if replica is not None and replica.flags & FAULTY and self.failure is not None:
            raise fresh(self.failure)
        if replica is not None and replica.flags & (DROPPED | CLOSED):
            if replica.flags & CLOSED:
                if isinstance(self.failure, GroupClosed):
                    raise fresh(self.failure)
                raise GroupClosed(f"{replica.name!r}: the group was left")
            raise dropped(replica)
        if self.failure is not None:
            raise fresh(self.failure)
        if self.notice is not None:
            notice, self.notice = self.notice, None
            raise notice
        return 0

    def may_invoke(self):
        """Whether this member may invoke more."""
        return not self.pack.is_full()

    # Reads that are more than a call.

    cdef object read(self, object replica, object operation, PyObject* const* args,
                     Py_ssize_t count, PyObject* names, int64_t timeout):
        cdef Replica target = <Replica>replica
        cdef Invocation invocation
        cdef PyObject* placed[ARGS_MAX + 1]
        cdef Py_ssize_t total
        cdef PyObject* result
        cdef bint on_loop, tried = False
        if names is not NULL:
            total = (<Operation>operation).put_in_place(args + 1, count - 1, names, &placed[1])
            if total >= 0:
                placed[0] = args[0]
                args, count, names = placed, total + 1, NULL
        catch_up(self, self.driver, self.pack)
        if timeout == NEVER and self.failure is None and is_free(target, <Operation>operation, count, names):
            result = read_free(target, <Operation>operation, args, count, names)
            if result is not NULL:
                value = <object>result
                Py_DECREF(value)
                return value
            tried = True
        hold()
        try:
            on_loop = must_not_block()
            try:
                invocation = self.start_read(replica, operation, args, count, names, timeout != NEVER, on_loop, tried)
            finally:
                if tried:
                    target.flags &= ~<unsigned int>LOCKED
                    self.release(target)
            if (on_loop and invocation.outcome == UNDER_WAY
                    and not self.driver.wait_asleep(invocation, self.driver.clock() + MOMENT)):
                self.withdraw(invocation, "refused")
                raise blocking_call(operation)
            outcome = self.await_outcome(invocation, timeout, True)
            if invocation.renew():
                self.spare = invocation
        except BaseException:
            drop_later()
            raise
        drop()
        return outcome

    cdef Invocation read_nowait(self, object replica, object operation, PyObject* const* args, Py_ssize_t count, PyObject* names):
        cdef int64_t began = self.driver.clock()
        cdef Invocation invocation
        catch_up(self, self.driver, self.pack)
        invocation = self.start_read(replica, operation, args, count, names, True, False, False)
        invocation.sent_at = began
        return invocation

    cdef Invocation start_read(self, object replica, object operation, PyObject* const* args,
                               Py_ssize_t count, PyObject* names, bint brief, bint on_loop, bint tried):
        """Queue for the mutex as a write does; a guard that is false (`tried`) waits on the spot, but on no event loop."""
        cdef Replica target = <Replica>replica
        if target.flags & (DROPPED | FAULTY) or (not target.flags & CLOSED and self.failure is not None
                                      and (<Operation>operation).guard is not None):
            self.check(target)              # else it shows the last state
        return begin_read(prepare(self, replica, operation), self, self.runtime, target, <Operation>operation, args, count,
                          names, brief, on_loop, tried)

    cdef int release(self, object replica) except -1:
        """A read of a free object is over, and meanwhile something came for the object."""
        cdef Replica freed = <Replica>replica
        hold()
        try:
            freed.flags &= ~<unsigned int>(SIGNALLED | INSISTED)
            if freed.flags & (LOCKED | QUEUED) == QUEUED:   # else it is another one's by now
                freed.flags |= LOCKED
                hand_on(freed)
        except BaseException:
            drop_later()
            raise
        return drop()
