"""A lock that is taken and let go without a call of a function if no thread waits for it.

It may be let go by another thread than the one that has taken it, and is taken by whichever thread comes first
then: one that waits has no place before others. All that is done with it is done under the interpreter's lock, but what a
thread does that waits, which says so before. So while no thread waits, a word that is read and written is enough.
"""

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

from orcalike.transport.drivers.driver cimport monotonic

cdef extern from *:
    """
    static inline int orcalike_exchange(int *word, int value)
    {
        return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
    }

    static inline void orcalike_store(int *word, int value)
    {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    }
    """
    int atomic_exchange "orcalike_exchange"(int* word, int value) noexcept nogil
    void atomic_store "orcalike_store"(int* word, int value) noexcept nogil

cdef extern from "pythread.h" nogil:
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long microseconds, int intr)


cdef struct Lock:
    int taken
    int waiting                     # threads that wait for it
    PyThread_type_lock news         # free once it was let go, until one of these has looked


cdef inline bint begin_lock(Lock* lock) noexcept:
    """It is free from here on; False if there is no memory."""
    lock.taken = lock.waiting = 0
    lock.news = PyThread_allocate_lock()
    return lock.news is not NULL and PyThread_acquire_lock(lock.news, WAIT_LOCK)


cdef inline void end_lock(Lock* lock) noexcept:
    if lock.news is not NULL:
        PyThread_free_lock(lock.news)


cdef inline bint try_lock(Lock* lock) noexcept:
    """Take it if it is free."""
    if lock.waiting:
        return not atomic_exchange(&lock.taken, 1)
    if lock.taken:
        return False
    lock.taken = 1
    return True


cdef inline void wait_lock(Lock* lock) noexcept:
    """Take it when it is free; other threads of Python go on meanwhile."""
    lock.waiting += 1
    with nogil:
        while atomic_exchange(&lock.taken, 1):
            PyThread_acquire_lock(lock.news, WAIT_LOCK)
    lock.waiting -= 1


cdef inline bint wait_lock_until(Lock* lock, int64_t until) noexcept:
    """The same; False if the time has come before."""
    cdef int64_t rest
    cdef bint taken
    lock.waiting += 1
    with nogil:
        while True:
            taken = not atomic_exchange(&lock.taken, 1)
            rest = until - monotonic()
            if taken or rest <= 0:
                break
            PyThread_acquire_lock_timed(lock.news, rest // 1000 + 1, 0)
    lock.waiting -= 1
    return taken


cdef inline void unlock(Lock* lock) noexcept:
    atomic_store(&lock.taken, 0)
    if lock.waiting:
        PyThread_acquire_lock(lock.news, NOWAIT_LOCK)   # one look is enough for what was let go twice
        PyThread_release_lock(lock.news)
