"""Whether the state of an object could be given to a joiner: looked at while its writer is here to know.

A value that cannot travel comes into a state in one way: an operation makes it, since arguments have
travelled. So the member that calls a write looks at the object when it has run: at all of the state
with the first call of each operation and each time the number of its writes has doubled, and with
each call at the attributes and at what was put last into lists, dicts and deques. A look goes through
LOOKED_AT values at the most.
"""

from collections import deque

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from orcalike.runtime import extension_types
from orcalike.runtime.errors import NotSerializable
from orcalike.runtime.state import plain_state, what
from orcalike.runtime.stream import encode_nothing

from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport Replica

cdef extern from "Python.h":
    object PyObject_GenericGetDict(object, void*)
    Py_ssize_t PyDict_GET_SIZE(PyObject*)
    int PyDict_Next(PyObject*, Py_ssize_t*, PyObject**, PyObject**)
    Py_ssize_t PyList_GET_SIZE(PyObject*)
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)

cdef enum:
    LOOKED_AT = 65536       # values in one look
    NEWEST = 8              # entries of a dict that are tried for the newest
    DEEP = 5                # levels in which the newest is looked at
    ATOMIC = 63             # the bit that stands for atomic functions, and for operations past it

cdef object elements_of = extension_types.elements_of
cdef set accepted = set()   # types, beside the plain ones, of which a value could travel


cdef class Audit:
    """What a member has looked at of one of its objects."""

    cdef uint64_t operations    # a bit for each operation that was called
    cdef uint64_t writes        # of this member
    cdef uint64_t due           # when all is to be looked at again
    cdef bint has_dict


cdef object refusal(Codec codec, Replica replica, object operation):
    """Why the state of an object cannot travel, after a write of this member; None if it can."""
    cdef Audit audit = replica.audit
    cdef int bit = ATOMIC
    cdef uint64_t flag
    if audit is None:
        audit = replica.audit = Audit.__new__(Audit)
        audit.has_dict = type(replica.object).__dictoffset__ != 0
    if isinstance(operation, Operation):
        bit = min(max((<Operation>operation).index, 0), <int>ATOMIC)
    flag = <uint64_t>1 << bit
    audit.writes += 1
    if audit.operations & flag and audit.writes < audit.due and look_at_newest(audit, replica):
        return None
    if not audit.operations & flag or audit.writes >= audit.due:
        audit.due = 2 * audit.writes
    audit.operations |= flag
    text = why_not(codec, replica)
    if text is None:
        return None
    return NotSerializable(
        f"{text} ({operation.title} has run; nobody can join the group while the state is so)")


cpdef object why_not(Codec codec, Replica replica):
    """Why the state of an object cannot travel, as far as one look goes; None if it can."""
    cdef Py_ssize_t left = LOOKED_AT
    try:
        state = plain_state(replica)
    except Exception as error:
        return f"{what(replica.name)}: its snapshot raised {error!r}"
    try:
        if travels(codec, state, &left, codec.max_depth):
            return None
    except RuntimeError:                # a local method changes it meanwhile
        return None
    try:
        encode_nothing(codec, state, what(replica.name))
    except NotSerializable as error:
        return str(error)
    return None


cdef bint travels(Codec codec, object value, Py_ssize_t* left, int room) except *:
    """Whether a value looks as if it could travel."""
    cdef type kind = type(value)
    left[0] -= 1
    if left[0] < 0 or is_scalar(kind):
        return True
    if room == 0:
        return False
    if kind is dict:
        for key, item in (<dict>value).items():
            if not travels(codec, key, left, room - 1) or not travels(codec, item, left, room - 1):
                return False
            if left[0] < 0:
                return True
        return True
    if kind is list or kind is tuple or kind is set or kind is frozenset or kind is deque:
        elements = value
    else:
        if codec.reference_of(value) is None:
            try:
                elements = elements_of(value)
            except NotSerializable:
                return False
        else:
            elements = ()
        accepted.add(kind)
    for item in elements:
        if not travels(codec, item, left, room - 1):
            return False
        if left[0] < 0:
            return True
    return True


cdef inline bint is_scalar(type kind) noexcept:
    return (kind is int or kind is str or kind is float or kind is bool or kind is bytes
            or kind is type(None))


cdef bint look_at_newest(Audit audit, Replica replica) except *:
    """Whether attributes, and what was put last into them, are of types that travel."""
    cdef Py_ssize_t index = 0
    cdef PyObject* key
    cdef PyObject* item
    if not audit.has_dict or "snapshot" in replica.info.hooks:
        return True
    attributes = PyObject_GenericGetDict(replica.object, NULL)
    if type(attributes) is not dict:
        return True
    while PyDict_Next(<PyObject*>attributes, &index, &key, &item):
        if not newest_travels(item, DEEP):
            return False
    return True


cdef bint newest_travels(PyObject* value, int room) except *:
    cdef type kind = type(<object>value)
    cdef Py_ssize_t index, count
    cdef PyObject* key
    cdef PyObject* item
    if is_scalar(kind):
        return True
    if kind is list:
        count = PyList_GET_SIZE(value)
        return room == 0 or count == 0 or newest_travels(PyList_GET_ITEM(value, count - 1), room - 1)
    if kind is dict:
        count = PyDict_GET_SIZE(value)
        if room == 0 or count == 0:
            return True
        # Entries are in the order in which they came; where some are gone, there are more places.
        index = count - 1
        for _ in range(NEWEST):
            if not PyDict_Next(value, &index, &key, &item):
                break
            if not newest_travels(item, room - 1):
                return False
        return True
    if kind is tuple or kind is set or kind is frozenset:
        return True
    if kind is deque:
        items = <object>value
        if not items or room == 0:
            return True
        last = items[len(items) - 1]
        return newest_travels(<PyObject*>last, room - 1)
    return kind in accepted
