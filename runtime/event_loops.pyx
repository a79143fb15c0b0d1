"""The event loop that runs on a thread, if one does: whether calls may wait there, and whose turn it is.

A loop runs only if asyncio was imported, which takes longer than all of orcalike: a program without
coroutines does without it.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from orcalike.runtime.awaiting import blocking_call, blocking_on_loop

from orcalike.transport.drivers.driver cimport monotonic

cdef extern from "Python.h":
    PyObject* PyImport_GetModuleDict() noexcept     # sys.modules
    Py_ssize_t PyDict_GET_SIZE(PyObject*) noexcept

cdef enum:
    TURN = 64               # outcomes that coroutines find there in a row, before other tasks run,
    TURN_NS = 100000        # and for how long

cdef object get_running_loop = None     # asyncio's, as soon as it is there
cdef object CancelledError = None       # the same
cdef Py_ssize_t modules_searched = 0    # how many there were when asyncio was not among them
cdef object patient_loop = None         # an event loop on whose thread calls may wait
cdef int in_a_row = 0                   # outcomes that coroutines have found there since one has waited
cdef int64_t row_began = 0              # when the first of these calls was sent, and the last one
cdef int64_t last_sent = 0


cdef object running_loop():
    """The event loop that runs on this thread, or None."""
    global get_running_loop, CancelledError, modules_searched
    if get_running_loop is None:
        if PyDict_GET_SIZE(PyImport_GetModuleDict()) == modules_searched:   # asyncio brings dozens with it
            return None
        modules = <dict>PyImport_GetModuleDict()
        if "asyncio" not in modules:
            modules_searched = len(<dict>modules)
            return None
        asyncio = modules["asyncio"]
        try:
            CancelledError = asyncio.CancelledError
            get_running_loop = asyncio._get_running_loop
        except AttributeError:          # another thread is importing it
            return None
    return get_running_loop()


cdef object cancelled_error():
    """asyncio's CancelledError; None if asyncio is not imported, so that nothing can be cancelled."""
    running_loop()                      # which knows it
    return CancelledError


cdef object loop_here():
    """The event loop that runs on this thread; raises RuntimeError if none does."""
    loop = running_loop()
    if loop is None:
        raise RuntimeError("no running event loop")
    return loop


def allow_blocking(loop):
    """Let calls on the thread of that event loop wait: a notebook's cells run there, one at a time."""
    global patient_loop
    patient_loop = loop


cdef bint must_not_block():
    """Whether an event loop runs on this thread that others depend on."""
    loop = running_loop()
    return loop is not None and loop is not patient_loop


cdef int refuse_loop(object operation) except -1:
    """A call that would wait on a running loop's own thread raises instead."""
    if must_not_block():
        raise blocking_call(operation)
    return 0


def refuse_on_loop(title, remedy):
    """The same for what is no call of the group or an object; the error has its `title`, and what to write instead."""
    if must_not_block():
        raise blocking_on_loop(title, remedy)


cdef int none_in_a_row() noexcept:
    """A coroutine waits: others have their turn."""
    global in_a_row
    in_a_row = 0
    return 0


cdef bint is_turn_of_others(int64_t sent_at):
    """Whether the event loop is to run other tasks, where outcomes are here as soon as they are awaited.

    `sent_at`: when the call was sent whose outcome it is. The clock is read only if a while has passed since the one before:
    others may have run, or one of the two may have taken long.
    """
    global in_a_row
    in_a_row += 1
    if not takes_long(sent_at) and in_a_row < TURN or running_loop() is None:
        return False
    in_a_row = 0
    return True


cdef bint takes_long(int64_t sent_at) noexcept:
    """Whether the calls in this row, of which this one is the last, have held the loop up for long, as far as it shows."""
    global row_began, last_sent
    cdef bint is_apart = sent_at - last_sent >= TURN_NS
    last_sent = sent_at
    if in_a_row == 1 or is_apart:
        row_began = sent_at
    return sent_at - row_began >= TURN_NS or is_apart and sent_at > 0 and monotonic() - sent_at >= TURN_NS


cdef int tell(object future) except -1:
    """Have the coroutine that waits for it go on, on its own loop; on a closed one it does not."""
    loop = future.get_loop()
    if loop is running_loop():
        resolve(future)
        return 0
    try:
        loop.call_soon_threadsafe(resolve, future)
    except RuntimeError:
        if not loop.is_closed():
            raise
    return 0


def resolve(future):
    """End a coroutine's waiting; it takes the outcome itself."""
    if not future.done():
        future.set_result(None)
