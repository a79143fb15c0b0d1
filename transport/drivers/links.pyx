"""Links: the connections of one pump, and what crosses them for its stacks.

It makes and closes connections; it cuts what comes into frames for the stacks, and sends what they put out. It
watches the peers' processes (`peer_processes.py`), and gives the heartbeats the peers of the stacks (`heartbeat_report.py`).
What its listener has accepted is taken in `accepting.pyx`, and what ends is reported in `deaths.pyx`.

The caller runs in the stacks: the pump sees to it that it is one thread at a time.
"""

from cpython.object cimport PyObject
from libc.errno cimport errno
from libc.stdint cimport int64_t, uint64_t

import logging
import os
import socket

from orcalike.transport.drivers import handed_over, near_road, sockets
from orcalike.transport.drivers.complaints import Complaints
from orcalike.transport.drivers.heartbeat_report import HeartbeatReport
from orcalike.transport.drivers.peer_processes import LATE_MAX, PeerProcesses
from orcalike.transport.drivers.pidfd import OwnProcess, Process
from orcalike.transport.errors import NOT_PROVED, AuthenticationError, OrcalikeError

from orcalike.transport.drivers.channel cimport CLOSED, Channel, has_room
from orcalike.transport.drivers.driver cimport Driver
from orcalike.transport.drivers.epoll_set cimport EPOLLIN, EpollSet
from orcalike.transport.drivers.heartbeat cimport Heartbeat
from orcalike.transport.drivers.listener cimport Listener
from orcalike.transport.drivers.sealed_channel cimport SealedChannel, make_channel
from orcalike.transport.layers.base cimport NEVER, Outbox
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring

cdef extern from "<sys/epoll.h>" nogil:
    enum:
        EPOLL_CTL_MOD
        EPOLLOUT

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef enum:
    PUMPS_SLOTS = 2             # the first are the pump's own
    PASSED = 2                  # descriptors that a peer passes by a Unix socket
    UNREAD_MAX = 1048576        # bytes that wait for a non-member to read them
    UNREAD_BY_MEMBER_MAX = 134217728    # for a member: more than what the layers send ahead

cdef uint64_t NOT_GIVEN = <uint64_t>-1  # as a version of all peers: the heartbeats are to get them

CUT_OFF = "this process is cut off from it"


cdef inline bint is_refused(Channel channel) except -1:
    """Whether its stack wants it closed."""
    return bool(channel.stack.out.closes) and channel.link in channel.stack.out.closes


cdef int check_room(object sock, int count) except -1:
    """Raise OSError if there is no room for so many descriptors: no greeting goes by such a connection, which would end at once."""
    if sock.family == socket.AF_UNIX and not has_room(sock.fileno(), count):
        raise OSError(errno, os.strerror(errno))
    return 0


cdef class Links(Driver):
    """The sockets of one process. `log(level, text)` gets what went wrong."""

    def __cinit__(self, log=None):
        self.epoll = EpollSet(PUMPS_SLOTS)
        self.stacks, self.sockets = [], {}
        self.processes = PeerProcesses(self.epoll)
        self.dirty = Ring()
        self.callbacks, self.deaths, self.handed_over = [], [], []
        self.severed = frozenset()
        self.heartbeat = Heartbeat()
        self.report = HeartbeatReport(self.heartbeat)
        self.log = log or (lambda level, text: None)
        self.complaints = Complaints(self.log)
        self.links_until = NEVER

    # What it serves.

    def add(self, Stack stack):
        """Serve `stack` too; greetings of non-members go to the stack that `stack_for` names."""
        self.stacks.append(stack)
        self.beats_version = NOT_GIVEN

    def replace(self, Stack old, Stack new):
        """Serve `new`, and `old` no more, whose links are closed; it is not notified."""
        for entry in list(self.epoll.slots):
            if isinstance(entry, Channel) and (<Channel>entry).stack is old:
                (<Channel>entry).stack = None
                self.close(<Channel>entry, "")
            elif isinstance(entry, Process) and entry.stack is old:
                self.processes.forget(entry)
        self.report.forget(old)
        self.stacks.remove(old)
        if new not in self.stacks:
            self.stacks.append(new)
        self.beats_version = NOT_GIVEN

    def listen(self, sock, address):
        """Accept connections on a listening socket, which is owned here from now on; others reach it at `address`.

        Heartbeats come beside it. Raises OrcalikeError if they cannot.
        """
        if self.listener is None:
            self.owns_listener = True
            self.listen_by(Listener(self.log, self.keys))
        self.listener.listen(sock, address)

    def listen_by(self, Listener listener not None, group=None):
        """Take what a listener accepts for `group`, or all that no other pump takes; the heartbeats, too."""
        self.heartbeat.close()
        self.listener, self.heartbeat = listener, listener.heartbeat
        self.report = HeartbeatReport(self.heartbeat)
        self.beats_version = NOT_GIVEN
        self.epoll.add(listener.fileno(), listener, EPOLLIN)
        listener.serve(self, group)

    def watch_fd(self, int fd, callback):
        """Call `callback()` when `fd` is readable, outside of all stacks; nothing is closed here."""
        self.epoll.add(fd, callback, EPOLLIN)

    def fileno(self):
        """The epoll set: readable when there is something to do."""
        return self.epoll.fd

    def hand_over(self, connection):
        """(channel, socket, greeting) of a connection that has greeted, or None: look at deadlines; from any thread. Whether there is room."""
        if not handed_over.put(self.handed_over, connection):
            return False
        if not self.is_inside():
            self.ring()
        return True

    # Channels.

    cdef object own_process(self, object sock):
        """What goes along by a Unix socket; None by others. Processes are known by numbers from then on."""
        cdef object process = self.process if self.listener is None else self.listener.process
        if sock.family != socket.AF_UNIX:
            return None
        if process is None:
            self.process = process = OwnProcess()
        self.processes.find_out(process)
        return process

    cdef int begin(self, Stack stack, str address, object sock) except -1:
        """Have a channel for a socket that connects."""
        cdef Channel channel
        keys = self.keys if address.startswith("tcp:") else None
        try:
            channel = make_channel(sock.fileno(), self.own_process(sock), keys, True)
            check_room(sock, PASSED + LOOK)
            sockets.outlast(sock, stack.config.slow)
            channel.link = self.epoll.add(sock.fileno(), channel, EPOLLIN | EPOLLOUT)
        except (OSError, OrcalikeError) as error:
            sock.close()
            stack.connect_failed(address, str(error), self.now)
            return 0
        channel.stack, channel.address = stack, address
        channel.connecting = channel.waits_for_room = True
        self.sockets[sock.fileno()] = sock
        return 0

    cdef bint goes_near(self, Channel channel, str address) except -1:
        """Whether the near road leads to the peer at an address: then its connection, on which it has said nothing yet, is made anew."""
        if address in self.severed:
            return False
        sock = near_road.reach_after(self.sockets[channel.fd], channel.stack, address)
        if sock is None:
            return False
        stack, channel.stack = channel.stack, None
        stack.link_anew(channel.link, self.now)
        self.close(channel, "")
        self.begin(stack, channel.address, sock)
        return True

    cdef int set_links_until(self) except -1:
        deadline = self.complaints.deadline()
        self.links_until = NEVER if self.listener is None else self.listener.until
        if deadline is not None:
            self.links_until = min(self.links_until, <int64_t>deadline)
        return 0

    cdef int complain(self, int level, str text) except -1:
        """Log that a connection is bad: at most once a second."""
        self.complaints.say(level, text, self.now)
        self.set_links_until()
        return 0

    cdef int shake(self, SealedChannel channel) except -1:
        """Go on with the handshake of a connection under a key: before any frame."""
        try:
            if not channel.shake():
                return 0
        except AuthenticationError as error:
            self.refuse(channel, str(error))
            return 0
        self.report.give_keys(self.keys, self.insecure)
        if not self.goes_near(channel, channel.address):
            channel.stack.link_up(channel.link, channel.address, self.now)
        return 0

    cdef connect(self, Stack stack, str address):
        if address in self.severed:
            stack.connect_failed(address, CUT_OFF, self.now)
            return
        try:
            sock = near_road.connect(stack, address, beyond=self.keys is not None or self.insecure)
        except (OSError, ValueError, OrcalikeError) as error:
            stack.connect_failed(address, str(error), self.now)
        else:
            self.begin(stack, address, sock)

    cdef close(self, Channel channel, str why):
        """The channel is at its end: tell its stack."""
        sock = self.sockets.pop(channel.fd, None)
        if sock is None:
            return
        self.epoll.unwatch(channel.fd)
        sock.close()
        self.epoll.slots[channel.link] = None
        if channel.shaking and not channel.connecting:
            why = f"{why}; {NOT_PROVED}"
        try:
            if channel.stack is not None:
                if channel.connecting or channel.shaking:
                    channel.stack.connect_failed(channel.address, why, self.now)
                else:
                    channel.stack.link_down(channel.link, why, self.now)
        finally:
            self.epoll.free_slots.append(channel.link)

    cdef int handle_channel(self, Channel channel, unsigned int events) except -1:
        """Handle what came; returns whether any bytes did."""
        cdef Message frame
        cdef int got = 0
        if channel.severed:
            return 0
        if channel.connecting and events & ~<unsigned int>EPOLLIN:
            return self.connected(channel)
        if events & EPOLLOUT:
            self.flush(channel)
            if self.epoll.slots[channel.link] is not channel:
                return 0
        if events & ~<unsigned int>EPOLLOUT:
            got = channel.fill()
            if got == CLOSED:
                self.close(channel, channel.why)
                return 0
            if channel.process >= 0:
                self.watch_process(channel)     # of a peer that has greeted before: what it says now may need its files
        if channel.shaking:
            self.shake(<SealedChannel>channel)
            if channel.shaking or self.epoll.slots[channel.link] is not channel:
                return got > 0
        while channel.begin < channel.end and (frame := channel.next_frame()) is not None:
            if is_refused(channel):
                break
            if not channel.claimed:
                channel.claimed = True
                lie = self.lie_of(channel, frame.body)
                if lie is not None:
                    channel.why = lie
                    break
                if self.goes_near(channel, near_road.address_in(frame.body)):
                    return True
            channel.stack.receive_frame(channel.link, frame, self.now)
            frame = None                # so that the channel may use it again
            if channel.process >= 0:
                self.watch_process(channel)
                if channel.why is not None:
                    break
        if channel.why is not None:
            self.refuse(channel, channel.why)
        return got > 0

    cdef int connected(self, Channel channel) except -1:
        why = sockets.error_of(self.sockets[channel.fd])
        if why:
            self.close(channel, why)
            return 0
        channel.connecting = channel.waits_for_room = False
        self.epoll.watch(channel.fd, channel.link, EPOLLIN, EPOLL_CTL_MOD)
        if channel.shaking:
            (<SealedChannel>channel).start()
            self.flush(channel)
        else:
            channel.stack.link_up(channel.link, channel.address, self.now)
        return 0

    cdef str lie_of(self, Channel channel, bytes frame):
        """Why its sender is not the process that it says; None if the kernel says nothing, as on TCP."""
        if self.sockets[channel.fd].family != socket.AF_UNIX or channel.pid <= 0:
            return None
        return self.processes.lie_of(frame, channel.pid, channel.uid, channel.process)

    cdef refuse(self, Channel channel, str why):
        if why == CUT_OFF:
            self.log(logging.INFO, f"connection {channel.link} refused: {why}")
        else:
            self.complain(logging.WARNING, f"connection {channel.address or channel.link} refused: {why}")
        self.close(channel, why)

    # What the stacks put out.

    cdef int emit(self, Stack stack) except -1:
        """Move what a stack puts out to the sockets."""
        cdef Outbox out = stack.out
        cdef PyObject* entry
        cdef Py_ssize_t i
        while True:
            for i in range(out.count):
                entry = PyList_GET_ITEM(<PyObject*>self.epoll.slots, out.items[i].link)
                # Of several messages those that go by one link are written together.
                if isinstance(<object>entry, Channel) and not (
                        out.is_one_message() and (<Channel>entry).write_whole(<Message>out.items[i].message)):
                    (<Channel>entry).put(<Message>out.items[i].message)
                    if not (<Channel>entry).dirty:
                        (<Channel>entry).dirty = True
                        self.dirty.put(<Channel>entry)
            out.clear()
            if self.dirty.count:
                self.flush_dirty()
            if out.connects or out.closes:
                self.follow(stack)
            elif out.count == 0:
                return 0

    cdef int flush_dirty(self) except -1:
        """Write what was queued, as far as the sockets take it."""
        cdef Channel channel
        while self.dirty.count:
            channel = <Channel>self.dirty.take()
            channel.dirty = False
            if not channel.waits_for_room:
                self.flush(channel)
            elif channel.queued > UNREAD_MAX and (channel.queued > UNREAD_BY_MEMBER_MAX or self.is_non_member(channel)):
                self.refuse(channel, "it does not read what is sent to it")
        return 0

    cdef int follow(self, Stack stack) except -1:
        """Make and close the links that a stack wants made and closed; none any more once all are closed."""
        if self.closed:
            stack.out.connects.clear()
            stack.out.closes.clear()
        while stack.out.connects:
            self.connect(stack, stack.out.connects.pop(0))
        while stack.out.closes:
            link = stack.out.closes.pop(0)
            entry = self.epoll.slots[link]
            if isinstance(entry, Channel):
                self.refuse(<Channel>entry, stack.bottom.take_why(link) or "the stack refused it")
        return 0

    cdef int flush(self, Channel channel) except -1:
        cdef int gone = channel.flush()
        if gone == CLOSED:
            self.read_to_end(channel)
        elif channel.waits_for_room != (not gone):
            channel.waits_for_room = not gone
            self.epoll.watch(channel.fd, channel.link, EPOLLIN if gone else EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD)
        return 0

    cdef int read_to_end(self, Channel channel) except -1:
        """Nothing can be written: what the other end had sent before is handed in, then it is closed."""
        cdef str why = channel.why
        channel.why = None
        while self.is_open(channel) and self.handle_channel(channel, EPOLLIN):
            pass
        if self.is_open(channel):
            self.close(channel, why)
        return 0

    cdef bint is_open(self, Channel channel) except -1:
        """Whether it is there, and its stack takes what comes."""
        return self.epoll.slots[channel.link] is channel and not is_refused(channel)

    cdef bint is_non_member(self, Channel channel) except -1:
        """Whether it is the connection of an endpoint that has greeted, and is in no view here."""
        peer = self.peer_of(channel)
        return peer is not None and peer.position < 0

    # Peers.

    cdef watch_process(self, Channel channel):
        """The peer has greeted, and passed its process: watch that until it ends (H13)."""
        peer = self.peer_of(channel)
        if peer is None:
            return
        process, files = channel.take_passed()
        if channel.stack.alarm is None and files >= 0:
            close(files)                # no memory is mapped
            files = -1
        channel.why = self.processes.watch(
            Process(process, channel.stack, peer.incarnation, channel.pid, files), peer.address)
        if len(self.processes) > len(self.sockets) + LATE_MAX:
            linked = [self.peer_of(entry) for entry in self.epoll.slots]
            self.processes.forget_late({peer.incarnation for peer in linked if peer is not None})

    cdef peer_of(self, object entry):
        """The peer at the other end of a channel; None if it is no channel, or has not greeted."""
        cdef Channel channel
        if isinstance(entry, Channel):
            channel = <Channel>entry
            if channel.stack is not None:
                peer = channel.stack.bottom.peer_at(channel.link)
                if peer is not None and peer.greeted:
                    return peer
        return None

    # Heartbeats.

    cdef beat(self):
        """Give the heartbeats the present peers of the stacks, and the leases that beats grant: a stack may go on then."""
        cdef Stack stack
        if self.closed:
            return
        self.report.give_keys(self.keys, self.insecure)
        for stack in self.stacks:
            self.report.give_peers(stack, self.severed, self.receives_deaths, self.now)

    cdef int expire(self, Stack stack, int64_t now) except -1:
        """A stack's deadline has come: first it gets the contacts with its peers, and which live."""
        if stack.beats:
            self.report.report_contact(stack, self.severed, self.processes, now)
        stack.expire(now)
        return 0

    # The end.

    def is_drained(self):
        """Whether all that was to be sent is with the kernel."""
        return not any(isinstance(entry, Channel) and (<Channel>entry).queued
                       and not (<Channel>entry).severed for entry in self.epoll.slots)

    cdef close_sockets(self):
        """Close every socket, and send no more beats; the stacks are not notified.

        Another thread may be in the core, with an operation that does not end; when it comes back, what it puts out is dropped.
        """
        self.closed = True
        if self.listener is not None:
            self.listener.leave(self)
            handed_over.close_all(self.handed_over)
            for stack in self.stacks:
                self.report.forget(stack)
        if self.owns_listener or self.listener is None:
            (self.heartbeat if self.listener is None else self.listener).close()
        self.process = None
        for sock in self.sockets.values():
            sock.close()
        self.sockets.clear()
        self.processes.close()
        for entry in self.epoll.slots:
            if isinstance(entry, Channel):
                (<Channel>entry).fd = -1
                (<Channel>entry).begin = (<Channel>entry).end   # it hands nothing in any more
        self.epoll.slots[:] = [None] * len(self.epoll.slots)
