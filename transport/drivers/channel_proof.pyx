"""The proof of the key on a channel: what each end sends, and what it reads before any frame.

`proof.py` has what is proved, and how.
"""

from orcalike.transport.drivers.proof import CHALLENGE_SIZE, MAGIC, TAG_SIZE, Proof
from orcalike.transport.errors import AuthenticationError

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.layers.com cimport FRAME_HEADER, GREETING_MAX
from orcalike.transport.wire.message cimport Message


cdef int send_challenge(Channel channel, bytes key, bint connects) except -1:
    """Begin the proof, on a connection that is keyed."""
    channel.proof = Proof(key, connects=connects)
    channel.put(Message(channel.proof.challenge()))
    return 0


cdef int send_proof(Channel channel, Message message) except -1:
    """This end's greeting goes out: its proof goes before it."""
    if not channel.proof.sealed:
        channel.put(Message(channel.proof.seal(message.body)))
        if channel.proof.verified:
            channel.proof = None
    return 0


cdef bint read_challenge(Channel channel) except -1:
    """Whether the other end's challenge has come; raises AuthenticationError."""
    cdef bytes begun
    if channel.proof.met:
        return True
    begun = channel.peek(len(MAGIC))
    if begun is not None and begun != MAGIC:
        raise AuthenticationError("it speaks without the key of this group")
    begun = channel.peek(CHALLENGE_SIZE)
    if begun is None:
        return False
    channel.skip(CHALLENGE_SIZE)
    channel.proof.meet(begun)
    return True


cdef bint read_proof(Channel channel) except -1:
    """Whether the other end has proved the key; raises AuthenticationError."""
    cdef bytes begun, whole
    cdef Py_ssize_t size
    begun = channel.peek(TAG_SIZE + 4)
    if begun is None:
        return False
    size = 4 + int.from_bytes(begun[TAG_SIZE:], "little")
    if size < FRAME_HEADER or size > GREETING_MAX:
        raise AuthenticationError("it has not proved the key of this group")
    whole = channel.peek(TAG_SIZE + size)
    if whole is None:
        return False
    channel.proof.verify(whole[:TAG_SIZE], whole[TAG_SIZE:])
    channel.skip(TAG_SIZE)
    if channel.proof.sealed:
        channel.proof = None
    return True
