"""What an application above a stack may ask of the driver that serves it.

The application knows no sockets, clocks or event loops: it puts messages into PACK and `kick`s, it
has a thread `wait` for something that an upcall will complete, and it asks for the time.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport (
    NOWAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
    WAIT_LOCK,
)
from libc.stdint cimport int64_t

from orcalike.transport.layers.base cimport NEVER

cdef extern from "pythread.h" nogil:
    ctypedef enum PyLockStatus:
        PY_LOCK_INTR
    PyLockStatus PyThread_acquire_lock_timed(PyThread_type_lock, long long microseconds, int intr)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec* time)
    enum:
        CLOCK_MONOTONIC
        CLOCK_THREAD_CPUTIME_ID


cdef int64_t monotonic() noexcept nogil:
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return <int64_t>time.tv_sec * 1000000000 + time.tv_nsec


def clock():
    """The clock of real drivers: monotonic, ns."""
    return monotonic()


cdef class Waitable:
    """Something that a thread can wait for: `finished` is set once, then sleepers are woken."""

    def __dealloc__(self):
        if self.sleeper is not NULL:
            PyThread_free_lock(self.sleeper)

    def finish(self):
        """Done: wake whoever waits for it; from any thread."""
        self.wake()

    cdef int wake(self) noexcept:
        """Done: wake whoever sleeps on it."""
        self.finished = True
        if self.sleeper is not NULL:
            PyThread_acquire_lock(self.sleeper, NOWAIT_LOCK)
            PyThread_release_lock(self.sleeper)
        if self.roused is not None:
            self.roused.rouse()
        return 0

    cdef bint sleep(self, int64_t until) except -1:
        """Sleep until it is done or the time has come; other threads go on meanwhile."""
        cdef long long rest
        cdef PyLockStatus status
        if self.sleeper is NULL:
            self.sleeper = PyThread_allocate_lock()
            if self.sleeper is NULL:
                raise MemoryError
            PyThread_acquire_lock(self.sleeper, WAIT_LOCK)
        while not self.finished:
            rest = -1 if until == NEVER else (until - monotonic()) // 1000 + 1
            if until != NEVER and rest <= 0:
                return False
            with nogil:
                status = PyThread_acquire_lock_timed(self.sleeper, rest, 1)
            if status == PY_LOCK_INTR:
                PyErr_CheckSignals()
        PyThread_acquire_lock(self.sleeper, NOWAIT_LOCK)
        PyThread_release_lock(self.sleeper)     # the next sleeper, if there is one
        return True


cdef class Driver:
    """Serves one stack. This one has no I/O: what is waited for must be done already."""

    cdef int kick(self) except -1:
        """PACK has something to cast: see to it, without waiting for anybody."""
        return 0

    cdef int rouse(self) noexcept:
        """Something that a thread waits for while it polls was done by another thread."""
        return 0

    cdef bint wait(self, Waitable waitable, int64_t until) except -1:
        """Cast what is ready, and have this thread wait: True when it is done, False at `until`."""
        self.kick()
        return waitable.finished

    cdef int64_t clock(self) noexcept:
        """The time, ns, of the clock that the stack is driven with."""
        return monotonic()

    cdef int64_t worked(self) noexcept:
        """How long this thread has had a processor, ns; the clock where nobody can say."""
        cdef timespec time
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return <int64_t>time.tv_sec * 1000000000 + time.tv_nsec

    def call(self, function, *args):
        """Run one of the stack's inputs: `function(*args, now)`, and send what comes of it."""
        function(*args, self.clock())
