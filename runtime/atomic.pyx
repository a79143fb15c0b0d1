# cython: embedsignature=True, embedsignature.format=clinic
"""Atomic functions: what `@atomic` makes of a function of a module."""

from collections import deque
from functools import partial

from orcalike.runtime.arguments import arity, positional
from orcalike.runtime.durations import seconds_of
from orcalike.runtime.errors import GuardFalse, WindowFull
from orcalike.runtime.guards import refuse_guard
from orcalike.runtime.raising import own
from orcalike.runtime.with_room import coroutine_with_room
from orcalike.transport.degree import degree_of

from cpython.object cimport PyObject

from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.invocation_coroutine cimport coroutine_of
from orcalike.runtime.operation cimport members_of, saved_states
from orcalike.runtime.replica cimport Replica, find

cdef enum:
    SEARCHED_MAX = 4        # levels of containers among the arguments that are searched for shared objects


cdef class Atomic:
    """A function declared `@atomic`: one message for operations on several objects."""

    kind = "atomic"

    def __init__(self, function, bint undo=False, resilience=None):
        self.function = function
        self.undo = undo
        self.resilience = resilience
        self.degree = -1 if resilience is None else degree_of(resilience)
        self.name = function.__name__
        self.required, self.accepts, self.keywords = arity(function, method=False)

    def when(self, guard=None, /):
        """Declare the guard, with the function's own parameters; raises DeclarationError as an operation's does."""
        if guard is None:
            return self.when
        refuse_guard(self, guard, False)
        if self.guard_declared is not None:
            self.guard_declared(guard)
        self.guard = guard
        return guard

    def __call__(self, *args, **kwargs):
        """Wait for the outcome. The objects may all be unshared: then it is a plain call."""
        return self.call(args, kwargs, None, 0)

    def call(self, args, kwargs, timeout, stable):
        """The call, with a time limit in seconds, done when so many members have applied it."""
        invoker, placed, named = self.place(args, kwargs)
        if invoker is None:
            return self.run_plain(placed, named)
        return invoker.call_atomic(self, placed, named, timeout, stable)

    def nowait(self, *args, **kwargs):
        """Do not wait: returns the invocation."""
        return self.start(args, kwargs, 0, False)

    def start(self, args, kwargs, stable, awaited):
        """The invocation, done when so many members have applied it; `awaited`: a coroutine is about to wait for it."""
        cdef Invocation invocation
        invoker, placed, named = self.place(args, kwargs)
        if invoker is not None:
            return invoker.invoke_atomic(self, placed, named, stable, awaited)
        invocation = Invocation.__new__(Invocation)
        invocation.operation = self
        try:
            invocation.succeed(self.run_plain(placed, named))
        except Exception as error:
            invocation.fail(own(error))
        return invocation

    def aio(self, *args, **kwargs):
        """The same as a coroutine; the call is sent at once, or when there is room for it."""
        return start_in_coroutine(self, args, kwargs, None, 0)

    def options(self, *, timeout=None, stable=None):
        """The same function with a time limit, in seconds or as a text, and done when it is k-stable."""
        return BoundAtomic(self, seconds_of(timeout), members_of(stable))

    cdef tuple place(self, tuple args, dict named):
        """(what carries it out or None, positional arguments, keyword-only arguments)."""
        cdef object invoker = None, found
        if named or self.keywords or not self.required <= len(args) or 0 <= self.accepts < len(args):
            args, named = positional(self, args, named)
        values = (*args, *named.values()) if named else args
        for value in values:
            found = invoker_of(value)
            if found is not None and found is not invoker:
                if invoker is not None:
                    raise ValueError(f"{self.name} was given objects of different groups")
                invoker = found
        if invoker is None and any([holds_shared(value, SEARCHED_MAX) for value in values]):
            raise ValueError(f"{self.name} was given shared objects inside of an argument: pass each of them as an "
                             f"argument of its own, as in {self.name}(*objects)")
        return invoker, args, named

    def run_plain(self, placed, named):
        """Run on objects that are not shared."""
        if self.guard is not None and not self.guard(*placed, **named):
            raise GuardFalse(f"the guard of {self.name} does not hold, and no object is shared")
        saved = saved_states([*placed, *named.values()]) if self.undo else None
        try:
            return self.function(*placed, **named)
        except Exception:
            if saved is not None:
                saved.put_back()
            raise

    @property
    def title(self):
        """Its name, for people."""
        return self.name

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

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<atomic function {self.__qualname__}>"


cdef bint holds_shared(object value, int depth) except -1:
    """Whether a container holds a shared object, so many levels deep."""
    if isinstance(value, dict):
        value = (*value, *value.values())
    elif not isinstance(value, (list, tuple, set, frozenset, deque)):
        return False
    return any(invoker_of(each) is not None or depth > 1 and holds_shared(each, depth - 1) for each in value)


cdef object start_in_coroutine(Atomic atomic, tuple args, dict kwargs, object seconds, object stable):
    """What to await for the outcome of an atomic function, within a time limit."""
    try:
        return coroutine_of(atomic.start(args, kwargs, stable, seconds is None), seconds)
    except WindowFull:
        return coroutine_with_room(atomic.place(args, kwargs)[0], atomic, seconds,
                                   partial(atomic.start, args, kwargs, stable, seconds is None))


class BoundAtomic:
    """An atomic function with a time limit, and a number of members that are to apply it."""

    def __init__(self, atomic, timeout, stable):
        self.atomic = atomic
        self.timeout = timeout
        self.stable = stable

    def __call__(self, *args, **kwargs):
        """Wait for the outcome, for so long."""
        return self.atomic.call(args, kwargs, self.timeout, self.stable)

    def nowait(self, *args, **kwargs):
        """Do not wait; the limit is the caller's business then."""
        return self.atomic.start(args, kwargs, self.stable, False)

    def aio(self, *args, **kwargs):
        """The same as a coroutine; the call is sent at once, or when there is room for it."""
        return start_in_coroutine(self.atomic, args, kwargs, self.timeout, self.stable)


cdef object invoker_of(object value):
    cdef Replica replica = find(<PyObject*>value)
    return None if replica is None else replica.invoker
