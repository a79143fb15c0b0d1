"""Applying: an invocation at its place in the order, on the thread that receives (active messages 3; D04, D05, D08).

If nothing stands against it, it runs straight from the receive buffer, its arguments decoded into a C array; whatever
else can be the case makes a `Call` of it (`task`). A guard that holds is no such case; where it is false, a call waits
at the object. `dispatch` finds the object, and says when.

Another thread may take this one's place in the core while an operation, or its guard, runs for long (`relief`). It has
made a call of it then, which this thread ends when it is back.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport UINT64_MAX, uint64_t

import logging

from orcalike.runtime.divergence import diverged
from orcalike.runtime.invocation import annotate, complain
from orcalike.runtime.raising import forget, fresh, own
from orcalike.runtime.replica import dropped
from orcalike.transport.drivers.pump import Relieved
from orcalike.transport.errors import ProtocolError

from orcalike.runtime.audit cimport passed_over, refusal
from orcalike.runtime.call cimport Call, is_fault, new_call
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.operation cimport ARGS_MAX, GUARDED, Operation, caught, test_guard
from orcalike.runtime.plain cimport get
from orcalike.runtime.replica cimport (
    APPLYING, CLOSED, DROPPED, LOCKED, WAITING, Replica, bit_of, end, thread_slot
)
from orcalike.runtime.sender cimport Sender, is_held
from orcalike.runtime.task cimport Task, finish, submit, wake_waiting
from orcalike.runtime.time_budget cimport TimeBudget
from orcalike.transport.layers.base cimport Layer
from orcalike.transport.layers.pack cimport MESSAGES_MAX
from orcalike.transport.wire.message cimport Message

cdef extern from "Python.h":
    Py_ssize_t PyList_GET_SIZE(PyObject*) noexcept

_log = logging.getLogger("orcalike")


cdef tuple given_by(PyObject** argv, Py_ssize_t count):
    """The arguments after the object, whose references go over."""
    cdef tuple given = PyTuple_New(count - 1)
    cdef Py_ssize_t i
    for i in range(1, count):
        PyTuple_SET_ITEM(given, i - 1, <object>argv[i])
    return given


cdef inline int begin(Applying applying, Replica replica, unsigned int code) except -1:
    """An invocation has its turn: its object is written, and it is timed if that is asked for."""
    applying.recent = replica.number
    applying.recent_code = code
    if replica.ran == 0:
        applying.written(replica)
    replica.ran |= bit_of(code >> 1)
    if applying.budget.timed_until:
        applying.budget.start_timing(applying.sender.driver)
    return 0


cdef class Applying(Layer):
    """Invocations of objects, as they come in the order."""

    cdef int apply(self, Replica replica, Message message, const unsigned char* p,
                   const unsigned char* stop, unsigned int code) except -1:
        """Run an invocation, at once where nothing stands against it (D08)."""
        cdef PyObject* argv[ARGS_MAX + 1]
        cdef Operation operation
        cdef PyObject* result
        cdef Py_ssize_t i, count = 1
        cdef const unsigned char* q = p
        cdef void** slot
        cdef object refused = None
        cdef int holds = 1
        cdef bint awaited, mine = message.source == self.position
        self.runs_own = mine
        if code & 1 or (replica.flags and (replica.flags != WAITING or replica.bonds)):
            return self.apply_slowly(replica, message, code, p[:stop - p])
        if code >> 1 >= <unsigned int>PyList_GET_SIZE(<PyObject*>replica.operations):
            return self.drop_invocation(message, f"{replica.name!r} has no operation {code >> 1}")
        operation = <Operation>replica.operations[code >> 1]
        if operation.traits & ~<unsigned int>GUARDED:
            return self.apply_slowly(replica, message, code, p[:stop - p])
        argv[0] = <PyObject*>replica.object
        while q < stop and count <= ARGS_MAX:
            q = get(q, stop, &argv[count])
            if q is NULL:
                break
            count += 1
        if q is not stop or replica.flags & ~<unsigned int>WAITING:     # to make them may have let another thread take it
            for i in range(1, count):
                Py_DECREF(<object>argv[i])
            return self.apply_slowly(replica, message, code, p[:stop - p])
        begin(self, replica, code)
        slot = thread_slot()
        replica.flags |= LOCKED | APPLYING
        replica.owner = slot
        slot[0] = <void*>replica
        result = NULL
        if operation.traits:
            holds = test_guard(operation, replica, argv, count)
            if holds == 0:
                return self.let_wait(replica, operation, message, code, given_by(argv, count), stop - p)
        if holds > 0:
            result = operation.call(<PyObject*>operation.function, argv, count, NULL)
        for i in range(1, count):
            Py_DECREF(<object>argv[i])
        if mine and result is not NULL and not passed_over(replica, code >> 1):
            refused = refusal(self.sender.codec, replica, operation)
        if not replica.flags & APPLYING:
            return self.come_back(<Call>replica.task, replica, operation, result)
        awaited = replica.flags & WAITING
        end(replica)
        if awaited:
            replica.flags |= LOCKED             # until the calls that wait were tried
        if result is NULL or refused is not None or mine and is_held(self.sender, message.ticket):
            self.complete(message, replica, operation, result, refused)
        else:
            Py_DECREF(<object>result)
        if replica.flags:
            self.let_through(replica, message, awaited)
        if self.budget.timed_until:
            self.budget.stop_timing(self.sender.driver, replica, code)
        return 0

    cdef int let_wait(self, Replica replica, Operation operation, Message message, unsigned int code,
                      tuple given, Py_ssize_t size) except -1:
        """The guard of an operation is false: a call waits at the object."""
        cdef bint relieved = not replica.flags & APPLYING
        cdef Call call
        thread_slot()[0] = NULL
        replica.owner = NULL
        replica.flags &= ~<unsigned int>APPLYING
        call = (<Call>replica.task if relieved
                else self.call_of(message, replica, operation, code, None, self.taken(message)))
        call.args, call.size = given, size
        call.let_wait()
        if relieved:
            return self.come_out(call, replica, operation)
        replica.flags &= ~<unsigned int>LOCKED
        if replica.flags & ~<unsigned int>WAITING:
            self.let_through(replica, message, False)
        if self.budget.timed_until:
            self.budget.stop_timing(self.sender.driver, replica, code)
        return 0

    cdef int let_through(self, Replica replica, Message message, bint awaited) except -1:
        """An operation is over, and something wants its object: calls that wait for guards, or what came meanwhile."""
        cdef Task task = Task.__new__(Task)
        task.placed = True
        task.applied = not awaited
        self.submitted = task
        if awaited:
            task.at(message.seqno, message.index, message.stamp)
            wake_waiting(task, replica)
        else:
            self.sender.release(replica)
        if task.relieved:
            raise Relieved
        self.submitted = None
        return 0

    cdef int complete(self, Message message, Replica replica, Operation operation,
                      PyObject* result, object error) except -1:
        """The outcome of an invocation that ran inline; of this member's own it is wanted.

        `error` is what the caller is to have although there is a result.
        """
        cdef void** place
        cdef void* issued
        cdef Invocation held            # only where other threads may run before it is over
        cdef object value = None
        if result is NULL:
            error = caught()
            if is_fault(error):
                diverged(self, operation, replica, error)
        else:
            value = <object>result
            Py_DECREF(value)
        if message.source != self.position:
            forget(error)
            return 0
        if error is not None:
            error = fresh(self.sender.failure) if is_fault(error) else own(error)   # the first is what all calls raise from here on
            annotate(error, operation, replica)
        place = &self.sender.issued[message.ticket & (MESSAGES_MAX - 1)]
        issued = place[0]
        if issued is NULL:
            if error is not None and not is_fault(error):   # which is logged, and known to the caller by now
                complain(operation, error)
            return 0
        place[0] = NULL                 # from here on another thread may let it go
        if error is None and not (<Invocation>issued).wanted:
            (<Invocation>issued).succeed(value)
            return 0
        held = <Invocation>issued
        if held.wanted:
            self.sender.receipts.hold_back(held, message.seqno, value, error)
        else:
            held.fail(error)
        return 0

    cdef Invocation taken(self, Message message):
        """This member's own invocation that a message carries: the caller's to complete from here on."""
        return self.sender.take(message.ticket) if message.source == self.position else None

    cdef int apply_slowly(self, Replica replica, Message message, unsigned int code,
                          bytes raw) except -1:
        cdef Invocation invocation = self.taken(message)
        cdef Call call
        if replica.operations is not None and code >> 1 >= <unsigned int>len(replica.operations):
            return self.drop_invocation(message, f"{replica.name!r} has no operation {code >> 1}")
        if replica.flags & (CLOSED | DROPPED):
            self.sender.lose(invocation, self.sender.failure or dropped(replica))
            return 0
        call = self.call_of(message, replica, None, code, raw, invocation)
        begin(self, replica, code)
        self.submit_dispatched(call)
        if self.budget.timed_until:
            self.budget.stop_timing(self.sender.driver, replica, code)
        return 0

    cdef Call call_of(self, Message message, Replica replica, Operation operation, unsigned int code, bytes raw,
                      Invocation invocation):
        """The call that a message carries, at its place in the order; `operation` is None until it is its turn."""
        cdef Call call = new_call(self, operation, code, raw, (), {})
        call.of(self.member_at(message.source), message.ticket, invocation)
        call.departed = message.source < 0
        call.at(message.seqno, message.index, message.stamp)
        call.replicas = replica.alone
        return call

    cdef int submit_dispatched(self, Task task) except -1:
        """Submit what the message that is dispatched now is about; nothing else is left to do with it."""
        self.submitted = task
        submit(task)
        if task.relieved:
            raise Relieved
        self.submitted = None
        return 0

    cdef int drop_invocation(self, Message message, str why) except -1:
        """Only what is registered runs (D18)."""
        cdef Invocation invocation = self.taken(message)
        text = f"an invocation of {self.member_at(message.source)} was dropped: {why}"
        _log.error("%s", text)
        self.sender.lose(invocation, ProtocolError(text))
        return 0

    cdef int come_back(self, Call call, Replica replica, Operation operation, PyObject* result) except -1:
        """An operation is over in whose midst another thread took this one's place in the core."""
        cdef object value = None if result is NULL else <object>result
        cdef object error = caught() if result is NULL else None
        if result is not NULL:
            Py_DECREF(value)
        thread_slot()[0] = NULL
        replica.owner = NULL
        call.over(value, error)
        return self.come_out(call, replica, operation)

    cdef int come_out(self, Call call, Replica replica, Operation operation) except -1:
        """What the other thread has left of it is done, and the core is left as it is."""
        finish(call)
        self.budget.accounts.exceeded(replica, operation, self.sender.driver.clock() - call.began)
        raise Relieved

    cpdef object member_at(self, int position):
        """The member at a position, or one that left, whose packet comes after the view without it."""
        raise NotImplementedError

    # What has been written.

    cdef int written(self, Replica replica) except -1:
        """An object is written for the first time since it was looked at: it is to be, in its turn."""
        if self.look_at != UINT64_MAX and not replica.flags & DROPPED:
            self.dirty[replica] = None
        return 0

    cpdef int note_ran(self, Replica replica, int bit) except -1:
        """Something that is no operation changes an object, at this place in the order."""
        if replica.ran == 0:
            self.written(replica)
        replica.ran |= <uint64_t>1 << bit
        return 0
