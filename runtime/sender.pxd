"""Sender: how this member's invocations leave."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from orcalike.runtime.degrees cimport Degrees
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.plain cimport put
from orcalike.runtime.receipts cimport Receipts
from orcalike.runtime.replica cimport CLOSED, DROPPED, FAULTY, Replica
from orcalike.runtime.room cimport SIMPLE_MAX, Room
from orcalike.runtime.under_way cimport UnderWay
from orcalike.transport.layers.pack cimport MESSAGES_MAX, Pack
from orcalike.transport.wire.bytes cimport put_varint


cdef class Sender(UnderWay):
    cdef readonly Codec codec
    cdef public object notice           # what the next call raises, once
    cdef Invocation spare               # one that has ended, and that nothing else holds; or None
    cdef readonly uint64_t writes
    cdef readonly Room room             # for what is to be under way
    cdef public object on_threads       # called as threads that do not receive come to run operations
    cdef public bint threads_watched    # it was called, and what it began goes on

    cdef int stand_on(self, Pack pack, Receipts receipts) except -1
    cdef Invocation commit_call(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names, unsigned int wanted, bint waits, bint awaited)
    cdef bint cast_fast(self, Invocation invocation, Replica replica, Operation operation, PyObject* const* args,
                        Py_ssize_t count, unsigned char degree, bint waits) except -1
    cdef int encode(self, Replica replica, Operation operation, PyObject* const* args,
                    Py_ssize_t count, PyObject* names, unsigned char degree) except -1
    cdef int encode_slow(self, Replica replica, Operation operation, PyObject* const* args,
                         Py_ssize_t count, PyObject* names, unsigned char degree) except -1
    cpdef commit(self, unsigned int number, unsigned int code, bytes body,
                 unsigned char degree=*)
    cpdef Invocation invoke_group(self, int code, tuple args, str what, unsigned int wanted=*,
                                  int degree=*, bint awaited=*, bint leaves=*)
    cdef Invocation record_call(self, Replica replica, Operation operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names, unsigned char degree,
                                unsigned int wanted, bint waits, bint awaited)
    cdef Invocation commit_recorded(self, Replica replica, object operation, uint32_t code,
                                    tuple args, bytes body, unsigned char degree,
                                    unsigned int wanted, bint waits, bint awaited)
    cdef bint put_fast(self, uint32_t number, uint32_t code, bytes body, unsigned char degree) except -1
    cdef int leave_core(self, Invocation invocation, bint fast, bint waits) except -1
    cdef int check_stable(self, object operation, unsigned int wanted) except -1
    cdef int check(self, Replica replica) except -1
    cdef int refuse(self, Replica replica) except -1
    cdef object invoke_within(self, object replica, object operation, PyObject* const* args,
                              Py_ssize_t count, PyObject* names, int64_t timeout,
                              unsigned int wanted)
    cdef Invocation start_read(self, object replica, object operation, PyObject* const* args,
                               Py_ssize_t count, PyObject* names, bint brief, bint on_loop, bint tried)
    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1


# The steps that each call of a write takes.

cdef inline Invocation prepare(Sender sender, object replica, object operation):
    """The invocation of an operation, before its message is committed.

    To make one may collect garbage, and what it was of before may be let go, from which another thread may go on: it
    would send the message, and its outcome could come before the table names the call (ADR-21).
    """
    cdef Invocation invocation
    if sender.spare is not None:
        invocation = sender.spare
        sender.spare = None
    elif sender.last is not None:
        invocation = sender.last
        sender.last = None              # first: to renew it may let others run
        if not invocation.renew():      # its caller has kept it
            invocation = Invocation.__new__(Invocation)
    else:
        invocation = Invocation.__new__(Invocation)
    if invocation.operation is not operation:
        invocation.operation = operation
    if invocation.replica is not replica:
        invocation.replica = replica
    return invocation


cdef inline unsigned char* put_call(unsigned char* p, Py_ssize_t room, Replica replica, Operation operation,
                                    PyObject* const* args, Py_ssize_t count) noexcept:
    """Marshal a call of simple arguments into so many bytes, which are enough for its head; where it ends, or NULL if it has others."""
    cdef unsigned char* stop = p + room
    cdef Py_ssize_t i
    p = put_varint(p, replica.number)
    p = put_varint(p, <uint32_t>operation.index << 1)
    for i in range(count):
        p = put(p, stop, args[i])
        if p is NULL:
            return NULL
    return p


cdef inline bint may_go_fast(Sender sender, bint awaited, unsigned int wanted) noexcept:
    """Whether a message may go past the layers: the order is in memory, nothing is before it here, and its outcome is waited for."""
    return awaited and not wanted and sender.order[0] is not NULL and sender.pack.is_idle()


cdef inline unsigned char* put_body(unsigned char* p, uint32_t number, uint32_t code, bytes body) noexcept:
    """Write a call whose arguments are marshalled; where it ends."""
    p = put_varint(put_varint(p, number), code)
    memcpy(p, <const char*>body, len(body))
    return p + len(body)


cdef inline bint is_refused(Sender sender, Replica replica) noexcept:
    """Whether something stands against a call: the group, or the object if there is one, serves no more."""
    return (sender.failure is not None or sender.notice is not None
            or replica is not None and replica.flags & (FAULTY | DROPPED | CLOSED) != 0)


cdef inline int issue(Sender sender, Invocation invocation, unsigned int wanted) except -1:
    """The invocation belongs to the message that was committed last."""
    cdef uint64_t ticket = sender.pack.ticket - 1
    if invocation.invoker is not sender:
        invocation.invoker = sender
    invocation.ticket, invocation.wanted = ticket, wanted
    invocation.sent_at = sender.driver.now
    sender.issued[ticket & (MESSAGES_MAX - 1)] = <void*>invocation
    sender.writes += 1
    if sender.failure is not None:      # since it was looked at
        sender.issued[ticket & (MESSAGES_MAX - 1)] = NULL
        sender.lose(invocation, sender.failure)
    return 0


cdef inline bint is_held(Sender sender, uint64_t ticket) noexcept:
    """Whether something holds the invocation under that count, and so its outcome is wanted."""
    return sender.issued[ticket & (MESSAGES_MAX - 1)] is not NULL


cdef inline int let_leave(Sender sender, bint awaited) except -1:
    """What was put into PACK leaves now, or, if it is not waited for, soon, together with what comes next."""
    if sender.pack.ready or awaited and sender.pack.gathers:
        sender.driver.kick()
    elif sender.pack.gathers and sender.pack.packed == 1:
        sender.driver.kick_later()
    return 0
