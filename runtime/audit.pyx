"""Whether the state of an object could be given to a joiner: looked at while its writer is here to know.

A value that cannot travel comes into a state in one way: an operation makes it, since arguments have
travelled. So the member that calls a write looks at the object when it has run: at all of the state
with the first call of each operation and each time the number of its writes has doubled; and with
each of its first writes, and one in some later, at the attributes and at what was put last into
lists, dicts and deques. A look goes through LOOKED_AT values at the most.
"""

from collections import deque

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from orcalike.runtime import extension_types
from orcalike.runtime.errors import NotSerializable
from orcalike.runtime.state import plain_state, what
from orcalike.runtime.stream_encoder import encode_nothing
from orcalike.transport.wording import repr_of

from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport Replica

cdef extern from *:
    """
    static int orcalike_traverse(PyObject *object, visitproc visit, void *arg) {
        traverseproc traverse = Py_TYPE(object)->tp_traverse;
        return traverse ? traverse(object, visit, arg) : 0;
    }

    /* Whether an object has made its dict: attributes without one are read faster (CPython 3.11 on). */
    static int orcalike_made_dict(PyObject *object) {
        if (!(Py_TYPE(object)->tp_flags & (1UL << 4)))      /* Py_TPFLAGS_MANAGED_DICT */
            return 1;
        PyObject *dict = ((PyObject **)object)[-3];
    #if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
        if ((uintptr_t)dict & 1)                            /* values, without a dict */
            return 0;
    #endif
        return dict != NULL;
    }
    """
    bint orcalike_made_dict(PyObject*) noexcept
    ctypedef int (*visitproc)(PyObject*, void*) except -1
    int orcalike_traverse(PyObject*, visitproc, void*) except -1

cdef extern from "Python.h":
    void* Py_TYPE(PyObject*)
    bint PyUnicode_CheckExact(PyObject*)
    bint PyUnicode_CHECK_INTERNED(PyObject*)
    Py_ssize_t PyDict_GET_SIZE(PyObject*)
    int PyDict_Next(PyObject*, Py_ssize_t*, PyObject**, PyObject**)
    Py_ssize_t PyList_GET_SIZE(PyObject*)
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)

cdef enum:
    LOOKED_AT = 65536       # values in one look
    NEWEST = 8              # entries of a dict that are tried for the newest
    DEEP = 5                # levels in which the newest is looked at
    ATTRIBUTES = 256        # entries of a dict that are looked at if it may be the object's own

cdef type none_type = type(None)
cdef void* NONE = <void*>none_type
cdef object elements_of = extension_types.elements_of
cdef object is_decided_by_type = extension_types.is_decided_by_type
cdef set accepted = set()   # types, beside the plain ones, of which each value could travel


@cython.final
cdef class Audit:
    """What a member has looked at of one of its objects."""


cdef struct Look:
    void* kind                  # the object's class
    bint met                    # the object's reference to it was met
    void* audit                 # whose `doubtful` is filled


cdef object refusal(Codec codec, Replica replica, object operation):
    """Why the state of an object cannot travel, after a write that is not `passed_over`; None if it can."""
    cdef uint64_t flag = flag_of(number_of(operation))
    if replica.audit is None or (<Audit>replica.audit).kind is not type(replica.object):
        begin_audit(replica)
    if looks_well(<Audit>replica.audit, <PyObject*>replica.object, flag):
        return None
    return refusal_after_all(codec, replica, operation, flag)


cdef unsigned int number_of(object operation) noexcept:
    """The number of an operation among those of its class; of an atomic function a large one."""
    return <unsigned int>(<Operation>operation).index if isinstance(operation, Operation) else ATOMIC


cdef int begin_audit(Replica replica) except -1:
    cdef Audit audit = Audit.__new__(Audit)
    audit.kind = type(replica.object)
    audit.snaps = "snapshot" in replica.info.hooks
    audit.writes = 1
    replica.audit = audit
    return 0


cdef bint looks_well(Audit audit, PyObject* shared, uint64_t flag) except -1:
    """Whether it is no time to look at all, and only types that travel were met."""
    cdef Look look
    if not audit.operations & flag or audit.writes >= audit.due:
        return False
    look.kind = <void*>audit.kind
    look.met = False
    look.audit = <void*>audit
    orcalike_traverse(shared, look_at_attribute, &look)
    return audit.doubtful is None


cdef object refusal_after_all(Codec codec, Replica replica, object operation, uint64_t flag):
    """Look at all if it is time, else at what is doubtful."""
    cdef Audit audit = replica.audit
    cdef Py_ssize_t left = LOOKED_AT
    cdef object text = None
    doubtful, audit.doubtful = audit.doubtful, None
    if not audit.operations & flag or audit.writes >= audit.due:
        audit.due = 2 * audit.writes
        audit.operations |= flag
        text = why_not(codec, replica)
    elif not all([travels(codec, value, &left, codec.max_depth - 1) for value in doubtful or ()]):
        text = refused_by_encoding(codec, replica)
    if text is None:
        return None
    ran = f"{operation.title} has run"
    if audit.writes > FIRST:
        ran = f"{ran}, perhaps an earlier call made it so"
    return NotSerializable(f"{text} ({ran}; no process can join the group while the state is so)")


cpdef object why_not(Codec codec, Replica replica):
    """Why the state of an object cannot travel, as far as one look goes; None if it can."""
    cdef Py_ssize_t left = LOOKED_AT
    try:
        if "snapshot" in replica.info.hooks:
            if travels(codec, plain_state(replica), &left, codec.max_depth):
                return None
        elif values_travel(codec, replica.object, &left):
            return None
    except RuntimeError:                # a local method changes it meanwhile
        return None
    except Exception as error:
        return f"{what(replica.name)}: its snapshot raised {repr_of(error)}"
    return refused_by_encoding(codec, replica)


cdef object refused_by_encoding(Codec codec, Replica replica):
    """Why the state cannot be encoded, with the place in it; None if it can."""
    try:
        state = plain_state(replica)
    except Exception as error:
        return f"{what(replica.name)}: its snapshot raised {repr_of(error)}"
    try:
        encode_nothing(codec, state, what(replica.name))
    except NotSerializable as error:
        return str(error)
    return None


# An object's values are visited as the garbage collector does it: to ask for its `__dict__` would
# make one, and CPython reads attributes that have no dict faster.

cdef bint values_travel(Codec codec, object shared, Py_ssize_t* left) except *:
    """Whether all that an object refers to looks as if it could travel."""
    cdef list values = []
    cdef bint met = False
    orcalike_traverse(<PyObject*>shared, collect, <void*>values)
    for value in values:
        if value is type(shared) and not met:
            met = True                  # an object's reference to its class is none of its values
        elif not travels(codec, value, left, codec.max_depth - 1):
            return False
    return True


def has_made_dict(object shared):
    """Whether an object's attributes are in a dict by now, which is slower to read."""
    return orcalike_made_dict(<PyObject*>shared)


def values_of(object shared):
    """The values of an object's attributes, in no order that means anything; no dict is made for it."""
    cdef list values = []
    cdef list found
    orcalike_traverse(<PyObject*>shared, collect, <void*>values)
    own = getattr(shared, "__dict__", None) if orcalike_made_dict(<PyObject*>shared) else None
    kind = type(shared)
    found = []
    for value in values:
        if value is kind:
            kind = None                 # an object's reference to its class is none of its values
        elif value is own and own is not None:
            found.extend((<dict>own).values())
            own = None
        else:
            found.append(value)
    return found


cdef int collect(PyObject* value, void* values) except -1:
    (<list>values).append(<object>value)
    return 0


cdef bint travels(Codec codec, object value, Py_ssize_t* left, int room) except *:
    """Whether a value looks as if it could travel."""
    cdef type kind = type(value)
    left[0] -= 1
    if left[0] < 0 or is_scalar_type(<void*>kind):
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
        if is_decided_by_type(kind):
            accepted.add(kind)
    for item in elements:
        if not travels(codec, item, left, room - 1):
            return False
        if left[0] < 0:
            return True
    return True


cdef int look_at_attribute(PyObject* value, void* looking) except -1:
    """Look at the value of an attribute, or at the dict of all."""
    cdef Look* look = <Look*>looking
    cdef Py_ssize_t index = 0
    cdef PyObject* key
    cdef PyObject* item
    cdef void* kind = Py_TYPE(value)
    if is_scalar_type(kind):
        return 0
    if <void*>value is look.kind and not look.met:
        look.met = True
        return 0
    # The keys of the object's own dict are interned; a dict that only seems to be it costs more.
    if (kind is <void*>dict and PyDict_Next(value, &index, &key, &item)
            and PyUnicode_CheckExact(key) and PyUnicode_CHECK_INTERNED(key)):
        look_at_entries(look, value, 0, ATTRIBUTES, DEEP)
    return look_at_newest(look, value, kind, DEEP)


cdef int look_at_entries(Look* look, PyObject* value, Py_ssize_t index, int most,
                         int room) except -1:
    """Look at so many entries of a dict, from the place `index` on."""
    cdef PyObject* key
    cdef PyObject* item
    while most > 0 and PyDict_Next(value, &index, &key, &item):
        if not is_scalar_type(Py_TYPE(item)):
            look_at_newest(look, item, Py_TYPE(item), room)
        most -= 1
    return 0


cdef int look_at_newest(Look* look, PyObject* value, void* kind, int room) except -1:
    """Look at what was put last into a value that is no scalar; note it if its type is new."""
    cdef Py_ssize_t count
    if kind is <void*>list:
        count = PyList_GET_SIZE(value)
        if room > 0 and count > 0:
            value = PyList_GET_ITEM(value, count - 1)
            if not is_scalar_type(Py_TYPE(value)):
                look_at_newest(look, value, Py_TYPE(value), room - 1)
    elif kind is <void*>dict:
        # Entries are in the order in which they came; where some are gone, there are more places.
        count = PyDict_GET_SIZE(value)
        if room > 0 and count > 0:
            look_at_entries(look, value, count - 1, NEWEST, room - 1)
    elif kind is <void*>tuple or kind is <void*>set or kind is <void*>frozenset:
        return 0
    else:
        look_at_other(look, <object>value, room)
    return 0


cdef int look_at_other(Look* look, object value, int room) except -1:
    """The same for what is met less often."""
    cdef Audit audit = <Audit>look.audit
    if type(value) is deque:
        if room > 0 and value:
            last = value[len(value) - 1]
            if not is_scalar_type(Py_TYPE(<PyObject*>last)):
                look_at_newest(look, <PyObject*>last, Py_TYPE(<PyObject*>last), room - 1)
    elif type(value) not in accepted:
        if audit.doubtful is None:
            audit.doubtful = []
        audit.doubtful.append(value)
    return 0


cdef inline bint is_scalar_type(void* kind) noexcept:
    return (kind is <void*>int or kind is <void*>str or kind is NONE or kind is <void*>float
            or kind is <void*>bool or kind is <void*>bytes)
