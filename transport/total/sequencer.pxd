"""The sequencer: the role of the first member of a view."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.total.order cimport Order
from orcalike.transport.total.packets cimport Packets
from orcalike.transport.wire.message cimport Message


cdef class Sequencer:
    cdef Order order
    cdef Packets queue              # requests that wait for credit
    cdef bint announces             # some members cannot know by themselves what is accepted
    cdef bint was_lacking           # in this view: others may not know yet that the word of this member counts
    cdef int64_t slow

    cdef int take(self, int position, uint64_t counter, int degree, Message message, Message body) except -1
    cdef int give_numbers(self) except -1
    cdef int expel_slowest(self) except -1
    cdef int number(self, int position, uint64_t counter, int degree, Message message, Message body) except -1
    cdef int acknowledged(self, int position, uint64_t expect, uint64_t holds) except -1
    cdef int accept_more(self) except -1
    cdef int announce(self) except -1
