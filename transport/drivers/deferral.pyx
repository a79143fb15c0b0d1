"""Signal handlers wait while the main thread is inside the core.

Python runs a signal's handler on the main thread, between any two instructions of any Python code,
and wherever C asks for it. In the middle of the core (a stack, a dispatch, an operation) a handler
that raises would end at this member alone what all members do, and one that calls an object would
find the core half-way. So what Python has as handlers, while a member is open, are `Deferring`
objects (`orcalike.session.deferred_signals` sees to that): in the core they only note the signal.

A thread is in the core between `hold` and `drop`, which nest. The program's handlers run

- as the outermost `drop` returns;
- where a call waits (`surface`): there the thread holds no lock and has no role, so a handler may
  raise, which ends the call, or call anything.

One case is left: the main thread runs an operation that does not end. There Ctrl-C gets its handler
all the same after `INSIST` s: what it raises ends the operation, which is a fault of this process,
and so of this member alone.

`drop_later` is the `drop` of a path on which an exception is on its way already: the handlers run as
soon as Python can.

None of this takes a lock or runs Python code: it is all between two instructions for Python.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

import _thread
import functools
import os
import threading
import time
from _signal import SIGINT
from _signal import signal as set_in_python

from orcalike.transport.drivers.threads cimport this_thread

cdef extern from *:
    """
    #include <pthread.h>
    #include <signal.h>

    static __thread int orcalike_depth;

    /* Synchronous signals are never blocked: faulthandler must see them. */
    static void orcalike_block(void)
    {
        static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
        sigset_t set;
        sigfillset(&set);
        for (unsigned i = 0; i < sizeof kept / sizeof *kept; i++)
            sigdelset(&set, kept[i]);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    }
    """
    int depth "orcalike_depth"
    void orcalike_block() noexcept nogil

cdef extern from "<signal.h>":
    ctypedef struct Action "struct sigaction":
        pass
    int sigaction(int number, const Action* new, Action* old)

cdef extern from "Python.h":
    int Py_AddPendingCall(int (*function)(void*) noexcept, void* argument) noexcept
    void* PyEval_GetFrame() noexcept


INSIST = 1.0
"""Seconds that a handler waits for an operation on the main thread to end."""
start_thread = _thread.start_new_thread

cdef uint64_t insists = 0           # likewise: it has waited for an operation for long enough
cdef uint64_t deferrals = 0         # how often Ctrl-C had to wait for an operation
cdef uint64_t pending = 0           # a bit for each signal whose handler waits, from signal 1 on
cdef list put_off = [None] * 65     # their handlers, by number
cdef unsigned long main_thread = threading.main_thread().ident
cdef Asking is_busy = NULL


cdef void hold() noexcept:
    """This thread enters the core."""
    global depth
    depth += 1


cdef bint is_held() noexcept:
    """Whether this thread is in the core."""
    return depth > 0


cdef int drop() except -1:
    """This thread leaves the core: if it is out, what waited runs, and may raise."""
    global depth
    depth -= 1
    if pending and depth == 0:
        deliver()
    return 0


cdef bint drop_later() noexcept:
    """The same where nothing may be raised: what waited runs as soon as Python can.

    Says whether there is something: `deliver` runs it at once.
    """
    global depth
    depth -= 1
    if pending and depth == 0:
        schedule()
        return True
    return False


cdef bint on_main() noexcept:
    return this_thread() == main_thread


cdef bint interrupted() except -1:
    """Whether this thread, inside the core, is the main one and a handler waits for it."""
    if not on_main():
        return False
    PyErr_CheckSignals()
    return pending != 0


cdef int surface() except -1:
    """Run the deferred handlers here: the caller is inside the core only to wait, and holds nothing."""
    global depth
    cdef int before = depth
    depth = 0
    try:
        deliver()
    finally:
        depth = before
    return 0


cdef int deliver() except -1:
    """Run the deferred handlers, one after the other; what one handler raises is raised, the others run later."""
    global pending
    cdef uint64_t these
    cdef int number
    cdef PyObject* frame
    if not on_main():
        return 0
    while pending:
        these, pending = pending, 0     # no handler runs in the middle of another of these
        while these:
            number = 1
            while not these >> (number - 1) & 1:
                number += 1
            these &= these - 1
            frame = <PyObject*>PyEval_GetFrame()
            try:
                put_off[number](number, None if frame is NULL else <object>frame)
            except BaseException:
                pending |= these
                if pending:
                    schedule()
                raise
    return 0


cdef void schedule() noexcept:
    if on_main():
        # If the queue is full, the next `drop` does it.
        Py_AddPendingCall(<int (*)(void*) noexcept>deliver_scheduled, NULL)


cdef int deliver_scheduled(void* argument) except -1:
    if depth == 0 and (is_busy is NULL or not is_busy(False)):
        deliver()                       # else the thread that leaves the core does
    return 0


cdef void ask_also(Asking function) noexcept:
    """`function` says whether the main thread, outside the core too, runs what no handler may end; Ctrl-C waits for that from
    now on, if it `insists`."""
    global is_busy
    is_busy = function


cdef void block_signals() noexcept nogil:
    """This thread is orcalike's own: the kernel gives signals to the program's threads."""
    orcalike_block()


class OwnThread(threading.Thread):
    """A thread of orcalike's own, a daemon, which the kernel gives no signals to."""

    def __init__(self, function, name):
        super().__init__(name=name, daemon=True)
        self.function = function

    def run(self):
        """What the thread does."""
        block_signals()
        self.function()


def held(function):
    """A function that is inside the core for as long as it runs, but where it waits."""
    @cython.binding(True)
    def call(*args, **kwargs):
        hold()
        try:
            result = function(*args, **kwargs)
        except BaseException:
            drop_later()
            raise
        drop()
        return result
    return functools.update_wrapper(call, function)


def held_or_undone(undo):
    """The same, for a function whose result must not get lost.

    If a handler raises as the function returns, `undo(first, result)` runs before that goes on;
    `first` is the call's first argument.
    """
    def wrap(function):
        @cython.binding(True)
        def call(*args, **kwargs):
            hold()
            try:
                result = function(*args, **kwargs)
            except BaseException:
                drop_later()
                raise
            try:
                drop()
            except BaseException:
                hold()                  # before another handler can come
                try:
                    undo(args[0], result)
                finally:
                    drop_later()
                raise
            return result
        return functools.update_wrapper(call, function)
    return wrap


cdef class Deferring:
    """What Python has as a signal's handler, for the program's own: it waits for the core."""
    cdef readonly object handler

    def __init__(self, handler):
        self.handler = handler

    def __call__(self, int number, frame):
        global pending, insists, deferrals
        cdef uint64_t bit = <uint64_t>1 << (number - 1)
        cdef int runs = RUNS_NOTHING if is_busy is NULL else is_busy(False)
        cdef bint insisted = insists & bit
        insists &= ~bit
        if insisted and not pending & bit:  # the operation has ended since, and it has run
            return None
        if insisted and runs == RUNS_STILL:
            pending &= ~bit
            return self.handler(number, frame)
        if depth or runs:
            put_off[number] = self.handler
            if number == SIGINT and (insisted or runs and not pending & bit):   # another one runs by now, or the first
                deferrals += 1
                if runs:
                    is_busy(True)
                start_thread(insist, (number, deferrals))
            pending |= bit
            return None
        return self.handler(number, frame)

    def __repr__(self):
        return f"<{self.handler!r}, which waits for orcalike>"


def insist(number, which):
    """Let a handler that waits run in the middle of an operation, if that has not ended by then.

    It is put off anew if another one runs: on a busy machine many that are short may take long together.
    """
    global insists
    cdef uint64_t bit = <uint64_t>1 << (number - 1)
    time.sleep(INSIST)
    if pending & bit and deferrals == which:
        insists |= bit
        _thread.interrupt_main(number)


def set_handler(int number, handler):
    """Change what Python calls; what else receives the signal, as faulthandler does, stays."""
    cdef Action action
    if sigaction(number, NULL, &action) == 0:
        set_in_python(number, handler)
        sigaction(number, &action, NULL)


cdef list asked = []


def call_on_main(function):
    """Have the main thread call `function()` soon."""
    asked.append(function)
    Py_AddPendingCall(call_asked, NULL)


cdef int call_asked(void* argument) noexcept:
    while asked:
        asked.pop(0)()
    return 0


def _forked():
    """The thread that forked is the child's main thread."""
    global main_thread
    main_thread = threading.get_ident()


os.register_at_fork(after_in_child=_forked)
