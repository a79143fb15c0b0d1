"""A listener: where a process is reached, for all its groups."""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.epoll_set cimport EpollSet
from orcalike.transport.drivers.heartbeat cimport Heartbeat


cdef class Listener:
    cdef EpollSet epoll             # of the listening sockets, and of the connections that have not greeted
    cdef dict sockets               # fd -> the socket that owns it
    cdef dict pumps                 # by group; the one under None has all other groups
    cdef object lock                # held by the pump that looks; the holder waits for nothing
    cdef object half_open           # the connections that have not greeted
    cdef object complaints          # what is logged of bad connections
    cdef readonly object log        # called with (level, text)
    cdef public object keys         # of connections by TCP and the near road, a KeyRing; or None
    cdef readonly Heartbeat heartbeat
    cdef int owner                  # the process that made it
    cdef object process             # OwnProcess, for peers; None if they need none
    cdef int spare                  # a descriptor that is let go if there are no others; -1 if there was none for it
    cdef int64_t again_at           # when to look for connections again, which wait without it; or NEVER
    cdef int64_t now                # the time of this look, ns
    cdef readonly int64_t until     # when a greeting is due, or complaints are logged; or NEVER

    cdef int look(self, int64_t now, bint thoroughly=?) except -1
    cdef int look_once(self) except -1
    cdef int expire(self, int64_t now) except -1
    cdef int set_until(self) except -1
    cdef int complain(self, str text) except -1
    cdef close_all(self)
    cdef accept_from(self, object sock)
    cdef accept(self, object sock)
    cdef Channel open(self, object sock, object keys)
    cdef make_room(self, object sock, object error)
    cdef int have_spare(self) except -1
    cdef int watch_listening(self, unsigned int events) except -1
    cdef int read(self, Channel channel) except -1
    cdef int shake(self, Channel channel) except -1
    cdef int greeted(self, Channel channel) except -1
    cdef give_up(self, Channel channel, str why)
    cdef refuse(self, Channel channel, str why)
    cdef release(self, Channel channel)
