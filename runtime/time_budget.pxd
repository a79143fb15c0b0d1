"""The bound on operations that run where messages are received (D07)."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.runtime.replica cimport Replica, thread_slot
from orcalike.transport.drivers.driver cimport Driver

cdef enum:
    BATCH_MAX = 5000000     # ns: the bound on an inline operation
    PAUSED = 250000000      # ns without work, of this thread or another, that an operation may not take
    SAMPLES = 2             # threads whose last looks are kept: the one that receives, and one that waits


cdef struct Sample:
    void** by               # the slot of a thread, or NULL
    int64_t taken           # when its processor time was looked at last
    int64_t worked          # what it was
    int64_t again_at        # when to look again


cdef class TimeBudget:
    cdef public object accounts         # of operations that took too long, `budget.Budget`
    cdef bint in_batch                  # packets of this input were dispatched
    cdef readonly dict hooks            # thread -> (replica, title) of the hook of state that it runs
    cdef int aside                      # depth of what runs here that is no packet
    cdef uint64_t batch_first           # the first message of this packet
    cdef int64_t batch_began
    cdef int64_t dispatched_in          # the time of the input that was dispatched last, or a later one
    cdef Sample samples[SAMPLES]        # of the threads that have dispatched last
    cdef int recent                     # which of them is the newest
    cdef public object host             # what may have been stolen, `stolen.StolenTime`; None: nothing
    cdef int64_t host_look_at           # when to look at that again
    cdef object host_ticks              # what it was at the last look
    cdef readonly int64_t watched_until # it is looked at before each packet until then
    cdef int64_t timed_until            # operations are timed one by one until then
    cdef int64_t began_working, began_sleeping, began_preempted     # of the operation timed now

    cdef inline int64_t moment(self, Driver driver, int64_t cast_at) noexcept:
        """When a packet has come: `cast_at`, if this member has cast it in this input, and nothing was dispatched in that before."""
        return driver.clock() if cast_at <= self.dispatched_in or self.in_batch else cast_at

    cdef inline int begin(self, Driver driver, int64_t now, uint64_t first) except -1:
        """A packet begins, with the message `first`."""
        self.in_batch = True
        self.batch_began = now
        self.batch_first = first
        if self.samples[self.recent].by is thread_slot() and now < self.samples[self.recent].again_at:
            return 0
        return self.sample(driver, now)

    cdef int check(self, Driver driver, int64_t now, bint alone, Replica replica,
                   unsigned int code) except -1
    cdef int64_t certain(self, int64_t took, host_ticks) except? -1
    cdef int report(self, Replica replica, unsigned int code, int64_t took) except -1
    cdef int sample(self, Driver driver, int64_t now) except -1
    cdef int begin_timing(self, int64_t until) except -1
    cdef int start_timing(self, Driver driver) except -1
    cdef int stop_timing(self, Driver driver, Replica replica, unsigned int code) except -1
