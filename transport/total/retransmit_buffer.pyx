"""The retransmission buffer, or history: the packets that have their number and are not stable (A30, H63).

Each member keeps what it holds until all members hold it, so that any of them can pass on what
another one lacks when the view changes. There are no gaps between the first and the last.
"""

cimport cython

from orcalike.transport.total.header cimport departed_position
from orcalike.transport.total.packets cimport Packet, Packets


@cython.final
@cython.no_gc
cdef class RetransmitBuffer(Packets):
    """The packets in the order of their numbers."""

    cdef object sender(self, Packet* held, object view, tuple departed):
        """The member that cast a packet: of this view, or of those that have left."""
        return departed[departed_position(held.position)] if held.position < 0 else view.members[held.position]

    def move(self, before, after, tuple departed):
        """Senders have other positions in the next view; returns those that have left by then."""
        cdef Packet* held
        cdef Py_ssize_t i
        cdef list gone = []
        for i in range(self.count):
            held = self.at(i)
            sender = self.sender(held, before, departed)
            held.position = after.position(sender.incarnation)
            if held.position < 0:
                if sender not in gone:
                    gone.append(sender)
                held.position = departed_position(gone.index(sender))
        return tuple(gone)
