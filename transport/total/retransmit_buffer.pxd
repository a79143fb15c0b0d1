"""The retransmission buffer: the packets that have their number and are not stable."""

from libc.stdint cimport uint64_t

from orcalike.transport.total.packets cimport Packet, Packets


cdef class RetransmitBuffer(Packets):
    cdef readonly Py_ssize_t bytes  # of all bodies

    cdef object sender(self, Packet* held, object view, tuple departed)

    cdef inline Packet* numbered(self, uint64_t seqno) noexcept:
        """The packet with that number, which is there."""
        return self.at(<Py_ssize_t>(seqno - self.at(0).seqno))

    cdef inline void trim(self, uint64_t floor) noexcept:
        """Keep no longer what is below `floor`."""
        while self.count and self.at(0).seqno < floor:
            self.bytes -= self.at(0).size
            self.drop_first()
