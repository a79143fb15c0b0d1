"""Deaths of members: their stacks are notified of one after all that the member had sent (H13)."""

from orcalike.transport.drivers.links cimport Links
from orcalike.transport.stack cimport Stack


cdef int ended(Links links, object process) except -1
cdef int died(Links links, Stack stack, object incarnation, bint is_certain) except -1
cdef int tell_deaths(Links links) except -1
