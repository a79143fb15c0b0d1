# cython: embedsignature=True, embedsignature.format=clinic
"""Operations: the descriptors that stand in a shared class (D11, D12).

A call of an operation on an object finds the descriptor, which is called with the object first and
without a bound method in between. A read of a free object is then a test, two stores, and the call
of the function. On an object that is not shared, and from within the object's own operations, it
is the call of the function alone.
"""

from functools import partial

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t

from orcalike.runtime.arguments import arity, order_of, positional
from orcalike.runtime.errors import GuardFalse, WindowFull
from orcalike.runtime.guards import refuse_guard
from orcalike.runtime.raising import fresh, forget, own
from orcalike.runtime.with_room import coroutine_with_room
from orcalike.transport.degree import MEMBERS_MAX, degree_of

from orcalike.runtime.invocation cimport UNDER_WAY, Invocation, nanoseconds
from orcalike.runtime.invocation_coroutine cimport InvocationCoroutine, coroutine_of
from orcalike.runtime.replica cimport (
    READ,
    Method,
    Replica,
    call_method,
    find,
    shared_for_this_thread,
    vectorcallfunc,
)
from orcalike.transport.layers.base cimport NEVER

cdef extern from "_vectorcall.h":
    ctypedef PyObject* (*orcalike_fastcall)(PyObject*, PyObject* const*, Py_ssize_t,
                                            PyObject*) noexcept
    ctypedef struct PyTypeObject:
        pass
    ctypedef struct PyMethodDef:
        pass
    void orcalike_enable_vectorcall(PyTypeObject*, Py_ssize_t, int)
    int orcalike_add_fastcall(PyTypeObject*, PyMethodDef*, const char*,
                              orcalike_fastcall, const char*) except -1

cdef extern from "Python.h":
    ctypedef struct PyTupleObject:
        PyObject* ob_item[1]
    vectorcallfunc PyVectorcall_Function(PyObject*) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject*) noexcept
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t) noexcept
    void PyErr_Fetch(PyObject**, PyObject**, PyObject**) noexcept
    void PyErr_Restore(PyObject*, PyObject*, PyObject*) noexcept
    void Py_XDECREF(PyObject*) noexcept
    PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*) noexcept
    int PyObject_IsTrue(PyObject*) noexcept


cdef extern from *:
    """
    #define orcalike_reraise() (-1)
    """
    int reraise "orcalike_reraise"() except -1


ctypedef PyObject* (*raising)() noexcept        # `raise_own`, as a function of bare pointers

# A call whose result Cython counts, and whose NULL it takes for an exception.
ctypedef object (*objectcall)(PyObject*, PyObject* const*, size_t, PyObject*)


ctypedef PyObject* (*releasing)(Replica) noexcept


@cython.final
cdef class Operation:
    """A method declared `@read` or `@write`: the descriptor that stands in the class."""

    def __init__(self, function, str kind, bint popup=False, bint undo=False, resilience=None):
        self.vectorcall, self.slow, self.ended = call_method, <vectorcallfunc>call_slow, end_read
        self.function = function
        self.code = <PyObject*>function
        self.call = PyVectorcall_Function(<PyObject*>function)
        if self.call is NULL:
            raise TypeError(f"{function!r} is not a plain function")
        self.traits = ((READ if kind == "read" else 0) | (POPUP if popup else 0)
                       | (UNDO if undo else 0))
        self.required, self.accepts, self.keywords = arity(function)
        self.name = function.__name__
        self.resilience = resilience
        self.degree = -1 if resilience is None else degree_of(resilience)
        self.index = -1

    def when(self, guard=None, /):
        """Declare the guard, what to wait for; raises DeclarationError for one that cannot be."""
        if guard is None:
            return self.when
        refuse_guard(self, guard, self.info is not None)
        self.guard = guard
        self.traits |= GUARDED
        return guard

    def __get__(self, obj, owner):
        cdef BoundOperation bound
        if obj is None:
            return self
        bound = BoundOperation.__new__(BoundOperation)
        bound.vectorcall = <vectorcallfunc>call_bound
        bound.object = obj
        bound.operation = self
        bound.timeout = NEVER
        return bound

    cdef Py_ssize_t put_in_place(self, PyObject* const* args, Py_ssize_t count, PyObject* names,
                                 PyObject** placed) except -2:
        """Put named arguments beside the others, as if they were not named: how many there are then. -1 if that is not enough."""
        cdef Py_ssize_t i, total = count + PyTuple_GET_SIZE(names)
        cdef list known
        cdef bytes order
        if total > ARGS_MAX:
            return -1
        if self.orders is None:
            self.orders = {}
        known = self.orders.get(<object>names)
        if known is None:
            known = [None] * (ARGS_MAX + 1)
            if len(self.orders) < NAMES_MAX:
                self.orders[<object>names] = known
        order = known[count]
        if order is None:
            order = known[count] = order_of(self.function, count, <object>names)
        if len(order) != total or not self.fits(total):
            return -1                   # if they do not fit at all, `positional` says why
        for i in range(total):
            placed[i] = args[<unsigned char>order[i]]
        return total

    def as_popup(self):
        """The same operation, in pop-up threads for a while."""
        cdef Operation other = Operation(self.function, self.kind, True, self.undo,
                                         self.resilience)
        other.guard = self.guard
        other.traits |= self.traits
        other.degree = self.degree
        other.index = self.index
        other.info = self.info
        other.inline = self
        return other

    def look_at_invariants(self):
        """Its class has invariants, which are looked at after each run."""
        self.traits |= LOOKS

    @property
    def kind(self):
        """"read" or "write"."""
        return "read" if self.traits & READ else "write"

    @property
    def popup(self):
        """Whether each replica runs it in a thread of its own."""
        return bool(self.traits & POPUP)

    @property
    def undo(self):
        """Whether an exception leaves the object as it was."""
        return bool(self.traits & UNDO)

    @property
    def title(self):
        """`Class.operation`, for people."""
        return f"{self.info.cls.__name__}.{self.name}" if self.info else self.name

    @property
    def __name__(self):
        return self.name

    @property
    def __qualname__(self):
        return self.function.__qualname__

    @property
    def __module__(self):
        return self.function.__module__

    @property
    def __doc__(self):
        return self.function.__doc__

    @property
    def __wrapped__(self):
        return self.function

    @property
    def __annotations__(self):
        return self.function.__annotations__

    @property
    def __isabstractmethod__(self):
        """Whether a class is abstract by it: `@abstractmethod` may stand above or below."""
        return getattr(self.function, "__isabstractmethod__", False)

    @__isabstractmethod__.setter
    def __isabstractmethod__(self, value):
        self.function.__isabstractmethod__ = value

    def __reduce__(self):
        return self.__qualname__ if self.info is None else (getattr, (self.info.cls, self.name))

    def __repr__(self):
        return f"<{self.kind} operation {self.function.__qualname__}>"


cdef PyObject* end_read(PyObject* replica, PyObject* result) noexcept:
    """A read is over that failed, or for whose end something waits."""
    if (<Replica>replica).flags:
        result = release(<Replica>replica, result)
    return (<raising>raise_own)() if result is NULL else result


cdef PyObject* release(Replica replica, PyObject* result) noexcept:
    """A read is over, and something waits for it: its outcome is kept meanwhile, an error too."""
    cdef PyObject* kind = NULL
    cdef PyObject* value = NULL
    cdef PyObject* traceback = NULL
    PyErr_Fetch(&kind, &value, &traceback)
    if (<releasing>release_object)(replica) is NULL:
        Py_XDECREF(result)
        Py_XDECREF(kind)
        Py_XDECREF(value)
        Py_XDECREF(traceback)
        return NULL
    PyErr_Restore(kind, value, traceback)
    return result


cdef object release_object(Replica replica):
    replica.invoker.release(replica)
    return True                         # a constant: nothing is to be counted


cdef object raise_own():
    """Raise an exception that a read has raised: the caller's own copy, if the object keeps it."""
    error = caught()
    if not isinstance(error, Exception):
        raise error                     # a signal's
    copy = fresh(error)
    forget(error)
    raise copy


cdef int test_guard(Operation operation, Replica replica, PyObject* const* args, Py_ssize_t count) noexcept:
    """Whether its guard holds for these arguments at an object whose mutex this thread has; -1 if that raises."""
    cdef PyObject* found
    cdef int holds = -1
    replica.rng = None                  # a later joiner has tried the guard less often
    found = PyObject_Vectorcall(<PyObject*>operation.guard, args, count, NULL)
    if found is not NULL:
        holds = PyObject_IsTrue(found)
        Py_DECREF(<object>found)
    return holds


cdef object caught():
    """The exception that is set."""
    try:
        reraise()
    except BaseException as error:
        return error


cdef object call_operation(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names):
    """`operation.__call__(object, ...)`."""
    return (<objectcall>PyObject_Vectorcall)(self, args, count, names)


cdef object call_slow(PyObject* self, PyObject* const* args, size_t flags, PyObject* names):
    if PyVectorcall_NARGS(flags) < 1:
        raise TypeError(f"{(<Operation>self).name} needs an object to work on")
    return invoke(<Operation>self, args, PyVectorcall_NARGS(flags), names, NEVER, 0)


cdef object invoke(Operation operation, PyObject* const* args, Py_ssize_t count, PyObject* names,
                   int64_t timeout, unsigned int stable):
    """Call an operation on the object `args[0]`, and wait for the outcome."""
    cdef PyObject* found = shared_for_this_thread(args[0])
    cdef Replica replica
    if found is NULL:
        if operation.guard is not None:
            check_guard(operation, args, count, names)
        return call_function(operation, args, count, names)
    replica = <Replica>found
    if operation.traits & READ:
        return replica.invoker.read(replica, operation, args, count, names, timeout)
    if operation.info is not replica.info:
        operation = replica.info.inherited(operation, replica.name)
    return replica.invoker.invoke(replica, operation, args + 1, count - 1, names, timeout, stable)


cdef object call_function(Operation operation, PyObject* const* args, Py_ssize_t count,
                          PyObject* names):
    """A plain call of an operation; if it has `undo`, one that raises leaves its object as it was."""
    if not operation.traits & UNDO:
        return (<objectcall>operation.call)(<PyObject*>operation.function, args, count, names)
    saved = saved_states([<object>args[0]])
    try:
        return (<objectcall>operation.call)(<PyObject*>operation.function, args, count, names)
    except Exception:
        saved.put_back()
        raise


cdef object saved_states(list objects):
    """The states of the objects among these, to be put back."""
    from orcalike.runtime.undo import SavedStates   # not at the top: it needs msgpack, which takes long to import

    return SavedStates(objects)


cdef check_guard(Operation operation, PyObject* const* args, Py_ssize_t count, PyObject* names):
    """Raise GuardFalse if a guard does not hold, and no other call could make it hold meanwhile."""
    cdef Py_ssize_t i
    if names is not NULL or not operation.fits(count - 1):
        named = () if names is NULL else <tuple>names
        given = [<object>args[i] for i in range(1, count + len(named))]
        positional(operation, given[:count - 1], dict(zip(named, given[count - 1:])))   # it names the operation
    holds = (<objectcall>PyObject_Vectorcall)(<PyObject*>operation.guard, args, count, names)
    if not holds:
        raise GuardFalse(f"the guard of {operation.title} does not hold, and the object is not "
                         "shared, or this is inside an operation: no other call could make it hold while "
                         "this waits")


@cython.final
@cython.freelist(8)
cdef class BoundOperation:
    """An operation of one object: call it, await its `aio`, or do not wait with `nowait`."""

    cdef InvocationCoroutine limited(self, Invocation invocation):
        """What to await for an outcome within the time limit."""
        if self.timeout == NEVER or invocation.outcome != UNDER_WAY:
            return coroutine_of(invocation, None)
        return coroutine_of(invocation, self.timeout / 1e9)

    def options(self, *, timeout=None, stable=None):
        """The same operation with a time limit, and done when it is k-stable.

        `timeout`: seconds, or a text such as "500ms".

        `stable=k`: when k members have applied it. The stack must have the layer STABLE for it
        (StackError). Where the view has fewer than k members the call waits, or raises
        NotEnoughMembers, as the group's `blocked` says. None: when it has run here.
        """
        cdef BoundOperation bound = BoundOperation.__new__(BoundOperation)
        if stable is not None and self.operation.traits & READ:
            raise TypeError(f"{self.operation.title} is a read: no other member applies it")
        bound.vectorcall = <vectorcallfunc>call_bound
        bound.object = self.object
        bound.operation = self.operation
        bound.timeout = nanoseconds(timeout)
        bound.stable = members_of(stable)
        return bound

    @property
    def __name__(self):
        return self.operation.name

    @property
    def __qualname__(self):
        return self.operation.__qualname__

    @property
    def __module__(self):
        return self.operation.__module__

    @property
    def __doc__(self):
        return self.operation.__doc__

    @property
    def __self__(self):
        """The object."""
        return self.object

    @property
    def __wrapped__(self):
        """The method as it was written, bound to the object: its signature is the operation's."""
        return self.operation.function.__get__(self.object)

    @property
    def __annotations__(self):
        return self.operation.function.__annotations__

    def __eq__(self, other):
        """As methods are: the same operation of the same object, with the same options."""
        cdef BoundOperation that
        if not isinstance(other, BoundOperation):
            return NotImplemented
        that = <BoundOperation>other
        return (self.object is that.object and self.operation is that.operation
                and self.timeout == that.timeout and self.stable == that.stable)

    def __hash__(self):
        return hash((id(self.object), id(self.operation)))

    def __reduce__(self):
        return getattr, (self.object, self.operation.name)

    def __repr__(self):
        return f"<{self.operation.title} of {self.object!r}>"


cdef unsigned int members_of(object stable) except? 0xFFFFFFFF:
    """What `options(stable=...)` asks for: 0 for None."""
    if stable is None:
        return 0
    if not isinstance(stable, int) or isinstance(stable, bool):
        raise TypeError(f"stable={stable!r}: it is a number of members")
    if not 1 <= stable <= MEMBERS_MAX:
        raise ValueError(f"stable={stable}: from 1 to {MEMBERS_MAX} members can have applied it")
    return stable


def post(BoundOperation bound, *args):
    """Have an operation called that undoes another call of this process, at once, though this may be full.

    Nothing waits for it, and it is before whatever this member calls next. Of a group that is lost nothing is undone.
    """
    cdef Replica replica = find(<PyObject*>bound.object)
    if replica is None:
        bound(*args)
    else:
        replica.invoker.post_call(replica, bound.operation, args)


def group_of(BoundOperation bound):
    """The runtime that carries out the invocations of a bound operation."""
    return find(<PyObject*>bound.object).invoker


cdef object call_bound(PyObject* self, PyObject* const* args, size_t flags, PyObject* names):
    """Wait for the outcome: the result, or what the operation raised."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(flags)
    cdef Py_ssize_t total = count + (PyTuple_GET_SIZE(names) if names is not NULL else 0)
    cdef Py_ssize_t i
    cdef PyObject* values[1 + ARGS_MAX]
    cdef BoundOperation bound = <BoundOperation>self
    if total > ARGS_MAX or bound.timeout != NEVER or bound.stable:
        given = [<object>args[i] for i in range(total)]
        return call_array(bound, tuple(given[:count]), dict(zip(<tuple>names, given[count:])) if names is not NULL else {})
    values[0] = <PyObject*>bound.object
    for i in range(total):
        values[i + 1] = args[i]
    return (<objectcall>call_method)(<PyObject*>bound.operation, values, 1 + count, names)


cdef object call_bound_plainly(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names):
    """`object.operation.__call__(...)`."""
    return call_bound(self, args, count, names)


cdef object call_array(BoundOperation bound, tuple args, dict kwargs):
    """The same with a time limit, or of many arguments."""
    placed, named = (args, {}) if not kwargs else positional(bound.operation, args, kwargs)
    values = (bound.object, *placed, *named.values())
    names = tuple(named) or None
    return invoke(bound.operation, array_of(values), 1 + len(placed), name_array(names),
                  bound.timeout, bound.stable)


cdef inline PyObject* const* array_of(tuple values) noexcept:
    return &(<PyTupleObject*>values).ob_item[0]


cdef inline PyObject* name_array(object names) noexcept:
    return NULL if names is None else <PyObject*>names


cdef object nowait(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names):
    """`object.operation.nowait(...)`."""
    return start(self, args, count, names, False)


cdef object aio(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names):
    """`object.operation.aio(...)`."""
    cdef Py_ssize_t i
    try:
        return (<BoundOperation>self).limited(start(self, args, count, names, True))
    except WindowFull:
        named = () if names is NULL else <tuple>names
        given = [<object>args[i] for i in range(count + len(named))]
        bound = <BoundOperation>self
        return coroutine_with_room(group_of(bound), bound.operation, None if bound.timeout == NEVER else bound.timeout / 1e9,
                                partial(bound.nowait, *given[:count], **dict(zip(named, given[count:]))))


cdef object start(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names, bint awaited):
    """Send a call; `awaited`: a coroutine is about to wait for it."""
    cdef PyObject* found = shared_for_this_thread(<PyObject*>(<BoundOperation>self).object)
    cdef Operation operation
    cdef Replica replica
    if found is NULL or (<BoundOperation>self).operation.traits & READ:
        return start_here(<BoundOperation>self, found, args, count, names)
    replica, operation = <Replica>found, (<BoundOperation>self).operation
    if operation.info is not replica.info:
        operation = replica.info.inherited(operation, replica.name)
    return replica.invoker.invoke_nowait(replica, operation, args, count, names, (<BoundOperation>self).stable, awaited)


cdef object start_here(BoundOperation bound, PyObject* found, PyObject* const* args, Py_ssize_t count,
                       PyObject* names):
    """The same of what runs in this process alone: a read, or the plain call of an operation."""
    cdef Py_ssize_t total = count + (PyTuple_GET_SIZE(names) if names is not NULL else 0)
    cdef Py_ssize_t i
    cdef Replica replica = None if found is NULL else <Replica>found
    values = (bound.object, *[<object>args[i] for i in range(total)])
    if replica is None:
        return done_at_once(bound.operation, array_of(values), 1 + count, names)
    return replica.invoker.read_nowait(replica, bound.operation, array_of(values), 1 + count, names)


cdef object done_at_once(Operation operation, PyObject* const* args, Py_ssize_t count,
                         PyObject* names):
    """The invocation of an operation that ran as a plain call."""
    cdef Invocation invocation = Invocation.__new__(Invocation)
    invocation.operation = operation
    try:
        if operation.guard is not None:
            check_guard(operation, args, count, names)
        invocation.succeed(call_function(operation, args, count, names))
    except Exception as error:
        invocation.fail(own(error))
    return invocation


def _enable():
    """Make the classes' instances callable without a tuple; once, at import."""
    cdef Operation probe = Operation.__new__(Operation)
    cdef BoundOperation bound = BoundOperation.__new__(BoundOperation)
    orcalike_enable_vectorcall(<PyTypeObject*>Operation,
                               <char*>&probe.vectorcall - <char*><PyObject*>probe, True)
    orcalike_add_fastcall(<PyTypeObject*>Operation, &call_def, "__call__", <orcalike_fastcall>call_operation,
                          "Call it with an object to work on.")   # for those that look whether there is such a method
    orcalike_enable_vectorcall(<PyTypeObject*>BoundOperation,
                               <char*>&bound.vectorcall - <char*><PyObject*>bound, False)
    orcalike_add_fastcall(<PyTypeObject*>BoundOperation, &bound_call_def, "__call__",
                          <orcalike_fastcall>call_bound_plainly,
                          "__call__($self, /, *args, **kwargs)\n--\n\n"
                          "Wait for the outcome: the result, or what the operation raised.")
    orcalike_add_fastcall(<PyTypeObject*>BoundOperation, &nowait_def, "nowait",
                          <orcalike_fastcall>nowait,
                          "nowait($self, /, *args, **kwargs)\n--\n\nDo not wait: returns the invocation.")
    orcalike_add_fastcall(<PyTypeObject*>BoundOperation, &aio_def, "aio", <orcalike_fastcall>aio,
                          "aio($self, /, *args, **kwargs)\n--\n\n"
                          "The same as a coroutine; the call is sent at once, or when there is room for it.")


cdef PyMethodDef call_def, bound_call_def, nowait_def, aio_def
_enable()
