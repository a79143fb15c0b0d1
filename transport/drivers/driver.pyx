"""What an application above a stack may ask of the driver that serves it.

The application knows no sockets, clocks or event loops: it puts messages into PACK and `kick`s, it
has a thread `wait` for something that an upcall will complete, and it asks for the time.
"""

import gc

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

from orcalike.transport.drivers.deferral cimport interrupted, surface
from orcalike.transport.layers.base cimport NEVER, Core

cdef extern from "pythread.h" nogil:
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long microseconds, int intr)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec* time)
    int clock_getres(int clock, timespec* resolution)
    enum:
        CLOCK_MONOTONIC
        CLOCK_MONOTONIC_COARSE
        CLOCK_PROCESS_CPUTIME_ID
        CLOCK_THREAD_CPUTIME_ID

cdef extern from "<sys/resource.h>" nogil:
    struct rusage:
        long ru_nivcsw
    int getrusage(int of, rusage* usage)

cdef extern from *:
    """
    #include <sys/resource.h>
    #ifndef RUSAGE_THREAD
    #define RUSAGE_THREAD 1             /* declared for _GNU_SOURCE alone */
    #endif
    static __thread long long orcalike_uncounted, orcalike_collects_since;
    static long long *orcalike_uncounted_here(void) { return &orcalike_uncounted; }
    static long long *orcalike_collects_since_here(void) { return &orcalike_collects_since; }
    """
    enum:
        RUSAGE_THREAD
    long long* uncounted_here "orcalike_uncounted_here"() noexcept nogil
    long long* collects_since_here "orcalike_collects_since_here"() noexcept nogil


cdef inline int64_t nanoseconds(timespec* time) noexcept nogil:
    return <int64_t>time.tv_sec * 1000000000 + time.tv_nsec


cdef int64_t monotonic() noexcept nogil:
    return read_clock(CLOCK_MONOTONIC)


cdef int64_t read_clock(int clock) noexcept nogil:
    """One of the system's clocks, ns."""
    cdef timespec time
    clock_gettime(clock, &time)
    return nanoseconds(&time)


cdef int64_t tick() noexcept nogil:
    """By how much the kernel's last note of the time may be behind, ns."""
    cdef timespec resolution
    clock_getres(CLOCK_MONOTONIC_COARSE, &resolution)
    return nanoseconds(&resolution)


cdef int64_t TICK = tick()


def on_collection(phase, info):
    """One of `gc.callbacks`: keep account of this thread's processor time in collections.

    Whatever allocates when the collector's turn has come runs it, and is not to blame for it.
    """
    if phase == "start":
        collects_since_here()[0] = read_clock(CLOCK_THREAD_CPUTIME_ID)
    elif collects_since_here()[0]:
        uncounted_here()[0] += read_clock(CLOCK_THREAD_CPUTIME_ID) - collects_since_here()[0]
        collects_since_here()[0] = 0


def watch_collections():
    """Keep that account from now on, in all threads."""
    if on_collection not in gc.callbacks:
        gc.callbacks.append(on_collection)


def worked():
    """Processor time that this thread has used, ns, without what is not counted."""
    return read_clock(CLOCK_THREAD_CPUTIME_ID) - uncounted_here()[0]


def uncounted(function, *args):
    """Call a function, whose processor time does not count as work of this thread."""
    cdef int64_t began = worked()
    try:
        return function(*args)
    finally:
        uncounted_here()[0] += <int64_t>worked() - began


def clock():
    """The clock of real drivers: monotonic, ns."""
    return monotonic()


cdef class Waitable:
    """Something that a thread can wait for: `finished` is set once, then sleepers are woken."""

    def __dealloc__(self):
        if self.sleeper is not NULL:
            PyThread_free_lock(self.sleeper)

    def finish(self):
        """Done: wake the thread that waits for it; from any thread."""
        self.wake()

    def wait(self, seconds=None):
        """Sleep in this thread until it is done (True), or for so long; no driver is served meanwhile."""
        return self.sleep(NEVER if seconds is None else monotonic() + <int64_t>(seconds * 1e9))

    cdef int wake(self) noexcept:
        """Done: wake the thread that sleeps on it."""
        self.finished = True
        if self.sleeper is not NULL:
            PyThread_acquire_lock(self.sleeper, NOWAIT_LOCK)
            PyThread_release_lock(self.sleeper)
        if self.roused is not None:
            roused, self.roused = self.roused, None
            roused.rouse(self)
        return 0

    cdef bint sleep(self, int64_t until) except -1:
        """Sleep until it is done or the time has come; other threads go on meanwhile.

        Raises what a signal's handler raises.
        """
        cdef long long rest
        if self.sleeper is NULL:
            self.sleeper = PyThread_allocate_lock()
            if self.sleeper is NULL:
                raise MemoryError
            PyThread_acquire_lock(self.sleeper, WAIT_LOCK)
        while not self.finished:
            rest = -1 if until == NEVER else (until - monotonic()) // 1000 + 1
            if until != NEVER and rest <= 0:
                return False
            if interrupted():
                surface()
                continue
            with nogil:
                PyThread_acquire_lock_timed(self.sleeper, rest, 1)
        PyThread_acquire_lock(self.sleeper, NOWAIT_LOCK)
        PyThread_release_lock(self.sleeper)     # the next sleeper, if there is one
        return True


cdef class Driver:
    """Serves one stack. This one has no I/O: what is waited for must be done already."""

    cdef int kick(self) except -1:
        """PACK has something to cast: see to it, without waiting."""
        return 0

    cdef int kick_later(self) except -1:
        """The same, where that may wait until another thread gets to run, or the event loop's next turn."""
        return self.kick()

    cdef bint try_enter(self, Core stack) except -1:
        """Begin an input of a stack whose order is in memory, if none is under way; `leave_after` comes next."""
        return False

    cdef int leave_after(self, Core passed) except -1:
        """End it; `passed`: the stack, if a packet has gone past its layers, which is handed up now; or None."""
        return 0

    cdef int catch_up(self, Core stack) except -1:
        """Have a stack hand up all that is in the order in shared memory."""
        self.call(stack.catch_up)
        return 0

    cdef int begin_wait(self, Waitable waitable) noexcept:
        """Something waits for it from here on, and is to be woken for that; `end_wait` comes later."""
        return 0

    cdef int end_wait(self, Waitable waitable) noexcept:
        """It waits no longer."""
        return 0

    cdef int begin_await(self, Waitable waitable) except -1:
        """The same as `begin_wait`, of a coroutine, which does nothing for the stack."""
        self.begin_wait(waitable)
        return 0

    cdef int rouse(self, Waitable waitable) noexcept:
        """Something that a thread waits for while it polls was done by another thread."""
        return 0

    cdef int look_later(self) noexcept:
        """Something of this process waits for what runs in the stack: it may run for long."""
        return 0

    cdef bint cast_for(self, Waitable waitable) except -1:
        """Cast what is ready, if that may be all that it takes; whether it is done. If not, `wait` comes next."""
        return waitable.finished

    cdef bint wait(self, Waitable waitable, int64_t until) except -1:
        """Cast what is ready, and have this thread wait: True when it is done, False at `until`."""
        self.kick()
        return waitable.finished

    def wait_asleep(self, Waitable waitable not None, int64_t until):
        """The same in a thread that does nothing for the stack but to cast."""
        return self.wait(waitable, until)

    cdef int64_t clock(self) noexcept:
        """The time, ns, of the clock that the stack is driven with."""
        return monotonic()

    cdef bint has_come(self, int64_t moment) noexcept:
        """Whether it is that time by this clock; if it is far from it, this costs a fifth of a look at the clock."""
        return read_clock(CLOCK_MONOTONIC_COARSE) + TICK >= moment and monotonic() >= moment

    cdef int64_t worked(self) noexcept:
        """Processor time that this thread has used, ns, without what is not counted: collections, and the loading of modules."""
        return read_clock(CLOCK_THREAD_CPUTIME_ID) - uncounted_here()[0]

    cdef int64_t slept(self) noexcept:
        """Time that has passed without any thread of this process on a processor, ns.

        It may fall, if several threads run at once.
        """
        return monotonic() - read_clock(CLOCK_PROCESS_CPUTIME_ID)

    cdef int64_t preempted(self) noexcept:
        """How often a processor was taken from this thread."""
        cdef rusage usage
        getrusage(RUSAGE_THREAD, &usage)
        return usage.ru_nivcsw

    cdef bint is_inside(self) noexcept:
        """Whether this thread is the one that runs in the stack."""
        return True

    def has_this_thread(self):
        """The same, for what is written in Python."""
        return self.is_inside()

    def call(self, function, *args):
        """Run one of the stack's inputs: `function(*args, now)`, and send what comes of it."""
        function(*args, self.clock())

    def later(self, function):
        """Call `function()` when nothing runs in the stack; from any thread, which does not wait."""
        function()

    def call_within(self, seconds, function, *args):
        """The same, unless something else runs in the stacks for so long; says whether it was done."""
        self.call(function, *args)
        return True
