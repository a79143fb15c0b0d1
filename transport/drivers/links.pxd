"""Links: the connections of one pump, and what crosses them for its stacks."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.driver cimport Driver
from orcalike.transport.drivers.epoll_set cimport EpollSet
from orcalike.transport.drivers.heartbeat cimport Heartbeat
from orcalike.transport.drivers.listener cimport Listener
from orcalike.transport.drivers.sealed_channel cimport SealedChannel
from orcalike.transport.layers.base cimport Core
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.ring cimport Ring


cdef extern from "Python.h":        # each input looks at all stacks: no iterator, and no test of what is in the list
    Py_ssize_t PyList_GET_SIZE(PyObject*) noexcept
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t) noexcept


cdef enum:
    LOOK = 1        # a descriptor, to see whose process it is that a peer passes


cdef int check_room(object sock, int count) except -1


cdef class Links(Driver):
    cdef Listener listener          # what accepts connections, for other pumps perhaps, too; or None
    cdef bint owns_listener         # it is closed with this
    cdef bint closed                # all sockets are
    cdef list handed_over           # connections that it has accepted for this, and that were not taken yet
    cdef int64_t links_until        # when a greeting is due, or complaints are logged; or NEVER
    cdef object complaints          # what is logged of bad connections
    cdef public object keys         # of connections by TCP and the near road, a KeyRing; or None
    cdef public bint insecure       # they may go beyond the loopback interface without
    # All sockets and processes, and what the pump adds. In a slot is a Channel, the listener, a Process,
    # or what is called.
    cdef EpollSet epoll
    cdef object process             # OwnProcess, for peers, unless the listener has one; or None
    cdef list stacks
    cdef Ring dirty                 # channels with messages that were queued just now
    cdef list deaths                # (stack, incarnation, whether it is certain): of members, to be reported to stacks
    cdef list callbacks             # of descriptors that are watched for others, and have come
    cdef dict sockets               # fd -> the socket that owns it
    cdef object processes           # of the peers, PeerProcesses
    cdef readonly Heartbeat heartbeat
    cdef uint64_t beats_version     # of all stacks
    cdef object report              # between heartbeat and stacks, HeartbeatReport
    cdef object severed             # addresses that this process is cut off from
    cdef readonly object log        # called with (level, text)
    cdef public object stack_for    # group name, address -> Stack or None, for greetings
    cdef public bint receives_deaths    # a launcher reports which processes of this host have ended

    cdef inline Py_ssize_t stack_count(self) noexcept:
        return PyList_GET_SIZE(<PyObject*>self.stacks)

    cdef inline Stack stack_at(self, Py_ssize_t i):
        return <Stack>PyList_GET_ITEM(<PyObject*>self.stacks, i)

    cdef inline bint serves(self, Core stack) noexcept:
        """Whether it is one of the stacks."""
        cdef Py_ssize_t i
        for i in range(self.stack_count()):
            if PyList_GET_ITEM(<PyObject*>self.stacks, i) is <PyObject*>stack:
                return True
        return False

    cdef object own_process(self, object sock)
    cdef int set_links_until(self) except -1
    cdef int complain(self, int level, str text) except -1
    cdef int shake(self, SealedChannel channel) except -1
    cdef bint is_non_member(self, Channel channel) except -1
    cdef connect(self, Stack stack, str address)
    cdef int begin(self, Stack stack, str address, object sock) except -1
    cdef bint goes_near(self, Channel channel, str address) except -1
    cdef close(self, Channel channel, str why)
    cdef int handle_channel(self, Channel channel, unsigned int events) except -1
    cdef int connected(self, Channel channel) except -1
    cdef str lie_of(self, Channel channel, bytes frame)
    cdef refuse(self, Channel channel, str why)
    cdef int emit(self, Stack stack) except -1
    cdef int flush_dirty(self) except -1
    cdef int follow(self, Stack stack) except -1
    cdef int flush(self, Channel channel) except -1
    cdef int read_to_end(self, Channel channel) except -1
    cdef bint is_open(self, Channel channel) except -1
    cdef watch_process(self, Channel channel)
    cdef peer_of(self, object entry)
    cdef beat(self)
    cdef int expire(self, Stack stack, int64_t now) except -1
    cdef close_sockets(self)
