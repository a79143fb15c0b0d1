"""The pump: drives stacks and their links, and tells stacks the time.

One pump serves one member, on whichever thread is at hand. It is polled

- by a thread of its own (`run`), which sleeps until something arrives;
- by a thread that waits in a call (`wait`), which then does the sending and receiving itself: the
  answer finds it without another thread in between;
- by an event loop, which watches `fileno()` and calls `handle`.

Two rules keep them apart. The thread that runs in a stack holds `lock`. The thread that sleeps in
the epoll set, or handles what it said, has set `polled`; a waiting thread takes that role only when it is free,
and takes the set out of sight of the pump's own thread meanwhile (`outer` holds the set, level
triggered), so that no second thread is woken for what it handles.

A thread that only hands something over (`kick`) never waits for the lock: the thread that holds
it casts what is ready before it lets go.

The stacks' next deadline is a timer in the set, so that all three sleep without a time limit of
their own. It is set anew only for an earlier one: most deadlines move on before they come, and a
limit at each sleep, or a timer at each move, costs each waiting write a microsecond.

No handler of a signal runs while its thread has the lock or the role (`deferral`).

A thread can lose its place (`take_place`): what stands above a stack runs for long on it, at a moment
when no layer is in the middle of anything. Then another thread has the lock, and the role if the first
one had it, and does what is left of the input (`go_on`). The first one, when it is back, leaves the core
by `Relieved`, and touches nothing on its way: what it had read of a socket is still in its channel, and
what it had not looked at is said again, since the set is level triggered.
"""

cimport cython
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint64_t

import logging
import os
import threading

from orcalike.transport.drivers.errand import Errand
from orcalike.transport.drivers.peer_processes import is_elsewhere
from orcalike.transport.wording import repr_of

from orcalike.transport.drivers.accepting cimport expire_links, take_handed_over
from orcalike.transport.drivers.alarms cimport Alarms
from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.deaths cimport died, tell_deaths
from orcalike.transport.drivers.deferral cimport (
    block_signals, deliver, drop, drop_later, hold, interrupted, surface,
)
from orcalike.transport.drivers.driver cimport Waitable, monotonic
from orcalike.transport.drivers.lock cimport begin_lock, end_lock, try_lock, unlock, wait_lock, wait_lock_until
from orcalike.transport.drivers.system_calls cimport epoll_wait
from orcalike.transport.drivers.threads cimport this_thread
from orcalike.transport.drivers.timers cimport close_three, new_counter, new_timer, set_timer
from orcalike.transport.layers.base cimport NEVER, Core
from orcalike.transport.stack cimport Stack

cdef extern from "<sys/epoll.h>" nogil:
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int operation, int fd, epoll_event* event)
    enum:
        EPOLL_CLOEXEC
        EPOLL_CTL_ADD
        EPOLL_CTL_MOD
        EPOLLIN

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int fd, void* buffer, size_t size)
    ssize_t write(int fd, const void* buffer, size_t size)

cdef enum:
    ALARM = 0                   # slots: the alarm's
    TIMER = 1                   # and the timer's
    EVENTS = 64
    RESUMES = -1                # in the place of a number of events: what another thread has left
    LOOKS = -2                  # likewise: what is in the order of the stack on whose futex this thread dozes
    CATCHES_UP = -3             # likewise: all that is in the order of a stack, for a read


class Relieved(BaseException):
    """This thread has lost its place in the core to another one, and is to leave it as it is."""


cdef inline int enter(Pump pump) except -1:
    """Have the stacks for this thread alone."""
    hold()
    if not try_lock(&pump.lock):
        pump.wait_for_lock()
    pump.inside = this_thread()
    pump.now = monotonic()
    return 0


cdef inline bint let_go(Pump pump) noexcept:
    """This thread has the lock no more; says whether signals' handlers wait."""
    pump.inside = 0
    unlock(&pump.lock)
    return drop_later()


cdef inline void wind(Pump pump) noexcept:
    """See to it that the thread that polls wakes up for the next deadline."""
    cdef int64_t deadline = min(pump.waits_until, pump.links_until)
    cdef Py_ssize_t i
    for i in range(pump.stack_count()):
        deadline = min(deadline, pump.stack_at(i).next_deadline())
    pump.due = deadline
    if deadline < pump.timer_at:
        pump.timer_at = deadline
        set_timer(pump.timer, deadline)


@cython.final
cdef class Pump(Alarms):
    """Drives stacks and their links. `log(level, text)` gets what went wrong."""

    def __cinit__(self, log=None):
        self.alarm, self.timer, self.outer = new_counter(), new_timer(), -1
        if not begin_lock(&self.lock) or self.alarm < 0 or self.timer < 0:
            raise OSError(errno, os.strerror(errno))
        self.epoll.watch(self.alarm, ALARM, EPOLLIN)
        self.epoll.watch(self.timer, TIMER, EPOLLIN)
        self.timer_at = self.waits_until = NEVER

    def __dealloc__(self):
        close_three(&self.alarm, &self.timer, &self.outer)
        end_lock(&self.lock)

    # One at a time.

    def report_death(self, incarnation):
        """It is certain that this member's process, on this host, has ended (H13): notify every stack.

        Not to be called by what runs in a stack; `later` is for that.
        """
        self.call(self.notify_of, incarnation, True)

    def report_gone(self, incarnation):
        """A launcher says of a member on another host that its process is gone: a suspicion at once (H13). To be called likewise."""
        self.call(self.notify_of, incarnation, False)

    def notify_of(self, incarnation, bint is_known, now):
        """An input of each stack; nothing that is said of another host's processes is certain."""
        cdef Stack stack
        for stack in self.stacks:
            died(self, stack, incarnation, is_known and not is_elsewhere(stack, incarnation))

    def call(self, function, *args):
        """Run one of a stack's inputs: `function(*args, now)`, and send what comes of it."""
        enter(self)
        self.run_input(function, args)

    def run_input(self, function, args):
        """The same where this thread has the lock."""
        cdef bint lost = False
        try:
            function(*args, self.now)
        except Relieved:
            lost = True
        finally:
            if lost:
                self.come_out()
            else:
                self.leave(None)

    def call_within(self, seconds, function, *args):
        """The same, within so many seconds; says whether it was done in that time.

        A thread that the pump has of its own does it, or one that waits without a time limit: with the
        input go packets of other threads, and their operations may not end.
        """
        if self.outer >= 0 and not self.stopped and self.server != this_thread():
            return Errand(self, function, args).done_within(seconds)
        return self.call_here_within(seconds, function, args)

    def call_here_within(self, seconds, function, args):
        """The same on this thread: only what runs in the stacks already is waited for no longer."""
        cdef int64_t until = monotonic() + <int64_t>(seconds * 1e9)
        hold()
        if not try_lock(&self.lock):
            if not wait_lock_until(&self.lock, until):
                drop_later()
                return False
        self.inside = this_thread()
        self.now = monotonic()
        self.run_input(function, args)
        return True

    cdef int wait_for_lock(self) except -1:
        """Have the stacks for this thread alone, once the thread that has them lets go."""
        self.look_later()
        wait_lock(&self.lock)
        return 0

    cdef int leave(self, Stack passed) except -1:
        try:
            if passed is None or self.has_more_than(passed):
                self.send_out()
        except Relieved:
            return self.come_out()
        except BaseException as error:      # what the order has, and was not handed up, would be missing here
            try:
                self.fail(error)
            finally:
                let_go(self)
            raise
        return self.let_in()

    cdef bint has_more_than(self, Stack passed) except -1:
        """Have a stack hand up what has gone past its layers; whether more has come of that, or others have something to cast."""
        cdef uint64_t version = passed.beats_version
        passed.hand_up_fast()
        return self.kicked or passed.beats_version != version or not passed.out.is_empty()

    cdef int send_out(self) except -1:
        """Cast what is ready, and send what the stacks put out."""
        cdef Stack stack
        cdef Py_ssize_t i
        cdef uint64_t version
        cdef bint kicked
        while True:
            kicked, self.kicked = self.kicked, False
            if kicked:
                self.now = monotonic()  # what this input has run may have taken long
            i = version = 0
            while i < self.stack_count():
                stack = self.stack_at(i)
                if kicked:
                    stack.flush_packets(self.now)
                if not stack.out.is_empty():
                    self.emit(stack)
                version = version * 1000003 + stack.beats_version
                i += 1
            if version != self.beats_version:
                self.beats_version = version
                self.beat()
            elif not self.kicked:
                return 0

    cdef int let_in(self) except -1:
        """This thread leaves the core, in which nothing is left to do: let others in."""
        cdef bint handlers_wait = let_go(self)
        wind(self)
        return deliver() if handlers_wait else 0

    cdef int kick(self) except -1:
        """PACK has something to cast: now, or when the thread that runs in a stack lets go."""
        self.kicked = True
        if try_lock(&self.lock):
            hold()
            self.inside = this_thread()
            self.leave(None)
            if self.callbacks:
                self.call_back()
        else:
            self.look_later()
        return 0

    cdef int kick_later(self) except -1:
        """The same, but the thread that polls does it, or the event loop in its next turn, if there is one."""
        if not self.has_poller:
            return self.kick()
        self.kicked = True
        if not self.rung:
            self.rung = True
            self.ring()
        return 0

    cdef int look_later(self) noexcept:
        return self.heartbeat.look_later()

    cdef bint is_inside(self) noexcept:
        return self.inside == this_thread()

    cdef int rouse(self, Waitable waitable) noexcept:
        """What a thread waits for that polls, or dozes, is done: it counts as waiting no more, and is woken where it
        sleeps."""
        cdef uint64_t one = 1
        self.end_wait(waitable)
        if self.dozer is waitable:
            self.end_doze()
        elif self.asleep:
            write(self.alarm, &one, 8)
        return 0

    def ring(self):
        """Wake the thread that polls."""
        cdef uint64_t one = 1
        write(self.alarm, &one, 8)
        if self.stopped and self.dozer is not None:
            self.end_doze()

    # Polling.

    cdef int poll(self, bint sleeps=True) except -1:
        """Sleep until something comes, a deadline too; then handle it.

        The caller has the role, and is inside the core.
        """
        cdef epoll_event events[EVENTS]
        cdef int count
        if sleeps:
            self.asleep = True
            with nogil:
                count = epoll_wait(self.epoll.fd, events, EVENTS, -1)
            self.asleep = False
        else:
            count = epoll_wait(self.epoll.fd, events, EVENTS, 0)
        if count < 0:
            if errno != EINTR:
                raise OSError(errno, os.strerror(errno))
            count = 0
        enter(self)
        return self.handle_all(events, count)

    cdef int handle_all(self, epoll_event* events, int count) except -1:
        """Handle what the set has said, and leave the core."""
        cdef object failure = None
        try:
            self.handle_events(events, count)
            self.send_out()
        except BaseException as error:      # no handler's: those wait
            failure = error
        if failure is None:
            self.let_in()
        elif isinstance(failure, Relieved):
            self.come_out()
        else:
            try:
                self.fail(failure)
            finally:
                self.leave(None)
        if self.callbacks:
            self.call_back()
        return 0

    cdef int look_into_order(self) except -1:
        enter(self)
        return self.handle_all(NULL, LOOKS)

    cdef int catch_up(self, Core stack) except -1:
        enter(self)
        self.behind = <Stack>stack
        return self.handle_all(NULL, CATCHES_UP)

    cdef int call_back(self) except -1:
        hold()
        try:
            while self.callbacks:
                self.callbacks.pop()()
        except BaseException as error:  # no handler's: those wait
            self.fail(error)
            drop_later()
            raise
        return drop()

    def later(self, function):
        """Call `function()` when nothing runs in a stack: after this input, or the next."""
        self.callbacks.append(function)
        self.ring()

    cdef int handle_events(self, epoll_event* events, int count) except -1:
        cdef int i
        cdef uint64_t value
        cdef Stack stack
        if count == RESUMES:
            self.resume_input()
        elif count == LOOKS:
            self.dozes_on.woken(self.now)
        elif count == CATCHES_UP:
            self.behind.catch_up(self.now)
        for i in range(count):
            if events[i].data.u64 == ALARM:
                read(self.alarm, &value, 8)
                self.rung = False
            elif events[i].data.u64 == TIMER:
                read(self.timer, &value, 8)
                self.timer_at = NEVER
            else:
                entry = self.epoll.slots[events[i].data.u64]
                if isinstance(entry, Channel):
                    self.handle_channel(<Channel>entry, events[i].events)
                else:
                    self.handle_other(entry)
        if self.handed_over:
            take_handed_over(self)
        if self.due <= self.now:        # what this input has brought is looked at when it is over
            for stack in self.stacks:
                if stack.next_deadline() <= self.now:
                    self.expire(stack, self.now)
        if self.links_until <= self.now:
            expire_links(self)
        return 0

    def handle(self):
        """Handle what is there, without sleeping: what an event loop calls."""
        if not self.polled and self.epoll.fd >= 0:
            self.poll_once(False)

    cdef int poll_once(self, bint sleeps) except -1:
        """Poll with the role, which is free; raises what signals' handlers raise."""
        cdef bint raised = True
        hold()
        self.polled = True
        self.poller = this_thread()
        try:
            try:
                self.poll(sleeps)
            finally:
                self.give_up_role()
            if sleeps:                  # else an event loop goes on, which calls handlers itself
                interrupted()
            raised = False
        finally:
            if raised:
                drop_later()
        return drop()

    cdef int give_up_role(self) except -1:
        """This thread has the role no more, if it has not lost it."""
        if self.poller == this_thread():
            self.polled = False
            self.poller = 0
        return 0

    def run(self):
        """Be the pump's own thread, until `stopped`."""
        block_signals()
        self.outer = epoll_create1(EPOLL_CLOEXEC)
        self.has_poller = True
        self.count_waiting(-1)          # from here on threads say so when they wait
        self.show(EPOLLIN, EPOLL_CTL_ADD)
        self.server = this_thread()
        self.serve()

    cdef int serve(self) except -1:
        """Be the pump's own thread, until another one is."""
        cdef epoll_event event
        self.thread = threading.current_thread()
        while not self.stopped and self.server == this_thread():
            with nogil:
                epoll_wait(self.outer, &event, 1, -1)
            if not self.polled:
                self.poll_once(False)
        if self.stopped and self.server == this_thread():
            self.drain()
        return 0

    # Another thread's place.

    cdef int take_place(self) noexcept:
        """This thread is in the core from here on, in place of the one that is; `go_on` comes next.

        What stands above knows that this can be: see `stack.resume`.
        """
        cdef unsigned long me = this_thread()
        hold()
        if self.polled and self.poller == self.inside:
            self.poller = me
        if self.server == self.inside:
            self.server = me
        if self.dozing_thread == self.inside:
            self.end_doze()
        self.kicked = True              # the stack may have to listen in another way, and others had no turn yet
        self.inside = me
        self.away += 1
        return 0

    cdef int come_out(self) except -1:
        """This thread leaves the core, where it has lost its place."""
        self.away -= 1
        if self.outer < 0:
            self.ring()                 # the one that has it serves until this one is back
        drop_later()
        return 0

    def go_on(self):
        """Do what the thread was about to do whose place this one has taken, then leave the core."""
        cdef unsigned long me = this_thread()
        block_signals()
        self.now = monotonic()
        try:
            self.handle_all(NULL, RESUMES)
        finally:
            self.end_role()
        if self.server == me:
            self.serve()
        while self.outer < 0 and self.away and not self.stopped and not self.polled:
            self.poll_once(True)        # it is an event loop's thread that is away, and serves no more

    cdef int end_role(self) except -1:
        """Let others have the role, if this thread has it in another one's place."""
        if self.polled and self.poller == this_thread():
            self.give_up_role()
            self.waits_until = NEVER
            if self.outer >= 0:
                self.show(EPOLLIN, EPOLL_CTL_MOD)
        return 0

    cdef int resume_input(self) except -1:
        """What the thread that is away has left: in the stacks, in the channels, and to be sent."""
        cdef Stack stack
        for stack in list(self.stacks):
            stack.resume(self.now)
        tell_deaths(self)
        take_handed_over(self)
        for entry in list(self.epoll.slots):
            if isinstance(entry, Channel) and not (<Channel>entry).connecting:
                self.handle_channel(<Channel>entry, 0)
        return self.flush_dirty()

    def run_alone(self, until=None):
        """Be the only thread there is: poll until `stopped`, or until `until()` holds."""
        while not self.stopped and not (until is not None and until()):
            self.poll_once(True)

    cdef int show(self, unsigned int events, int operation) except -1:
        """Let the pump's own thread see the set, or not."""
        cdef epoll_event event
        event.events = events
        event.data.u64 = 0
        epoll_ctl(self.outer, operation, self.epoll.fd, &event)
        return 0

    cdef bint wait_in_role(self, Waitable waitable, int64_t until) except -1:
        """Wait until it is done (True) or the time has come, doing the I/O if no other thread does; raises
        what signals' handlers raise."""
        cdef unsigned long me = this_thread()
        while not waitable.finished:
            if self.polled or self.outer < 0 or self.stopped or waitable.roused is not None:
                self.kick()             # another thread does it, perhaps for the same
                if not waitable.finished and not waitable.sleep(until):
                    return False
                continue
            hold()
            self.polled = True
            self.poller = me
            self.waits_until = until
            waitable.roused = self
            # Hidden before anything leaves: an answer that comes at once wakes no other thread.
            self.show(0, EPOLL_CTL_MOD)
            try:
                self.kick()
                while (self.now < until and not self.stopped
                       and self.poller == me and not waitable.finished and not interrupted()
                       and not waitable.finished):  # again: handlers may have let others run
                    self.poll()
            finally:
                if self.poller == me:
                    self.give_up_role()
                    self.waits_until = NEVER
                    self.show(EPOLLIN, EPOLL_CTL_MOD)
                self.ends_wait(waitable)
                if self.stopped:
                    self.ring()         # for the pump's own thread, which ends
                drop_later()
            if self.now >= until:
                break
            if not waitable.finished:
                surface()               # a handler waits: it may raise, or call anything
        return waitable.finished

    # The end.

    cdef fail(self, object error):
        """An exception of orcalike's own: nothing can be promised after it."""
        if self.failure is None:
            self.failure = error
            self.log(logging.CRITICAL, f"orcalike failed: {repr_of(error)}")
            if self.on_failure is not None:
                self.on_failure(error)

    def drain(self, seconds=1.0):
        """Send what is queued, within so many seconds."""
        cdef epoll_event event
        cdef int64_t until = monotonic() + <int64_t>(seconds * 1e9)
        hold()
        try:
            self.waits_until = until
            wind(self)
            while not self.is_drained() and self.now < until:
                if self.polled:         # by a thread that lets go when it sees that the pump has stopped
                    with nogil:
                        epoll_wait(self.outer, &event, 1, 1 + <int>((until - self.now) // 1000000))
                    self.now = monotonic()
                else:
                    self.poll_once(True)
            self.waits_until = NEVER
        finally:
            drop_later()

    def close_all(self):
        """Close every socket, and the pump's own descriptors if no thread uses them; the stacks are not notified."""
        self.stopped = True
        self.ring()
        self.close_sockets()
        if not self.polled and not (self.thread and self.thread.is_alive()) and try_lock(&self.lock):
            close_three(&self.alarm, &self.timer, &self.outer)
            self.epoll.close()
            unlock(&self.lock)
