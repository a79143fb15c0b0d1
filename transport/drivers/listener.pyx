"""A listener: where a process is reached, for all its groups; what connects there is not known yet.

It accepts connections, makes the handshake of those under a key, and reads the greeting, which says which
group is asked for. Then the connection goes to the pump that serves that group: with all that has been read,
and its ciphers. Until then it has a bound and a deadline (`half_open.py`). Heartbeats of all groups come by
the datagram socket beside it.

It has no thread. Its descriptor is in the epoll set of each pump that it serves, so whichever of them polls
first looks what there is: no pump has to run so that another one gets its connections, none waits
for another one's stacks, and one that ends takes nothing along. `lock` keeps two that look apart. The pump
that holds it may be in its own stacks, but enters no other one's: it hands over by a queue.
"""

from libc.errno cimport EAGAIN, ECONNABORTED, EINTR, EMFILE, errno
from libc.stdint cimport int64_t

import logging
import os
import socket
import threading

from orcalike.transport.drivers import near_road, sockets
from orcalike.transport.drivers.complaints import Complaints
from orcalike.transport.drivers.half_open import HalfOpen
from orcalike.transport.drivers.pidfd import OwnProcess
from orcalike.transport.errors import AuthenticationError, OrcalikeError, ProtocolError

from orcalike.transport.drivers.channel cimport CLOSED, Channel
from orcalike.transport.drivers.epoll_set cimport EPOLLIN, EpollSet, epoll_event
from orcalike.transport.drivers.heartbeat cimport Heartbeat
from orcalike.transport.drivers.sealed_channel cimport SealedChannel, make_channel
from orcalike.transport.drivers.timers cimport close_once
from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.layers.com cimport GREETING_MAX
from orcalike.transport.layers.com import answer_to, greeting_of
from orcalike.transport.wire.control import shown
from orcalike.transport.wire.message cimport Message

cdef extern from "<sys/epoll.h>" nogil:
    int epoll_wait(int epoll, epoll_event* events, int count, int timeout)
    enum:
        EPOLL_CTL_MOD

cdef extern from "<unistd.h>" nogil:
    int getpid()

cdef enum:
    ACCEPTS_MAX = 64            # connections at a time, so that others have their turn
    EVENTS = 64
    LOOKS_MAX = 64              # of a thorough look: more than all that can wait
    WITHOUT_SPARE = 100000000   # ns for which connections wait if none can be accepted, and none be closed

cdef str NO_ROOM = os.strerror(EMFILE)


cdef class Listener:
    """`Listener(log, keys)`: `log(level, text)` gets what went wrong."""

    def __cinit__(self, log=None, keys=None):
        self.spare = -1
        self.owner = getpid()
        self.epoll = EpollSet(0)
        self.sockets = {}
        self.pumps = {}
        self.lock = threading.Lock()
        self.heartbeat = Heartbeat()
        self.log = log or (lambda level, text: None)
        self.keys = keys
        self.complaints = Complaints(self.log)
        self.half_open = HalfOpen()
        self.until = self.again_at = NEVER
        self.spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def __dealloc__(self):
        close_once(&self.spare)

    # What it serves.

    def listen(self, sock, address):
        """Accept connections on a listening socket, which is owned here from now on; others reach it at `address`.

        Heartbeats come beside it, and connections by the near road if there can be any. Raises OrcalikeError if
        heartbeats cannot come.
        """
        self.heartbeat.listen(sockets.datagrams_beside(sock))
        self.accept_from(sock)
        near = near_road.listen(address)
        if near is not None:
            self.accept_from(near)

    cdef accept_from(self, object sock):
        """Watch a listening socket."""
        sock.setblocking(False)
        sockets.ask_for_senders(sock)
        if sock.family == socket.AF_UNIX and self.process is None:
            self.process = OwnProcess()
        with self.lock:
            self.epoll.add(sock.fileno(), sock, EPOLLIN)
            self.sockets[sock.fileno()] = sock

    def serve(self, pump, group):
        """Hand connections for `group` to this pump: by `pump.hand_over`. None: those for all other groups."""
        with self.lock:
            self.pumps[group] = pump

    def leave(self, pump):
        """Hand nothing more to this pump; the others have what is due of this listener to do."""
        if self.owner != getpid():
            return                      # a child: another thread of the parent may have had the lock
        with self.lock:
            self.pumps = {group: other for group, other in self.pumps.items() if other is not pump}
            for other in set(self.pumps.values()):
                other.hand_over(None)

    def fileno(self):
        """Readable when there is something to look at."""
        return self.epoll.fd

    def close(self):
        """Close every socket, and send no more beats; a child's copies alone, in a child.

        A pump may look here still, where an operation does not end: it finds nothing.
        """
        self.heartbeat.close()
        if self.owner != getpid():
            self.close_all()            # a child: as with `leave`
            return
        with self.lock:
            self.close_all()

    cdef close_all(self):
        for sock in self.sockets.values():
            sock.close()
        self.sockets.clear()
        self.epoll.slots[:] = [None] * len(self.epoll.slots)
        self.epoll.close()
        close_once(&self.spare)
        self.process = None             # which closes its own
        self.half_open = HalfOpen()
        self.until = self.again_at = NEVER

    # What comes.

    cdef int look(self, int64_t now, bint thoroughly=False) except -1:
        """Handle what is there; `thoroughly`: all of it."""
        cdef int looks
        with self.lock:
            self.now = now
            for looks in range(LOOKS_MAX if thoroughly else 1):
                if not self.look_once():
                    break
            self.set_until()
        return 0

    cdef int look_once(self) except -1:
        """Whether anything was there."""
        cdef epoll_event events[EVENTS]
        cdef int i, count
        if self.epoll.fd < 0:
            return 0                    # it was closed
        count = epoll_wait(self.epoll.fd, events, EVENTS, 0)
        if count < 0:
            if errno != EINTR:
                raise OSError(errno, os.strerror(errno))
            return 1
        for i in range(count):
            entry = self.epoll.slots[events[i].data.u64]
            if isinstance(entry, Channel):
                self.read(<Channel>entry)
            elif entry is not None:
                self.accept(entry)
        return count

    cdef int expire(self, int64_t now) except -1:
        """Connections that have not greeted in time are closed; what was not logged is counted in a line."""
        with self.lock:
            self.now = now
            for channel in self.half_open.overdue(now):
                self.give_up(<Channel>channel, "no greeting came in time")
            if self.again_at <= now:
                self.again_at = NEVER
                self.have_spare()
                self.watch_listening(EPOLLIN)
            self.complaints.count(now)
            self.set_until()
        return 0

    cdef int set_until(self) except -1:
        self.until = self.again_at
        for deadline in (self.half_open.deadline(), self.complaints.deadline()):
            if deadline is not None:
                self.until = min(self.until, <int64_t>deadline)
        return 0

    cdef int complain(self, str text) except -1:
        """Log that a connection is bad: at most once a second."""
        self.complaints.say(logging.WARNING, text, self.now)
        return 0

    cdef accept(self, object sock):
        """Accept the connections that wait; a greeting that is here already is read at once."""
        cdef Channel channel
        keys = self.keys if near_road.takes_key(sock) else None
        for _ in range(ACCEPTS_MAX):
            try:
                accepted, _ = sock.accept()
            except OSError as error:
                if error.errno == ECONNABORTED:
                    continue
                if error.errno != EAGAIN and error.errno != EINTR:
                    self.make_room(sock, error)
                return
            try:
                source = sockets.accepted(accepted)
                crowded = self.half_open.crowded(source)
                if crowded is not None:
                    self.give_up(crowded, "it has not greeted, and others wait")
                channel = self.open(accepted, keys)
            except (OSError, OrcalikeError) as error:
                self.complain(f"a connection was refused: {error}")
                accepted.close()
                continue
            self.half_open.add(channel, source, self.now)
            self.read(channel)

    cdef Channel open(self, object sock, object keys):
        """A channel for a socket; raises OSError or OrcalikeError if there is no room for it."""
        cdef object process = self.process if sock.family == socket.AF_UNIX else None
        cdef Channel channel = make_channel(sock.fileno(), process, keys, False)
        channel.link = self.epoll.add(sock.fileno(), channel, EPOLLIN)
        self.sockets[sock.fileno()] = sock
        return channel

    cdef make_room(self, object sock, object error):
        """The system has no room for a connection that waits: one that is silent goes, or it does.

        Else the listening socket would stay readable, and no pump would ever sleep.
        """
        silent = self.half_open.most()
        self.complain(f"a connection cannot be accepted: {error.strerror}")
        if silent is not None:
            self.give_up(silent, "it has not greeted, and others wait")
        elif self.spare >= 0:
            close_once(&self.spare)
            try:
                sock.accept()[0].close()
            except OSError:
                pass
            self.have_spare()           # another thread of the program may have been faster
        if self.spare < 0:
            self.watch_listening(0)
            self.again_at = self.now + WITHOUT_SPARE

    cdef int have_spare(self) except -1:
        """Have a descriptor that can be let go, if there is one."""
        try:
            self.spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            pass
        return 0

    cdef int watch_listening(self, unsigned int events) except -1:
        """Look for connections that wait (EPOLLIN), or leave them waiting (0)."""
        cdef Py_ssize_t slot
        for slot in range(len(self.epoll.slots)):
            entry = self.epoll.slots[slot]
            if isinstance(entry, socket.socket):
                self.epoll.watch(entry.fileno(), <int>slot, events, EPOLL_CTL_MOD)
        return 0

    cdef int read(self, Channel channel) except -1:
        """Read what came by a connection that has not greeted; its first frame is the greeting."""
        if channel.fill() == CLOSED:
            if channel.why == NO_ROOM:
                self.complain(f"connection {channel.link} refused: {channel.why}")
            self.release(channel).close()
            return 0
        if channel.shaking and not self.shake(channel):
            return 0
        if not self.greeted(channel) and (
                channel.why is not None or channel.end - channel.begin > GREETING_MAX):
            self.refuse(channel, channel.why or "no greeting")
        return 0

    cdef int shake(self, Channel channel) except -1:
        """Go on with the handshake of a connection under a key, before any frame: whether it is over."""
        try:
            if not (<SealedChannel>channel).shake():
                return False
        except AuthenticationError as error:
            self.refuse(channel, str(error))
            return False
        self.heartbeat.set_keys([key.of_beats for key in self.keys.all()])
        if channel.flush() != 1:        # a few bytes, the first of all
            self.refuse(channel, channel.why or "it takes no answer")
            return False
        return True

    cdef int greeted(self, Channel channel) except -1:
        """Hand a connection over if its greeting is here; what has been read stays in it."""
        cdef Py_ssize_t begin = channel.begin, end = channel.end
        cdef Message frame = channel.next_frame()
        if frame is None:
            return False
        greeting = frame.body
        try:
            group, _, _ = greeting_of(greeting)
        except ProtocolError as error:
            if answer_to(greeting):
                channel.gives[0] = -1   # of this process nothing but these words
                channel.put(Message(answer_to(greeting)))
                channel.flush()         # as far as it goes
            self.refuse(channel, str(error))
            return True
        channel.begin, channel.end = begin, end
        pump = self.pumps.get(group, self.pumps.get(None))
        sock = self.release(channel)
        if pump is None:
            # Of a member of another group's: it may ask before this process has joined, or after.
            self.complaints.say(logging.INFO, f"a connection was refused: the group {shown(group)} is not here", self.now)
            sock.close()
        elif not pump.hand_over((channel, sock, greeting)):
            # Its loop is blocked; the member at the other end tries again.
            self.complain(f"a connection was refused: too many wait for the group {shown(group)}")
            sock.close()
        return True

    cdef give_up(self, Channel channel, str why):
        """Close a connection that has not greeted, unless its greeting is here after all."""
        self.read(channel)
        if channel in self.half_open:
            self.refuse(channel, why)

    cdef refuse(self, Channel channel, str why):
        self.complain(f"connection {channel.link} refused: {why}")
        self.release(channel).close()

    cdef release(self, Channel channel):
        """Watch a connection no more; returns its socket."""
        self.half_open.remove(channel)
        self.epoll.remove(channel.fd, channel.link)
        return self.sockets.pop(channel.fd)
