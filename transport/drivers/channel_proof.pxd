"""The proof of the key on a channel."""

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.wire.message cimport Message

cdef int send_challenge(Channel channel, bytes key, bint connects) except -1
cdef int send_proof(Channel channel, Message message) except -1
cdef bint read_challenge(Channel channel) except -1
cdef bint read_proof(Channel channel) except -1
