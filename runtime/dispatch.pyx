"""Dispatch: the runtime of one group, on top of its stack (active messages 3: D12, D16; D08).

A message is  object (varint) | operation, twice, plus 1 where names follow (varint) | arguments.
Object 0 is the group itself; what it does is in `manager`. An invocation of a free object runs
straight from the receive buffer, on the thread that received it, its arguments decoded into a C
array; whatever else can be the case makes a `Call` of it (`task`).

The caller's own replica is where its outcome comes from: a member counts its messages (`ticket`),
and finds the invocation that it has issued under the count. While nobody holds an invocation,
nothing is kept for it.

The bound on handlers (D07) is watched by packets: one clock reading before and one after. Where a
packet took too long, which may be the fault of other threads or processes, the packets of the next
minute are timed by this thread's processor time; where one of several operations takes too long by
that, the operations of the next second are timed one by one.
"""

import asyncio
import logging
from hashlib import blake2b

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from orcalike.runtime import waits
from orcalike.runtime.arguments import positional
from orcalike.runtime.changes import withdrawal_error
from orcalike.runtime.errors import (
    GroupClosed,
    InvocationTimeout,
    NestedWrite,
    ObjectDropped,
    ReplicaDivergence,
    WindowFull,
)
from orcalike.transport.errors import ProtocolError

from orcalike.runtime.invocation import complain, name_of, resolve
from orcalike.runtime.invocation cimport (
    UNDER_WAY,
    Invocation,
    Invoker,
    nanoseconds,
    refuse_loop,
    running_loop,
)
from orcalike.runtime.marshal cimport Codec, get, put
from orcalike.runtime.operation cimport GUARDED, POPUP, READ, UNDO, Operation
from orcalike.runtime.replica cimport (
    CLOSED,
    DROPPED,
    HELD,
    LOCKED,
    QUEUED,
    UNPACKED,
    Replica,
    begin,
    end,
    find,
    thread_slot,
)
from orcalike.runtime.task cimport Call, Task, hand_on, is_fault, submit
from orcalike.transport.drivers.driver cimport Driver, Waitable
from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.bytes cimport get_varint, put_varint
from orcalike.transport.wire.message cimport Message

cdef extern from "Python.h":
    Py_ssize_t PyTuple_GET_SIZE(PyObject*) noexcept
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t) noexcept

cdef enum:
    ARGS_MAX = 8            # arguments that are decoded into the array
    SIMPLE_MAX = 512        # bytes of arguments that are written in place
    WATCHED = 60000000000   # ns for which packets are timed by processor time
    TIMED = 1000000000      # ns for which operations are
    STALLED = 250000000     # ns on the wall clock that count whatever the processor did
    GRACE = 1000000000      # ns that a withdrawal is waited for, at the least
    SHOWN = 50000000        # ns after which a wait is entered in the table of waits
    WARNED = 10000000000    # ns between warnings of a group that is blocked

_log = logging.getLogger("orcalike")


cdef class Runtime(Invoker):
    """The shared objects of one group, as this member has them."""

    def __init__(self, Stack stack, codec_of, incarnation):
        super().__init__(stack)
        self.stack = stack
        self.pack = stack.pack
        self.incarnation = incarnation
        self.driver = Driver()
        self.replicas = [None]
        self.waiting = {}
        self.place = -1
        self.room_futures = []
        self.codec = codec_of(self)
        memset(self.issued, 0, sizeof(self.issued))
        stack.above = self

    # Sending.

    cdef Invocation invoke_nowait(self, object replica, object operation, PyObject* const* args,
                                  Py_ssize_t count, PyObject* names):
        cdef Invocation invocation = self.commit_call(replica, operation, args, count, names)
        if self.pack.ready:
            self.driver.kick()
        return invocation

    cdef Invocation commit_call(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names):
        """Put a write into the open packet; the caller sees to it that it leaves."""
        self.check(<Replica>replica)
        if thread_slot()[0] is not NULL:
            self.refuse_nested(operation)
        if self.pack.is_full():
            self.wait_for_room()
        self.encode(<Replica>replica, <Operation>operation, args, count, names)
        return self.issue(replica, operation)

    cdef object invoke(self, object replica, object operation, PyObject* const* args,
                       Py_ssize_t count, PyObject* names, int64_t timeout):
        refuse_loop(operation)
        # The driver sends it, once this thread stands ready to receive the answer.
        return self.await_outcome(self.commit_call(replica, operation, args, count, names),
                                  timeout, True)

    cdef Invocation issue(self, object replica, object operation):
        """The invocation that belongs to the message that was committed last."""
        cdef Invocation invocation = Invocation.__new__(Invocation)
        invocation.invoker = self
        invocation.ticket = self.pack.ticket - 1
        invocation.operation = operation
        invocation.replica = replica
        self.issued[invocation.ticket & (WINDOW - 1)] = <void*>invocation
        self.writes += 1
        return invocation

    cdef int encode(self, Replica replica, Operation operation, PyObject* const* args,
                    Py_ssize_t count, PyObject* names) except -1:
        """Marshal a call into the open packet; simple arguments in place."""
        cdef unsigned char* p
        cdef unsigned char* stop
        cdef Py_ssize_t i
        if names is NULL and operation.fits(count - 1):
            p = self.pack.reserve(SIMPLE_MAX)
            stop = p + SIMPLE_MAX
            p = put_varint(p, replica.number)
            p = put_varint(p, <uint32_t>operation.index << 1)
            for i in range(1, count):
                p = put(p, stop, args[i])
                if p is NULL:
                    break
            else:
                return self.pack.commit(p)
        given = tuple([<object>args[i] for i in range(1, count)])
        named = {}
        if names is not NULL or not operation.fits(count - 1):
            for i in range(PyTuple_GET_SIZE(names) if names is not NULL else 0):
                named[<object>PyTuple_GET_ITEM(names, i)] = <object>args[count + i]
            given, named = positional(operation, given, named)
        return self.encode_slow(replica, operation, given, named)

    cdef int encode_slow(self, Replica replica, Operation operation, tuple args,
                         dict named) except -1:
        """The same for any arguments that can travel."""
        cdef uint32_t code = <uint32_t>operation.index << 1
        cdef bytes body
        if named:
            args = (*args, named)
            code |= 1
        body = self.codec.encode_slow(args, operation.title)
        self.commit(replica.number, code, body)
        return 0

    cpdef commit(self, uint32_t number, uint32_t code, bytes body):
        """Put one message into the open packet."""
        cdef unsigned char* p = self.pack.reserve(len(body) + 16)
        p = put_varint(put_varint(p, number), code)
        memcpy(p, <const char*>body, len(body))
        self.pack.commit(p + len(body))

    cpdef Invocation invoke_group(self, int code, tuple args, str what):
        """Invoke what the group itself does; returns the invocation."""
        cdef Invocation invocation
        self.check(None)
        self.refuse_nested(what)
        body = self.codec.encode_slow(args, what)
        if self.pack.is_full():
            self.wait_for_room()
        self.commit(0, code << 1, body)
        invocation = self.issue(None, what)
        if self.pack.ready:
            self.driver.kick()
        return invocation

    def invoke_atomic(self, atomic, args, named):
        """Invoke an atomic function; returns the invocation."""
        return self.manager.invoke_atomic(atomic, args, named)

    def call_atomic(self, atomic, args, named, timeout):
        """Invoke an atomic function, and wait for the outcome; `timeout` in seconds."""
        refuse_loop(atomic)
        return self.await_outcome(self.manager.invoke_atomic(atomic, args, named),
                                  nanoseconds(timeout), True)

    cdef int check(self, Replica replica) except -1:
        """Raise where nothing can be invoked any more."""
        if replica is not None and replica.flags & (DROPPED | CLOSED):
            if replica.flags & CLOSED:
                raise self.failure if isinstance(self.failure, GroupClosed) else GroupClosed(
                    f"{replica.name!r}: the group was left")
            raise ObjectDropped(f"{replica.name!r} was ended with group.drop")
        if self.failure is not None:
            raise self.failure
        return 0

    cdef int refuse_nested(self, object what) except -1:
        if thread_slot()[0] is not NULL:
            name = name_of(what)
            raise NestedWrite(f"{name} was called from inside an operation of another object: "
                              "pass the value as an argument, or declare an @atomic function")
        return 0

    cdef int wait_for_room(self) except -1:
        """This member has too much under way: wait, or raise on an event loop."""
        if running_loop() is not None:
            raise WindowFull("too many invocations are not ordered yet: await group.drain()")
        waits.enter("room", "", "nowait")
        try:
            while self.pack.is_full():
                self.check(None)
                if self.room_waitable is None:
                    self.room_waitable = Waitable()
                self.driver.kick()
                self.driver.wait(self.room_waitable, NEVER)
        finally:
            waits.leave()
        return 0

    # Waiting.

    cdef object await_outcome(self, Invocation invocation, int64_t timeout, bint withdraw):
        cdef int64_t until = NEVER
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        if timeout != NEVER:
            until = self.driver.clock() + timeout
        try:
            if not self.driver.wait(invocation, min(until, self.driver.clock() + SHOWN)):
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
        self.driver.wait(invocation, self.driver.clock() + max(timeout, GRACE))
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        raise InvocationTimeout(
            f"{title_of(invocation)}: the group does not answer, so nobody can say whether it "
            "will run", "unknown")

    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1:
        """A wait that takes long: people may see it, and are warned where the group is blocked."""
        replica = <Replica>invocation.replica
        name = "" if replica is None else (<Replica>replica).name
        waits.enter("reply", name, name_of(invocation.operation))
        try:
            while not self.driver.wait(invocation, min(until, self.driver.clock() + WARNED)):
                if self.driver.clock() >= until:
                    break
                self.events.still_waiting(title_of(invocation))
        finally:
            waits.leave()
        return 0

    cpdef bint withdraw(self, Invocation invocation, str why):
        if invocation.outcome != UNDER_WAY or self.failure is not None:
            return False
        if invocation.withdrawn is None:
            invocation.withdrawn = why
            if not isinstance(invocation.operation, Operation) or not (
                    (<Operation>invocation.operation).traits & READ):
                self.manager.send_withdrawal(invocation.ticket)
            elif invocation.replica.withdraw_read(invocation):
                invocation.fail(withdrawal_error(invocation))
        return True

    cdef int forget(self, Invocation invocation) noexcept:
        if self.issued[invocation.ticket & (WINDOW - 1)] is <void*>invocation:
            self.issued[invocation.ticket & (WINDOW - 1)] = NULL
        return 0

    def has_room(self):
        """Whether this member may invoke more."""
        return not self.pack.is_full()

    async def room(self):
        """Wait until this member may invoke more."""
        while self.pack.is_full():
            self.check(None)
            future = asyncio.get_running_loop().create_future()
            self.room_futures.append(future)
            self.driver.kick()
            await future

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
            future.get_loop().call_soon_threadsafe(resolve, future)
        return 0

    def settled(self):
        """Whether all that this member has invoked is ordered and was dispatched here."""
        return self.pack.returned == self.pack.ticket

    # Reads that cannot run at once.

    cdef object read(self, object replica, object operation, PyObject* const* args,
                     Py_ssize_t count, PyObject* names, int64_t timeout):
        cdef Invocation invocation = self.read_nowait(replica, operation, args, count, names)
        if invocation.outcome != UNDER_WAY:
            return invocation.take()
        if running_loop() is not None:
            self.withdraw(invocation, "refused")
            refuse_loop(operation)
        return self.await_outcome(invocation, timeout, True)

    cdef Invocation read_nowait(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names):
        """Queue for the mutex like anybody; a guard that is false waits on the spot."""
        cdef Replica target = <Replica>replica
        cdef Invocation invocation
        cdef Call call
        if thread_slot()[0] is not NULL:
            self.refuse_nested(operation)
        if target.flags & DROPPED or not target.flags & CLOSED and self.failure is not None:
            self.check(target)
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
        call = Call(self, operation, 0, None, given, named).of(None, 0, invocation)
        call.replicas = [replica]
        self.reads_slow += 1
        submit(call)
        return invocation

    cdef int release(self, object replica) except -1:
        """A read of a free object is over, and meanwhile something came for the object."""
        cdef Replica freed = <Replica>replica
        if freed.flags & QUEUED:
            freed.flags |= LOCKED
            hand_on(freed)
        return 0

    # Receiving.

    cpdef up_cast(self, Message message):
        """One message of a packet, in its place in the order."""
        cdef const unsigned char* p = message.data()
        cdef const unsigned char* stop = p + message.size()
        cdef uint32_t number, code
        cdef Replica replica
        self.message = message
        self.dispatched += 1
        self.recent = 0
        if self.chain is not None:
            self.chain = chained(self.chain, message)
        if message.index == 0:
            self.start_batch()
            self.core.again(self)
        p = get_varint(p, stop, &number)
        if p is not NULL:
            p = get_varint(p, stop, &code)
        if p is NULL:
            self.stranger(message, "it is cut short")
        elif number == 0:
            self.manager.dispatch(message.source, message.ticket, code >> 1,
                                  p[:stop - p], self.taken(message))
        elif number >= <uint32_t>len(self.replicas):
            self.stranger(message, f"there is no object {number}")
        else:
            replica = <Replica>self.replicas[number]
            if replica is None:
                self.to_dropped(message)
            else:
                self.apply(replica, message, p, stop, code)

    cdef int apply(self, Replica replica, Message message, const unsigned char* p,
                   const unsigned char* stop, unsigned int code) except -1:
        """Run an invocation, at once where nothing stands against it (D08)."""
        cdef PyObject* argv[ARGS_MAX + 1]
        cdef Operation operation
        cdef PyObject* result
        cdef Py_ssize_t count = 1
        cdef Py_ssize_t i
        cdef const unsigned char* q = p
        cdef void** slot
        if replica.flags or code & 1:
            return self.apply_slowly(replica, message, code, p[:stop - p])
        if code >> 1 >= <unsigned int>len(replica.operations):
            return self.stranger(message, f"{replica.name!r} has no operation {code >> 1}")
        operation = <Operation>replica.operations[code >> 1]
        if operation.traits:
            return self.apply_slowly(replica, message, code, p[:stop - p])
        argv[0] = <PyObject*>replica.object
        while q < stop and count <= ARGS_MAX:
            q = get(q, stop, &argv[count])
            if q is NULL:
                break
            count += 1
        if q is not stop:
            for i in range(1, count):
                Py_DECREF(<object>argv[i])
            return self.apply_slowly(replica, message, code, p[:stop - p])
        self.recent = replica.number
        self.recent_code = code
        if self.timed_until:
            self.start_timing()
        slot = thread_slot()
        replica.flags = LOCKED
        replica.owner = slot
        slot[0] = <void*>replica
        result = operation.call(<PyObject*>operation.function, argv, count, NULL)
        for i in range(1, count):
            Py_DECREF(<object>argv[i])
        end(replica)
        if message.source == self.place or result is NULL:
            self.complete(message, replica, operation, result)
        else:
            Py_DECREF(<object>result)
        if self.timed_until:
            self.stop_timing(replica, code)
        if replica.flags:
            self.release(replica)
        return 0

    cdef int complete(self, Message message, Replica replica, Operation operation,
                      PyObject* result) except -1:
        """The outcome of an invocation that ran inline; of this member's own it is wanted."""
        cdef void* issued = NULL
        cdef object value = None
        cdef object error = None
        if result is NULL:
            error = caught()
            if is_fault(error):
                self.diverged(operation, error)
        else:
            value = <object>result
            Py_DECREF(value)
        if message.source != self.place:
            return 0
        issued = self.issued[message.ticket & (WINDOW - 1)]
        if issued is NULL:
            if error is not None:
                annotate(error, operation, replica)
                complain(operation, error)
            return 0
        self.issued[message.ticket & (WINDOW - 1)] = NULL
        if error is None:
            (<Invocation>issued).succeed(value)
        else:
            annotate(error, operation, replica)
            (<Invocation>issued).fail(error)
        return 0

    cdef Invocation taken(self, Message message):
        """This member's own invocation that a message carries, where somebody holds it."""
        cdef void* issued
        if message.source != self.place:
            return None
        issued = self.issued[message.ticket & (WINDOW - 1)]
        if issued is NULL:
            return None
        self.issued[message.ticket & (WINDOW - 1)] = NULL
        return <Invocation>issued

    cdef int apply_slowly(self, Replica replica, Message message, unsigned int code,
                          bytes raw) except -1:
        cdef Invocation invocation = self.taken(message)
        cdef Call call
        if replica.operations is not None and code >> 1 >= <unsigned int>len(replica.operations):
            return self.stranger(message, f"{replica.name!r} has no operation {code >> 1}")
        if replica.flags & DROPPED:
            if invocation is not None:
                invocation.fail(ObjectDropped(f"{replica.name!r} was ended with group.drop"))
            return 0
        call = Call(self, None, code, raw)
        call.of(self.view.members[message.source].incarnation, message.ticket, invocation)
        call.at(message.seqno, message.index, message.stamp)
        call.replicas = [replica]
        self.recent = replica.number
        self.recent_code = code
        if self.timed_until:
            self.start_timing()
        submit(call)
        if self.timed_until:
            self.stop_timing(replica, code)
        return 0

    def to_dropped(self, Message message):
        """An invocation of an object that was ended before."""
        cdef Invocation invocation = self.taken(message)
        if invocation is not None:
            invocation.fail(ObjectDropped("the object was ended with group.drop"))

    cdef int stranger(self, Message message, str why) except -1:
        """Only what is registered runs (D18)."""
        cdef Invocation invocation = self.taken(message)
        who = self.view.members[message.source]
        text = f"an invocation of {who} was dropped: {why}"
        _log.error("%s", text)
        if invocation is not None:
            invocation.fail(ProtocolError(text))
        return 0

    # The bound on handlers.

    cpdef proceed(self):
        """The packets of this input have been dispatched: how long did it take?"""
        cdef int64_t now = self.driver.clock()
        if self.room_waitable is not None or self.room_futures:
            self.tell_room()
        if now - self.batch_began >= BATCH_MAX:
            self.slow_batch(now)

    cdef int start_batch(self) except -1:
        """The first message of a packet has come."""
        self.batch_began = self.driver.clock()
        self.batch_first = self.dispatched
        if self.watched_until:
            self.batch_worked = self.driver.worked()
            if self.batch_began > self.watched_until:
                self.watched_until = 0
        return 0

    cdef int slow_batch(self, int64_t now) except -1:
        """A packet took too long on the wall clock: look closer, or say who it was."""
        cdef int64_t took
        cdef Replica replica
        if not self.watched_until:
            self.watched_until = now + WATCHED
            return 0
        took = self.driver.worked() - self.batch_worked
        if took < BATCH_MAX and now - self.batch_began < STALLED:
            return 0
        if self.dispatched != self.batch_first:
            self.timed_until = now + TIMED
            return 0
        replica = self.replicas[self.recent] if self.recent < len(self.replicas) else None
        if replica is not None and replica.operations is not None:
            self.budget.exceeded(replica, replica.operations[self.recent_code >> 1],
                                 max(took, now - self.batch_began))
        return 0

    cdef int start_timing(self) except -1:
        """Note the time before an operation."""
        self.began = self.driver.clock()
        self.began_working = self.driver.worked()
        return 0

    cdef int stop_timing(self, Replica replica, unsigned int code) except -1:
        """Report an operation that took longer than it may."""
        cdef int64_t now = self.driver.clock()
        cdef int64_t took = self.driver.worked() - self.began_working
        if took >= BATCH_MAX or now - self.began >= STALLED:
            if replica.operations is not None:
                operation = replica.operations[code >> 1]
                self.budget.exceeded(replica, operation, max(took, now - self.began))
        if now > self.timed_until:
            self.timed_until = 0
        return 0

    # What tasks ask for.

    def pop_up(self, Call call):
        """Run a call, which holds the mutex of its object, in a thread of its own."""
        self.start_thread(call.popped_up)

    def before_write(self, Task task):
        """A snapshot that is due takes what the objects are before this task changes them."""
        cdef Replica replica
        for replica in task.replicas:
            if replica.flags & UNPACKED:
                self.donor.pack(replica)

    def saved(self, Replica replica):
        """The object's state, encoded."""
        return self.donor.state_of(replica)

    def digest_of(self, Replica replica):
        """The object's state, encoded in one way only."""
        return self.codec.encode_canonical(self.donor.plain_state(replica), replica.name)

    def put_back(self, Replica replica, state):
        """Make the object's state what `saved` gave."""
        self.donor.set_state(replica, state)

    def complain(self, Call call, error):
        """A call of this member's own failed, and nobody holds the invocation."""
        self.annotate(call, error)
        complain(call.function, error)

    def annotate(self, Call call, error):
        """Note on an exception where it was raised."""
        annotate(error, call.function, call.replicas[0])

    def diverged(self, operation, error):
        """A fault of this replica alone, not a result: it stops serving (H10)."""
        name = name_of(operation)
        if self.failure is None:
            self.failure = ReplicaDivergence(
                f"{name} ended with {error!r} here, which is no result but a fault of this "
                "process: its replicas may differ from the others' and serve no more")
            _log.critical("%s", self.failure)
            self.events.failed(self.failure)

    def fail_all(self, error):
        """Nothing that is under way will have an outcome any more: `error` ends it."""
        cdef Py_ssize_t i
        cdef void* issued
        if self.failure is None:
            self.failure = error
        for i in range(WINDOW):
            issued = self.issued[i]
            if issued is not NULL:
                self.issued[i] = NULL
                (<Invocation>issued).fail(error)
        self.manager.fail_all(error)
        self.tell_room()
        for call in list(self.waiting.values()):
            (<Call>call).fail(error)
        self.waiting.clear()

    # Views and state.

    cpdef up_view(self, object view, bytes cut):
        before = self.view
        self.view = view
        self.place = view.place(self.incarnation)
        self.manager.view_changed(before, view)
        self.events.viewed(view)

    cpdef up_problem(self, object member, str why):
        self.events.lost(member, why)

    cpdef up_exit(self, str why):
        self.events.exited(why)

    cpdef up_join_failed(self, str why):
        self.events.join_failed(why)

    cpdef up_join_denied(self, str why):
        self.events.join_denied(why)

    cpdef up_system_error(self, str why):
        self.events.system_error(why)

    cpdef object up_give_state(self):
        return self.donor.give()

    cpdef up_take_state(self, bytes piece):
        self.donor.take(piece)

    # For what is written in Python.

    def more_state(self):
        """A piece of state that a joiner waits for may be there now."""
        self.core.again(self.stack.focus("XFER"))
        self.driver.kick()

    def replica_of(self, object):
        """The replica of a shared object; None for any other object."""
        return find(<PyObject*>object)

    def place_of(self):
        """(seqno, index, stamp) of the message that is dispatched now."""
        if self.message is None:
            return 0, 0, self.manager.stamp
        return self.message.seqno, self.message.index, self.message.stamp

    def now_place(self):
        """The place of the operation that this thread runs; None where it runs none."""
        cdef void** slot = thread_slot()
        cdef Replica replica
        if slot[0] is NULL:
            return None
        replica = <Replica>slot[0]
        if replica.task is not None:
            return replica, replica.task.seqno, replica.task.index, replica.task.stamp
        return (replica, *self.place_of())


cdef extern from *:
    """
    #define orcalike_reraise() (-1)
    """
    int reraise "orcalike_reraise"() except -1


cdef object caught():
    """The exception that is set."""
    try:
        reraise()
    except BaseException as error:
        return error


cdef int read_last_state(Invocation invocation, Operation operation, object target, tuple given,
                         dict named) except -1:
    """A read after the group was left: the object shows its last state."""
    try:
        invocation.succeed(operation.function(target, *given, **named))
    except Exception as error:
        invocation.fail(error)
    return 0


cdef bytes chained(bytes chain, Message message):
    """A digest over all deliveries so far, which is the same at every member (I1)."""
    place = f"{message.seqno} {message.index} {message.source} {message.ticket} ".encode()
    return blake2b(chain + place + message.body, digest_size=16).digest()


cdef int annotate(object error, object operation, object replica) except -1:
    if hasattr(error, "add_note"):
        name = name_of(operation)
        where = "" if replica is None else f" of {replica.name!r}"
        error.add_note(f"in {name}{where}")
    return 0


def title_of(Invocation invocation):
    """The operation's name, and the object's, for people."""
    name = name_of(invocation.operation)
    return name if invocation.replica is None else f"{name} of {invocation.replica.name!r}"


def running_place():
    """(replica, seqno, index, stamp) of the operation that this thread runs; None outside."""
    cdef void** slot = thread_slot()
    if slot[0] is NULL:
        return None
    return (<Runtime>(<Replica>slot[0]).invoker).now_place()


def runs_here(Replica replica):
    """Whether this thread runs an operation of the replica."""
    return replica.owner is thread_slot()


def replica_of(object):
    """The replica of a shared object; None for any other object."""
    return find(<PyObject*>object)


def refuse_inside(what):
    """Raise NestedWrite where this thread runs an operation."""
    if thread_slot()[0] is not NULL:
        raise NestedWrite(f"{what} was used inside an operation")


def refuse_to_wait(what):
    """Raise where this thread may not wait: in an operation, or on a running event loop."""
    refuse_inside(what)
    refuse_loop(what)
