"""The bound on operations that run where messages are received (D07), watched by packets.

One clock reading before a packet and one after. If a packet took too long, the thread's processor
time, without that of collections, says how much of it the operations have used: it is looked at once
in a millisecond at the most, and before each packet for a minute after one that may have used too much. If
the packet had several operations, those of the next second are timed one by one; after a pause in
which nothing worked, those of the next ten seconds are.

On a virtual machine a thread's processor time has some of what the host took. What the host may have
taken since it was looked at last, a tenth of a second ago at the most, is not counted.
"""

from libc.stdint cimport int64_t, uint64_t

from orcalike.runtime.replica cimport Replica, thread_slot
from orcalike.transport.drivers.driver cimport Driver

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    SAMPLED = 1000000       # ns between looks at the processor time
    WATCHED = 60000000000   # ns for which it is looked at before each packet
    TIMED = 1000000000      # ns for which operations are timed one by one
    SUSPECTED = 10000000000 # ns for which they are after a pause
    HOST_SAMPLED = 100000000    # ns between looks at what the host takes: one costs 10 us and more


cdef class TimeBudget:
    """How long packets and operations have taken on the thread that receives."""

    def __cinit__(self):
        self.hooks = {}

    def run_aside(self, Driver driver, function, *args):
        """Run what no other thread can go on after: a change of view, an `__init__`, a hook.

        It is watched as packets are, where messages are received; on other threads as all is there.
        """
        cdef bint in_batch = self.in_batch
        if not driver.is_inside():
            return function(*args)
        self.aside += 1
        if not in_batch:
            self.batch_began = driver.clock()
            self.in_batch = True
            driver.look_later()
        try:
            return function(*args)
        finally:
            self.aside -= 1
            self.in_batch = in_batch
            self.dispatched_in = driver.clock()

    def run_hook(self, Driver driver, Replica replica, str title, function, *args):
        """Run an object's `snapshot` or `restore`, of which it is known meanwhile which it is."""
        cdef object thread = PyThread_get_thread_ident()
        self.hooks[thread] = replica, title
        try:
            return self.run_aside(driver, function, *args)
        finally:
            del self.hooks[thread]

    cdef int sample(self, Driver driver, int64_t now) except -1:
        """Look at this thread's processor time, if it is due: that costs more than to look at the clock."""
        cdef Sample* mine = &self.samples[self.recent]
        if mine.by is not thread_slot():
            self.recent = (self.recent + 1) % SAMPLES
            mine = &self.samples[self.recent]
            if mine.by is not thread_slot():
                mine.by, mine.again_at = thread_slot(), 0
            if now < mine.again_at:
                return 0
        mine.taken = now
        mine.worked = driver.worked()
        driver.look_later()             # even if no other thread waits for what runs next
        mine.again_at = now if now < self.watched_until else now + SAMPLED
        if now >= self.host_look_at and self.host is not None:
            self.host_look_at = now + HOST_SAMPLED
            self.host_ticks = self.host.ticks()
        return 0

    cdef int64_t certain(self, int64_t took, host_ticks) except? -1:
        """How much of `took` was certainly used here, and not taken by the host since it had `host_ticks`."""
        if took < BATCH_MAX or self.host is None or host_ticks is None:
            return took
        return took - self.host.most_since(host_ticks)

    cdef int check(self, Driver driver, int64_t now, bint alone, Replica replica,
                   unsigned int code) except -1:
        """A packet took too long on the wall clock: find out whether its operations did.

        `alone`: it had one message, for `replica`, or for none. Between the last look at the processor time and the packet
        the thread may have worked all the time, so what is left was used in the packet for certain; and it has used
        no more than all since that look.
        """
        cdef Sample* mine = &self.samples[self.recent]
        cdef int64_t took = 0, most = now - self.batch_began
        if mine.by is thread_slot():
            most = driver.worked() - mine.worked
            took = self.certain(most - (self.batch_began - mine.taken), self.host_ticks)
        if most >= BATCH_MAX:           # else others had the processor: a busy machine, which costs writers nothing
            self.watched_until = now + WATCHED
            mine.again_at = now
        if took < BATCH_MAX:
            if now - self.batch_began >= PAUSED:
                self.begin_timing(now + SUSPECTED)
        elif not alone:
            self.begin_timing(now + TIMED)
        elif not self.timed_until:      # else it has been reported
            self.report(replica, code, took)
        return 0

    cdef int report(self, Replica replica, unsigned int code, int64_t took) except -1:
        """An operation has taken longer than it may."""
        if replica is not None and replica.operations is not None:
            self.accounts.exceeded(replica, replica.operations[code >> 1], took)
        return 0

    cdef int begin_timing(self, int64_t until) except -1:
        """Time operations one by one until then."""
        self.timed_until = max(self.timed_until, until)
        return 0

    cdef int start_timing(self, Driver driver) except -1:
        """Note what has been used before an operation."""
        self.began_preempted = driver.preempted()
        self.began_sleeping = driver.slept()
        self.began_working = driver.worked()
        return 0

    cdef int stop_timing(self, Driver driver, Replica replica, unsigned int code) except -1:
        """An operation is over: report it if it took longer than it may."""
        cdef int64_t took = self.certain(driver.worked() - self.began_working, self.host_ticks)
        if took < BATCH_MAX:            # or it waited, and nothing else in this process worked
            took = self.certain(driver.slept() - self.began_sleeping, self.host_ticks)
            if took < PAUSED or driver.preempted() != self.began_preempted:
                took = 0
        if took:
            self.report(replica, code, took)
        if driver.clock() > self.timed_until:
            self.timed_until = 0
        return 0

    def start_run(self, Driver driver not None):
        """What a pop-up thread notes before it runs an operation that was inline once."""
        return driver.clock(), driver.worked(), None if self.host is None else self.host.ticks()

    def stop_run(self, Driver driver not None, Replica replica, operation, before):
        """Such a run is over; after enough of them within the bound it is inline again."""
        began, worked, host_ticks = before
        within = (self.certain(driver.worked() - worked, host_ticks) < BATCH_MAX
                  and self.certain(driver.clock() - began, host_ticks) < PAUSED)
        self.accounts.ran(replica, operation, within)
