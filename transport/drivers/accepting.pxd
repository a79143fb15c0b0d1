"""Taking what a listener has accepted: connections of non-members, which have greeted."""

from orcalike.transport.drivers.links cimport Links


cdef int look(Links links, bint thoroughly) except -1
cdef int take_handed_over(Links links) except -1
cdef int expire_links(Links links) except -1
