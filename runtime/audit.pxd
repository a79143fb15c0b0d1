"""Whether the state of an object could be given to a joiner."""

from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.replica cimport Replica


cdef object refusal(Codec codec, Replica replica, object operation)
cpdef object why_not(Codec codec, Replica replica)
