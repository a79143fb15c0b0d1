"""The sequencer's clock, as far as it is known at this member.

A packet's stamp is its time there, and is older when the packet is here: so that clock is ahead of
this process's own by as much as the newest of packets has shown, or more.
"""

from libc.stdint cimport int64_t, uint64_t


cdef class GroupClock:
    """What reads take for the time; it never goes back."""

    cdef uint64_t read(self, uint64_t stamp, int64_t now) except? 0:
        """The clock in this moment; `stamp` is that of the newest packet."""
        if stamp > self.shown:
            self.shown = stamp
        if self.ahead and now + self.ahead > <int64_t>self.shown:
            self.shown = now + self.ahead
        return self.shown
