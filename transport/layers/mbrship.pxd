"""MBRSHIP: views, and which messages belong to which."""

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class Mbrship(Layer):
    cdef readonly object me, options
    cdef readonly object agreement
    cdef readonly object view       # None outside of the group
    cdef readonly int place         # this member's place in it
    cdef readonly dict lost         # incarnation -> why, for members of this view
    cdef uint64_t key               # identity of the view, as data headers carry it
    cdef list early                 # data of views that are not installed here yet
    cdef Py_ssize_t early_bytes
    cdef readonly str seed          # whom a join goes through
    cdef readonly int stale         # how many messages of other views were dropped
    cdef bint leaves

    cdef elsewhere(self, Message message, uint64_t key, bint is_cast)
    cdef control(self, Message message)
    cdef dispatch(self, Message message, object fields)
    cdef requested(self, object member, object options)
    cdef decided(self, object view, bytes cut)
    cdef replay(self, uint64_t key, bint is_cast, Message message)
    cdef exit(self, str why)
    cdef complain(self, Message message, str why)
