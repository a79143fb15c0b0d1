"""Calls of atomic functions: how they leave, and what is done with them in the order.

A message of object 0: the function's name and digest, the number of positional arguments, and the arguments, of which
shared objects travel as references; those by keyword come last, in a dict. In the order it is a task that needs
the mutexes of all its objects (D05).
"""

cimport cython
from cpython.object cimport PyObject

from orcalike.runtime import classes
from orcalike.runtime.codes import ATOMIC_HEAD, Code, check_fields
from orcalike.runtime.errors import ReplicaDivergence, Unreadable
from orcalike.transport.degree import largest_of
from orcalike.transport.errors import OrcalikeError, ProtocolError

from orcalike.runtime.applying cimport Applying
from orcalike.runtime.atomic cimport Atomic
from orcalike.runtime.call cimport Call, new_call
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.replica cimport RAN_ATOMIC, Replica, find
from orcalike.transport.wire.message cimport Message

cdef int ATOMIC = Code.ATOMIC
cdef Py_ssize_t HEAD = ATOMIC_HEAD


@cython.final
cdef class AtomicCalls:
    """The calls of atomic functions of one group, at one member."""

    def __init__(self, runtime):
        self.runtime = runtime

    def invoke(self, Atomic atomic, tuple args, dict named, unsigned int wanted, bint awaited, bint leaves):
        """Invoke an atomic function; returns the invocation. `awaited`, `leaves`: as of `Sender.invoke_group`."""
        cdef tuple what = (atomic.info.name, atomic.info.digest, len(args), *args)
        if named:
            what = (*what, named)
        degree = self.degree_of(atomic, replicas_among(args, named))
        return self.runtime.sender.invoke_group(ATOMIC, what, atomic.name, wanted, degree, awaited, leaves)

    cdef int degree_of(self, Atomic atomic, list replicas) except -1:
        """The largest of its own and of its objects' classes'."""
        cdef Replica replica
        cdef int group = self.runtime.sender.degrees.group
        cdef int first = of_group(atomic.degree if atomic.degree >= 0 else (<Replica>replicas[0]).degree, group)
        cdef list known = [first]
        for replica in replicas:
            if of_group(replica.degree, group) != first:
                known.append(of_group(replica.degree, group))
        return first if len(known) == 1 else largest_of(known, len((<object>self.runtime).view.members))

    cdef int take(self, Message message, const unsigned char* p, const unsigned char* stop, Invocation invocation) except -1:
        """A call has its place in the order; what is wrong with it is its outcome."""
        cdef object member = self.runtime.member_at(message.source)
        try:
            self.submit(message, member, p, stop, invocation)
        except (OrcalikeError, TypeError, MemoryError, RecursionError) as error:
            (<object>self.runtime).manager.failed(ATOMIC, member, invocation, error)
        return 0

    cdef int submit(self, Message message, object member, const unsigned char* p, const unsigned char* stop,
                    Invocation invocation) except -1:
        """Run it, or have it queue for its objects."""
        cdef list values = self.decode(p, stop - p)
        cdef list replicas
        cdef Replica replica
        cdef Call call
        name, digest, count = values[0], values[1], values[2]
        args, named = arguments_of(count, tuple(values[HEAD:]))
        info = classes.lookup_atomic(name)
        if info is None or info.digest != digest:
            raise ReplicaDivergence(
                f"atomic {name} is not declared here, or in another version: declare it in a "
                "module that all members import before they join")
        replicas = replicas_among(args, named)
        if not replicas:
            raise ProtocolError(f"atomic {name} of no object")
        call = new_call(self.runtime, info.atomic, 0, None, args, named)
        call.of(member, message.ticket, invocation).at(message.seqno, message.index, message.stamp)
        call.size = stop - p
        call.departed = message.source < 0
        for replica in replicas:
            self.runtime.note_ran(replica, RAN_ATOMIC)
        self.runtime.submit_dispatched(call.bind(replicas))
        return 0

    cdef list decode(self, const unsigned char* p, Py_ssize_t size):
        """What a member has sent with a call."""
        cdef list values
        try:
            values = self.runtime.sender.codec.decode_slow(p, size)
        except Unreadable as error:
            if error.argument <= HEAD:
                raise error.of("atomic of the group") from None
            error.argument -= HEAD
            raise error.of(f"atomic {error.values[0]}") from None
        if not (len(values) >= HEAD and type(values[0]) is str and type(values[1]) is bytes and type(values[2]) is int):
            check_fields(ATOMIC, values)
        return values


cdef inline int of_group(int degree, int group) noexcept:
    """A degree, or, if there is none, the group's."""
    return group if degree < 0 else degree


cdef tuple arguments_of(object count, tuple values):
    """The positional arguments of an atomic function, and those by keyword, as a member has sent them."""
    if count == len(values):
        return values, {}
    if 0 <= count == len(values) - 1 and type(values[count]) is dict and all([isinstance(name, str) for name in values[count]]):
        return values[:count], values[count]
    raise ProtocolError("arguments of an atomic function that no call has")


cpdef list replicas_among(tuple args, dict named):
    """The replicas of the shared objects among the arguments of a call, each once."""
    cdef list found = []
    cdef Replica replica
    for value in (*args, *named.values()) if named else args:
        replica = find(<PyObject*>value)
        if replica is not None and replica not in found:
            found.append(replica)
    return found
