"""The retransmission buffer, or history: the packets that have their number and are not stable (A30, H63).

Each member keeps what it holds until all members hold it, so that any of them can pass on what
another one lacks when the view changes. There are no gaps between the first and the last.
"""

from libc.stdint cimport uint64_t

cimport cython

from orcalike.transport.total.header cimport departed_position
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring


@cython.no_gc                           # a message refers to nothing
@cython.freelist(256)
cdef class Held:
    """A packet with its seqno, kept until it is stable."""

    cdef Message body(self):
        """The packet as it was cast; it borrows."""
        return body_of(self.message, self.size)


@cython.final
cdef class RetransmitBuffer:
    """The packets in the order of their numbers."""

    def __cinit__(self):
        self.packets = Ring()

    cdef Held put(self, Message message, Py_ssize_t size, int position, int degree, uint64_t counter,
                  uint64_t seqno, uint64_t stamp):
        """Keep the next packet."""
        cdef Held held = Held.__new__(Held)
        held.message = message
        held.size = size
        held.position = position
        held.degree = degree
        held.counter = counter
        held.seqno = seqno
        held.stamp = stamp
        self.packets.put(held)
        self.bytes += size
        return held

    cdef Held at(self, uint64_t seqno):
        """The packet with that number, which is there."""
        return <Held>self.packets.at(<Py_ssize_t>(seqno - (<Held>self.packets.at(0)).seqno))

    cdef int trim(self, uint64_t floor) except -1:
        """Keep no longer what is below `floor`."""
        while self.packets.count and (<Held>self.packets.at(0)).seqno < floor:
            self.bytes -= (<Held>self.packets.take()).size
        return 0

    cdef Held take_last(self):
        """The last packet, which is there no longer."""
        cdef Held held = <Held>self.packets.take_last()
        self.bytes -= held.size
        return held

    cdef list all(self):
        """All of them, the oldest first."""
        return self.packets.all()

    def sender(self, Held held, view, tuple departed):
        """The member that cast a packet: of this view, or of those that have left."""
        return departed[departed_position(held.position)] if held.position < 0 else view.members[held.position]

    def move(self, before, after, tuple departed):
        """Senders have other positions in the next view; returns those that have left by then."""
        cdef Held held
        cdef list gone = []
        for held in self.all():
            sender = self.sender(held, before, departed)
            held.position = after.position(sender.incarnation)
            if held.position < 0:
                if sender not in gone:
                    gone.append(sender)
                held.position = departed_position(gone.index(sender))
        return tuple(gone)


cdef Message body_of(Message message, Py_ssize_t size):
    """The packet without the headers of the view in which it was sent first; it borrows."""
    cdef Message body = Message.view(message.base + message.stop - size, size)
    body.owner = message if message.owner is None else message.owner
    return body
