"""The pump: moves frames between stacks and sockets, and tells stacks the time.

One pump serves one member, on whichever thread is at hand. It is polled

- by a thread of its own (`run`), which sleeps until something arrives;
- by a thread that waits in a call (`wait`), which then does the sending and receiving itself: the
  answer finds it without another thread in between;
- by an event loop, which watches `fileno()` (`drivers/loop.py`).

Two rules keep them apart. Whoever runs in a stack holds `lock`. Whoever sleeps in the epoll set,
or handles what it said, has `polled` set; a waiting thread takes that role only when it is free,
and takes the set out of sight of the pump's own thread meanwhile (`outer` holds the set, level
triggered), so that no second thread is woken for what it handles.

A thread that only hands something over (`kick`) never waits for the lock: who holds it casts
what is ready before letting go.
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
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint64_t

import logging
import os

from orcalike.transport.drivers import sockets
from orcalike.transport.errors import OrcalikeError, ProtocolError

from orcalike.transport.drivers.channel cimport CLOSED, Channel
from orcalike.transport.drivers.driver cimport Driver, Waitable, monotonic
from orcalike.transport.layers.base cimport NEVER, Outbox
from orcalike.transport.layers.com import greeting_of
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.message cimport Message

cdef extern from "<sys/epoll.h>" nogil:
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int operation, int fd, epoll_event* event)
    int epoll_wait(int epoll, epoll_event* events, int count, int timeout)
    enum:
        EPOLL_CLOEXEC
        EPOLL_CTL_ADD
        EPOLL_CTL_DEL
        EPOLL_CTL_MOD
        EPOLLIN
        EPOLLOUT

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int value, int flags)
    enum:
        EFD_CLOEXEC
        EFD_NONBLOCK

cdef extern from "<unistd.h>" nogil:
    int close(int fd)
    ssize_t read(int fd, void* buffer, size_t size)
    ssize_t write(int fd, const void* buffer, size_t size)

cdef enum:
    ALARM = 0                   # the alarm's slot
    EVENTS = 64
    SLOTS_MAX = 4096
    GREETING_MAX = 2048         # bytes before a stranger has said who it is
    STRANGERS_MAX = 64


cdef class Pump(Driver):
    """Moves frames between stacks and sockets. `log(level, text)` gets what went wrong."""

    def __cinit__(self, log=None):
        cdef epoll_event event
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        self.alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        self.outer = -1
        self.lock = PyThread_allocate_lock()
        if self.epoll < 0 or self.alarm < 0 or self.lock is NULL:
            raise OSError(errno, os.strerror(errno))
        event.events = EPOLLIN
        event.data.u64 = ALARM
        epoll_ctl(self.epoll, EPOLL_CTL_ADD, self.alarm, &event)
        self.slots = [None]
        self.free_slots = []
        self.stacks = []
        self.sockets = {}
        self.callbacks = []
        self.dirty = []
        self.sleeps_until = NEVER
        self.armed = NEVER
        self.log = log or (lambda level, text: None)

    def __dealloc__(self):
        cdef int fd
        for fd in (self.epoll, self.alarm, self.outer):
            if fd >= 0:
                close(fd)               # not Python's, which may be gone when the process ends
        if self.lock is not NULL:
            PyThread_free_lock(self.lock)

    # What it serves.

    def add(self, Stack stack):
        """Serve `stack` too; frames of strangers go to the stack that `stack_for` names."""
        self.stacks.append(stack)

    def listen(self, sock):
        """Accept connections on a listening socket, which the pump owns from here on."""
        sock.setblocking(False)
        self.watch(sock.fileno(), self.slot(sock), EPOLLIN)
        self.sockets[sock.fileno()] = sock

    def watch_fd(self, int fd, callback):
        """Call `callback()` when `fd` is readable, outside of all stacks; the pump closes nothing."""
        self.watch(fd, self.slot(callback), EPOLLIN)

    def fileno(self):
        """The epoll set: readable when `handle()` has something to do."""
        return self.epoll

    def call(self, function, *args):
        """Run one of a stack's inputs: `function(*args, now)`, and send what comes of it."""
        self.enter()
        try:
            function(*args, monotonic())
        finally:
            self.leave()

    # One at a time.

    cdef int enter(self) except -1:
        """Have the stacks for this thread alone."""
        if not PyThread_acquire_lock(self.lock, NOWAIT_LOCK):
            with nogil:
                PyThread_acquire_lock(self.lock, WAIT_LOCK)
        return 0

    cdef int leave(self) except -1:
        """Send what is ready, and let others in."""
        cdef Stack stack
        try:
            self.emit()
            while self.kicked:
                self.kicked = False
                for stack in self.stacks:
                    if stack.pack is not None:
                        stack.flush_packets(monotonic())
                self.emit()
        finally:
            PyThread_release_lock(self.lock)
        self.wind()
        return 0

    cdef int kick(self) except -1:
        """PACK has something to cast: now, or when whoever runs in a stack lets go."""
        self.kicked = True
        if PyThread_acquire_lock(self.lock, NOWAIT_LOCK):
            self.leave()
            if self.callbacks:
                self.call_back()
        return 0

    cdef int rouse(self) noexcept:
        """Wake the thread that polls, where it sleeps: what it waits for is done."""
        cdef uint64_t one = 1
        if self.asleep:
            write(self.alarm, &one, 8)
        return 0

    cdef int wind(self) except -1:
        """Wake whoever polls too late for the next deadline."""
        cdef int64_t deadline = self.next_deadline()
        if self.rearm is not None:
            if deadline != self.armed:
                self.armed = deadline
                self.rearm(None if deadline == NEVER else deadline)
        elif deadline < self.sleeps_until:
            self.ring()
        return 0

    cdef int64_t next_deadline(self):
        cdef int64_t least = NEVER
        cdef Stack stack
        for stack in self.stacks:
            least = min(least, stack.next_deadline())
        return least

    def ring(self):
        """Wake whoever polls."""
        cdef uint64_t one = 1
        write(self.alarm, &one, 8)

    # Polling.

    cdef int poll(self, int64_t until) except -1:
        """Sleep until something comes, or a deadline, or `until`; then handle it.

        The caller has the role. Raises what Python's signal handlers raise, between inputs.
        """
        cdef epoll_event events[EVENTS]
        cdef int count, timeout
        cdef int64_t wake_at = min(until, self.next_deadline())
        timeout = milliseconds(wake_at)
        self.sleeps_until = wake_at
        if timeout == 0:
            count = epoll_wait(self.epoll, events, EVENTS, 0)
        else:
            self.asleep = True
            with nogil:
                count = epoll_wait(self.epoll, events, EVENTS, timeout)
            self.asleep = False
        self.sleeps_until = 0           # awake: it looks at the deadlines before it sleeps again
        if count < 0:
            if errno != EINTR:
                raise OSError(errno, os.strerror(errno))
            PyErr_CheckSignals()
            count = 0
        self.enter()
        try:
            self.handle_events(events, count)
        except Exception as error:
            self.fail(error)
        finally:
            self.leave()
        if self.callbacks:
            self.call_back()
        return 0

    cdef int call_back(self) except -1:
        """Call what had to wait until nothing runs in a stack."""
        while self.callbacks:
            self.callbacks.pop()()
        return 0

    def later(self, function):
        """Call `function()` when nothing runs in a stack: after this input, or the next."""
        self.callbacks.append(function)
        self.ring()

    cdef int handle_events(self, epoll_event* events, int count) except -1:
        cdef int i
        cdef uint64_t value
        cdef Stack stack
        cdef int64_t now
        for i in range(count):
            entry = self.slots[events[i].data.u64]
            if isinstance(entry, Channel):
                self.handle_channel(<Channel>entry, events[i].events)
            elif callable(entry):
                self.callbacks.append(entry)
            elif entry is not None:
                self.accept(entry)
            elif events[i].data.u64 == ALARM:
                read(self.alarm, &value, 8)
        now = monotonic()
        for stack in self.stacks:
            if stack.next_deadline() <= now:
                stack.expire(now)
        return 0

    def handle(self):
        """Handle what is there, without sleeping: what an event loop calls."""
        if not self.polled:
            self.polled = True
            try:
                self.poll(0)
            finally:
                self.polled = False

    def run(self):
        """Be the pump's own thread, until `stopped`."""
        cdef epoll_event event
        cdef int timeout
        self.outer = epoll_create1(EPOLL_CLOEXEC)
        self.show(EPOLLIN, EPOLL_CTL_ADD)
        while not self.stopped:
            # The deadline of a moment ago will do: whoever sets an earlier one rings.
            self.thread_sleeps_until = self.next_deadline()
            if not self.polled:
                self.sleeps_until = self.thread_sleeps_until
            timeout = milliseconds(self.thread_sleeps_until)
            with nogil:
                epoll_wait(self.outer, &event, 1, timeout)
            self.handle()

    def run_alone(self, until=None):
        """Be the only thread there is: poll until `stopped`, or until `until()` holds."""
        while not self.stopped and not (until is not None and until()):
            self.polled = True
            try:
                self.poll(NEVER)
            finally:
                self.polled = False

    cdef int show(self, unsigned int events, int operation) except -1:
        """Let the pump's own thread see the set, or not."""
        cdef epoll_event event
        event.events = events
        event.data.u64 = 0
        epoll_ctl(self.outer, operation, self.epoll, &event)
        return 0

    cdef bint wait(self, Waitable waitable, int64_t until) except -1:
        """Wait until it is done (True) or the time has come, doing the I/O where nobody does."""
        while not waitable.finished:
            if until != NEVER and monotonic() >= until:
                return False
            if self.polled or self.outer < 0 or self.stopped:
                self.kick()
                if not waitable.finished:
                    waitable.sleep(until)
                continue
            self.polled = True
            waitable.roused = self
            # Hidden before anything leaves: an answer that comes at once wakes nobody else.
            self.show(0, EPOLL_CTL_MOD)
            try:
                self.kick()
                while not waitable.finished and (until == NEVER or monotonic() < until):
                    self.poll(until)
            finally:
                self.polled = False
                waitable.roused = None
                self.sleeps_until = self.thread_sleeps_until
                self.show(EPOLLIN, EPOLL_CTL_MOD)
                self.wind()
        return True

    # Channels.

    cdef int slot(self, object entry) except -1:
        if self.free_slots:
            slot = self.free_slots.pop()
            self.slots[slot] = entry
            return slot
        if len(self.slots) >= SLOTS_MAX:
            raise OrcalikeError(f"more than {SLOTS_MAX} connections")
        self.slots.append(entry)
        return len(self.slots) - 1

    cdef int watch(self, int fd, int slot, unsigned int events,
                   int operation=EPOLL_CTL_ADD) except -1:
        cdef epoll_event event
        event.events = events
        event.data.u64 = slot
        if epoll_ctl(self.epoll, operation, fd, &event) < 0:
            raise OSError(errno, os.strerror(errno))
        return 0

    cdef Channel open(self, object sock, unsigned int events):
        cdef int slot = self.slot(None)
        cdef Channel channel = Channel(sock.fileno(), slot)
        self.slots[slot] = channel
        self.sockets[sock.fileno()] = sock
        self.watch(sock.fileno(), slot, events)
        return channel

    cdef accept(self, object listener):
        strangers = [entry for entry in self.slots
                     if isinstance(entry, Channel) and (<Channel>entry).stack is None]
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            try:
                sockets.accepted(sock)
                if len(strangers) >= STRANGERS_MAX:
                    raise OrcalikeError("too many connections that have not greeted")
                strangers.append(self.open(sock, EPOLLIN))
            except (OSError, OrcalikeError) as error:
                self.log(logging.WARNING, f"a connection was refused: {error}")
                sock.close()

    cdef connect(self, Stack stack, str address):
        cdef Channel channel
        try:
            sock = sockets.connect(address)
        except (OSError, ValueError, OrcalikeError) as error:
            stack.connect_failed(address, str(error), monotonic())
            return
        channel = self.open(sock, EPOLLIN | EPOLLOUT)
        channel.stack = stack
        channel.address = address
        channel.connecting = channel.waits_for_room = True

    cdef close(self, Channel channel, str why):
        """The channel is at its end: tell its stack."""
        sock = self.sockets.pop(channel.fd, None)
        if sock is None:
            return
        sock.close()                    # which takes it out of the epoll set
        self.slots[channel.link] = None
        if channel.stack is not None:
            if channel.connecting:
                channel.stack.connect_failed(channel.address, why, monotonic())
            else:
                channel.stack.link_down(channel.link, why, monotonic())
        self.free_slots.append(channel.link)

    cdef int handle_channel(self, Channel channel, unsigned int events) except -1:
        cdef Message frame
        cdef int64_t now
        if channel.connecting and events & ~<unsigned int>EPOLLIN:
            return self.connected(channel)
        if events & EPOLLOUT:
            self.flush(channel)
        if events & ~<unsigned int>EPOLLOUT and channel.fill() == CLOSED:
            self.close(channel, channel.why)
            return 0
        now = monotonic()
        while True:
            frame = channel.next_frame()
            if frame is None:
                break
            if channel.stack is None:
                self.greeted(channel, frame.body)
            if channel.stack is None or channel.link in channel.stack.out.closes:
                break
            channel.stack.receive_frame(channel.link, frame, now)
        if channel.why is not None or (channel.stack is None
                                       and channel.end - channel.begin > GREETING_MAX):
            self.refuse(channel, channel.why or "no greeting")
        return 0

    cdef int connected(self, Channel channel) except -1:
        why = sockets.error_of(channel.fd)
        if why:
            self.close(channel, why)
            return 0
        channel.connecting = channel.waits_for_room = False
        self.watch(channel.fd, channel.link, EPOLLIN, EPOLL_CTL_MOD)
        channel.stack.link_up(channel.link, channel.address, monotonic())
        return 0

    cdef greeted(self, Channel channel, bytes frame):
        """A stranger's first frame says which group it is for."""
        cdef Stack stack = None
        try:
            group, address, _ = greeting_of(frame)
            stack = self.stack_for(group) if self.stack_for else self.stacks[0]
            if stack is None:
                raise ProtocolError(f"{address or 'a stranger'} asks for group {group!r}")
        except ProtocolError as error:
            channel.why = str(error)
            return
        channel.stack = stack
        stack.link_up(channel.link, "", monotonic())

    cdef refuse(self, Channel channel, str why):
        self.log(logging.WARNING, f"connection {channel.address or channel.link} refused: {why}")
        self.close(channel, why)

    cdef int emit(self) except -1:
        """Move what the stacks put out to the sockets."""
        cdef Stack stack
        for stack in self.stacks:
            if stack.out.count or stack.out.connects or stack.out.closes:
                self.emit_stack(stack)
        return 0

    cdef int emit_stack(self, Stack stack) except -1:
        cdef Outbox out = stack.out
        cdef Channel channel
        cdef Py_ssize_t i
        while out.count or out.connects or out.closes:
            for i in range(out.count):
                entry = self.slots[out.items[i].link]
                if isinstance(entry, Channel):
                    channel = <Channel>entry
                    channel.put(<Message>out.items[i].message)
                    if not channel.dirty:
                        channel.dirty = True
                        self.dirty.append(channel)
            out.clear()
            while self.dirty:
                channel = self.dirty.pop()
                channel.dirty = False
                if not channel.waits_for_room:
                    self.flush(channel)
            if out.connects or out.closes:
                self.follow(stack)
        return 0

    cdef int follow(self, Stack stack) except -1:
        """Make and close the links that a stack wants made and closed."""
        for address in stack.out.take_connects():
            self.connect(stack, address)
        for link in stack.out.take_closes():
            entry = self.slots[link]
            if isinstance(entry, Channel):
                self.refuse(<Channel>entry, "the stack refused it")
        return 0

    cdef int flush(self, Channel channel) except -1:
        cdef int gone = channel.flush()
        if gone == CLOSED:
            self.close(channel, channel.why)
        elif channel.waits_for_room != (not gone):
            channel.waits_for_room = not gone
            self.watch(channel.fd, channel.link, EPOLLIN if gone else EPOLLIN | EPOLLOUT,
                       EPOLL_CTL_MOD)
        return 0

    # The end.

    cdef fail(self, object error):
        """An exception of orcalike's own: nothing can be promised after it."""
        if self.failure is None:
            self.failure = error
            self.log(logging.CRITICAL, f"orcalike failed: {error!r}")
            if self.on_failure is not None:
                self.on_failure(error)

    def is_drained(self):
        """Whether all that was to be sent is with the kernel."""
        return not any(isinstance(entry, Channel) and (<Channel>entry).queued
                       for entry in self.slots)

    def drain(self, int64_t until):
        """Send what is queued, for as long as it takes until the time `until`."""
        while not self.is_drained() and monotonic() < until:
            self.poll(min(until, monotonic() + 10000000))

    def close_all(self):
        """Close every socket; the stacks are not told."""
        self.stopped = True
        self.ring()
        for sock in self.sockets.values():
            sock.close()
        self.sockets.clear()
        self.slots = [None]


cdef int milliseconds(int64_t until) noexcept:
    """The time from now until then, as epoll counts it: rounded up, -1 for never."""
    cdef int64_t rest
    if until == NEVER:
        return -1
    rest = until - monotonic()
    return 0 if rest <= 0 else <int>min((rest + 999999) // 1000000, 1000000)
