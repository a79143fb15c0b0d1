"""The state of a group at a member that applies nothing."""

from libc.stdint cimport uint32_t

from orcalike.transport.wire.message cimport Message


cdef enum:
    SIZE_LEAST = 16777216           # bytes that may have come since a state before it is asked for anew, at the least


cdef class KeptState:
    cdef readonly bint whole        # with what is here a joiner has all
    cdef readonly bint asked        # a state is asked for, or comes
    cdef bint refused               # it could not be given in this view
    cdef list given                 # pieces of the state, as they came
    cdef Py_ssize_t given_size
    cdef list since                 # what has come since: full pieces, ...
    cdef bytearray piece            # ... and one that is filled,
    cdef Py_ssize_t used            # so far
    cdef readonly Py_ssize_t size   # of all of it
    cdef Py_ssize_t least
    cdef Py_ssize_t limit           # past that the state is to be asked for anew
    cdef tuple departed             # as the last record of such says
    # The state that comes.
    cdef readonly object giver      # the incarnation of the member that gives it; None before
    cdef uint32_t epoch, start      # as of which place, as in XFER's messages
    cdef readonly uint32_t wanted   # number of the next piece
    cdef list coming
    cdef Py_ssize_t mark            # pieces of `since` that it replaces,
    cdef Py_ssize_t mark_size       # and their bytes

    cdef int found(self) except -1
    cdef bint is_due(self) noexcept
    cdef bint ask(self) except -1
    cdef int begin(self, object giver, uint32_t epoch, uint32_t start, object view, bytes cut) except -1
    cdef bint expects(self, object giver, uint32_t epoch, uint32_t start)
    cdef int take(self, bytes piece) except -1
    cdef int finish(self) except -1
    cdef int abandon(self) except -1
    cdef int fail(self) except -1
    cdef int note_view(self, object view, bytes cut) except -1
    cdef int note_cast(self, Message message, tuple departed) except -1
    cdef int note(self, int kind, bytes packed) except -1
    cdef int append(self, const unsigned char* data, Py_ssize_t size) except -1
    cdef int close_piece(self) except -1
