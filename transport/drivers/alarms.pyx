"""Alarms: stacks whose members wake each other through shared memory, and the threads that wait for that.

A stack whose order is in shared memory has an alarm, a pipe that is watched beside the sockets. While nothing waits
here, it looks into the memory now and then, and is not woken by each write of others; so it is to know
how many threads and coroutines wait, and for what. Until the pump has a thread of its own, or an event loop, one is counted always.

A thread that waits dozes on the futex of the order, which others wake by one system call, and looks into the memory
itself; the sockets are left to the pump's own thread. One thread does so, where there is one stack; others that
wait are woken by what that one finds.
"""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.descriptors import Descriptors
from orcalike.transport.drivers.pidfd import Process

from orcalike.transport.drivers.accepting cimport look
from orcalike.transport.drivers.deaths cimport ended
from orcalike.transport.drivers.deferral cimport drop_later, hold, interrupted, surface
from orcalike.transport.drivers.driver cimport Waitable, monotonic
from orcalike.transport.drivers.epoll_set cimport EPOLLIN
from orcalike.transport.drivers.links cimport Links
from orcalike.transport.drivers.lock cimport try_lock
from orcalike.transport.drivers.threads cimport this_thread
from orcalike.transport.layers.base cimport NEVER, Core, Futex
from orcalike.transport.stack cimport Stack


cdef class Alarms(Links):
    """The sockets of one process, and the alarms of its stacks."""

    def __cinit__(self, *args, **kwargs):
        self.doze_most = 5000000000

    def add(self, Stack stack):
        """Serve `stack` too."""
        Links.add(self, stack)
        if stack.alarm is not None and not self.has_poller:
            stack.waiting += 1
        self.share_memory(stack)

    def replace(self, Stack old, Stack new):
        """Serve `new`, and `old` no more; `new` may be served already."""
        cdef bint is_served = self.serves(new)
        if old.alarm is not None:
            self.epoll.remove(old.alarm.reader, self.epoll.slots.index(old))
        Links.replace(self, old, new)
        if not is_served:
            new.waiting = old.waiting + old.patient.count
            self.share_memory(new)

    def serve_on(self, loop):
        """An event loop polls from now on, whenever there is something."""
        loop.add_reader(self.fileno(), self.handle)
        self.has_poller = True
        self.count_waiting(-1)          # from here on coroutines say so when they wait

    cdef int handle_other(self, object entry) except -1:
        """Something has come for what has a slot of the epoll set, and is no channel."""
        if isinstance(entry, Process):
            ended(self, entry)
        elif isinstance(entry, Stack):
            (<Stack>entry).rung(self.now)
        elif entry is self.listener and entry is not None:
            look(self, False)
        elif callable(entry):
            self.callbacks.append(entry)
        return 0

    cdef int share_memory(self, Stack stack) except -1:
        """Watch the stack's alarm, if it has one, and have it map what its peers offer, and ask about their processes."""
        stack.processes = self.processes
        if stack.alarm is not None:
            self.shares_memory = True
            stack.descriptors = Descriptors(self.processes.files_of)
            self.epoll.add(stack.alarm.reader, stack, EPOLLIN)
        return 0

    cdef int count_waiting(self, int more) noexcept:
        """So many more wait for what the stacks do."""
        cdef Stack stack
        if self.shares_memory:
            for stack in self.stacks:
                stack.waiting += more
        return 0

    cdef int begin_wait(self, Waitable waitable) noexcept:
        if (waitable.waits_for_little and waitable.counted_at is None and self.shares_memory and len(self.stacks) == 1):
            waitable.counted_at = <Stack>self.stacks[0]
            waitable.counted_at.patient.add(waitable.interest, 1)
        else:
            self.count_waiting(1)
        return 0

    cdef int end_wait(self, Waitable waitable) noexcept:
        cdef Core counted_at = waitable.counted_at
        waitable.counted_at = None
        if counted_at is not None:
            counted_at.patient.add(waitable.interest, -1)
        if counted_at is None or not self.serves(counted_at):   # another one has taken its place (`replace`)
            self.count_waiting(-1)
        return 0

    cdef int begin_await(self, Waitable waitable) except -1:
        cdef Stack stack
        self.begin_wait(waitable)
        for stack in self.stacks:
            if stack.lingers:
                return self.kick_later()    # the stack is to listen for this, too
        return 0

    cdef bint cast_for(self, Waitable waitable) except -1:
        """Cast what is to be ordered in shared memory: then it is done, before any other thread is to know."""
        cdef Stack stack
        if self.shares_memory:
            for stack in self.stacks:
                if stack.top.has_packets():
                    self.kick()
                    break
        return waitable.finished

    cdef bint try_enter(self, Core stack) except -1:
        if not self.shares_memory or not try_lock(&self.lock):
            return False
        hold()
        self.inside = this_thread()
        self.now = monotonic()
        (<Stack>stack).enter(self.now)
        return True

    cdef int leave_after(self, Core passed) except -1:
        self.leave(<Stack>passed)
        return self.call_back() if self.callbacks else 0

    cdef int leave(self, Stack passed) except -1:
        """Send what is ready, and let others in; before that `passed`, if it is a stack, hands up what has gone past its layers."""
        raise NotImplementedError

    cdef int call_back(self) except -1:
        """Call what had to wait until nothing runs in a stack."""
        raise NotImplementedError

    cdef bint wait(self, Waitable waitable, int64_t until) except -1:
        """Wait until it is done (True) or the time has come."""
        if self.cast_for(waitable):
            return True
        if not self.shares_memory:
            return self.wait_in_role(waitable, until)
        self.begin_wait(waitable)
        try:
            while not waitable.finished and self.now < until and waitable.roused is None and self.may_doze():
                self.doze_for(waitable, until)
            return waitable.finished or self.wait_in_role(waitable, until)
        finally:
            self.end_wait(waitable)

    def attend(self, Waitable waitable not None, seconds=None):
        """Wait for it in this thread, which does the I/O meanwhile; False when the time is over."""
        return self.wait(waitable, NEVER if seconds is None else monotonic() + <int64_t>(seconds * 1e9))

    cdef bint may_doze(self):
        """Whether this thread may leave the sockets to the pump's own, and be woken by others' writes itself."""
        cdef unsigned long server = self.server
        return (server and server != this_thread() and not self.stopped and self.dozer is None
                and len(self.stacks) == 1 and (<Stack>self.stacks[0]).futex is not None)

    cdef int doze_for(self, Waitable waitable, int64_t until) except -1:
        """Doze until it is done, the time has come, or this thread is to wait in another way; raises what signals'
        handlers raise."""
        cdef Stack stack = self.stacks[0]
        cdef Futex futex = stack.futex
        hold()
        self.dozer, self.dozing_thread, waitable.roused = waitable, this_thread(), self
        self.dozes_on, stack.dozes = stack, True
        try:
            self.look_for(waitable)
            while (not waitable.finished and self.dozer is waitable and stack.futex is futex
                   and not self.stopped and self.now < until and not interrupted()):
                futex.doze(max(min(min(until, stack.doze_until) - self.now, self.doze_most), 0))
                self.look_for(waitable)
        finally:
            if self.dozer is waitable:
                self.end_doze()
            if stack.by_futex:
                self.look_into_order()  # from here on the alarm is set
            self.ends_wait(waitable)
            drop_later()
        if not waitable.finished and self.now < until:
            surface()                   # a handler may wait: it may raise, or call anything
        return 0

    cdef int look_for(self, Waitable waitable) except -1:
        """Look into the order, for what a thread waits for, which may have turned out to be little meanwhile."""
        if waitable.waits_for_little and waitable.counted_at is None and waitable.roused is not None:    # else it is done
            self.end_wait(waitable)
            self.begin_wait(waitable)
        return self.look_into_order()

    cdef int end_doze(self) noexcept:
        """What a thread dozes for is done, or it is to do something else."""
        cdef Futex futex = self.dozes_on.futex
        self.dozer = None
        self.dozing_thread = 0
        self.dozes_on.dozes = False
        if futex is not None:
            futex.rouse()
        return 0

    cdef int look_into_order(self) except -1:
        """An input of the stack for which a thread dozes: what is in the order."""
        raise NotImplementedError

    cdef int ends_wait(self, Waitable waitable) noexcept:
        """A thread has polled, or dozed, while it waited, and was counted: up to where it was done, which `rouse` says.

        So that no alarm is set in the input that ends the wait: it would wake another thread.
        """
        if waitable.roused is None:
            self.begin_wait(waitable)
        waitable.roused = None
        return 0

    cdef bint wait_in_role(self, Waitable waitable, int64_t until) except -1:
        """The same, with the sending and receiving where no other thread does that."""
        raise NotImplementedError

    def wait_asleep(self, Waitable waitable not None, int64_t until):
        """Wait until it is done (True) or the time has come, and leave the I/O to others.

        Over an order in shared memory also the sending: to send is to run what others have sent before.
        """
        if self.shares_memory:
            return self.sleep_counted(waitable, until)
        self.kick()
        return waitable.finished or waitable.sleep(until)

    cdef bint sleep_counted(self, Waitable waitable, int64_t until) except -1:
        """Sleep, while the stacks know that a thread waits."""
        self.begin_wait(waitable)
        try:
            self.kick_later()
            return waitable.finished or waitable.sleep(until)
        finally:
            self.end_wait(waitable)
