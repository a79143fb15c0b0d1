# cython: allow_none_for_extension_args=False
"""The state of a group at a member that applies nothing: one as it was given, and all that has come since (A44, ADR-25).

So a witness can give it to joiners when all members with replicas have ended at once. Past a bound of what has come
since, a member with the whole state gives it anew, as of a later place in the order. Until all of that is here,
what came before that place is kept, too.

What has come since is a stream of records, cut into pieces where they are full, not where records end:

    CAST (1) | degree (1) | position of its sender (4) | seqno (8) | stamp (8) | bytes (4) | these
    VIEW or DEPARTED (1) | bytes (4) | these, of [view, cut], or of members that a view does not have any more

In the middle of a view it begins with that view. One that is the same as the one before it says nothing new.
"""

import msgpack

from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import Member, View
from orcalike.transport.wire.control import unpack

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy

from orcalike.transport.wire.bytes cimport load32, load64, store32, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    CAST = 0
    VIEW = 1
    DEPARTED = 2
    CAST_HEAD = 26
    HEAD = 5
    PIECE = 65536                   # bytes of a piece
    SIZE_MOST = 1073741824          # bytes that may have come since, where no member can give the state anew


cdef class KeptState:
    """A state, as far as it is here, and what has come since."""

    def __cinit__(self, Py_ssize_t least=SIZE_LEAST):
        """`least`: so many bytes may have come since, at the least, before the state is asked for anew."""
        self.least = self.limit = least
        self.given, self.since, self.coming = [], [], []
        self.piece = bytearray(PIECE)
        self.departed = ()
        self.mark = -1

    cdef int found(self) except -1:
        """The group begins, so nothing has come before."""
        self.whole = True
        return 0

    # What has come since.

    cdef int note_view(self, object view, bytes cut) except -1:
        """A view begins: perhaps one with a member that can give what another could not."""
        self.refused = False
        return self.note(VIEW, msgpack.packb([view.pack(), cut]))

    cdef int note_cast(self, Message message, tuple departed) except -1:
        """A cast has its place in the order; a sender that is not in the view stands in `departed`."""
        cdef unsigned char head[CAST_HEAD]
        cdef Py_ssize_t size = message.size()
        if not self.whole and self.mark < 0:
            return 0                    # it belongs to no state
        if message.source < 0 and departed != self.departed:
            self.departed = departed
            self.note(DEPARTED, msgpack.packb([member.pack() for member in departed]))
        head[0], head[1] = CAST, message.degree
        store32(head + 2, <uint32_t>message.source)
        store64(head + 6, message.seqno)
        store64(head + 14, message.stamp)
        store32(head + 22, <uint32_t>size)
        self.append(head, CAST_HEAD)
        return self.append(message.data(), size)

    cdef int note(self, int kind, bytes packed) except -1:
        cdef unsigned char head[HEAD]
        if not self.whole and self.mark < 0:
            return 0
        head[0] = <unsigned char>kind
        store32(head + 1, <uint32_t>len(packed))
        self.append(head, HEAD)
        return self.append(<const unsigned char*>packed, len(packed))

    cdef int append(self, const unsigned char* data, Py_ssize_t size) except -1:
        cdef unsigned char* piece = self.piece
        cdef Py_ssize_t some
        self.size += size
        while size:
            some = min(size, PIECE - self.used)
            memcpy(piece + self.used, data, some)
            self.used += some
            data += some
            size -= some
            if self.used == PIECE:
                self.close_piece()
        return 0

    cdef int close_piece(self) except -1:
        if self.used:
            self.since.append(bytes(self.piece[:self.used]))
            self.used = 0
        return 0

    # A state that is given anew.

    cdef bint is_due(self) noexcept:
        """Whether to ask for the state as it is now."""
        if self.asked:                  # the one that gives it may hang
            return self.mark >= 0 and self.size - self.mark_size > self.limit
        return not (self.whole or self.refused) or self.size > self.limit

    cdef bint ask(self) except -1:
        """It is asked for, and `begin` says as of where; False if so much has come that it is kept no more."""
        self.abandon()
        self.asked = True
        if self.size <= SIZE_MOST:
            return True
        self.whole = False
        self.forget()
        return False

    cdef int begin(self, object giver, uint32_t epoch, uint32_t start, object view, bytes cut) except -1:
        """A member gives it, as of this place in the order."""
        self.close_piece()
        self.asked = True
        self.giver, self.epoch, self.start, self.wanted = giver, epoch, start, 0
        self.coming = []
        self.mark, self.mark_size = len(self.since), self.size
        self.departed = ()
        return self.note_view(view, cut)

    cdef bint expects(self, object giver, uint32_t epoch, uint32_t start):
        """Whether a piece is of the state that comes."""
        return self.mark >= 0 and giver == self.giver and (epoch, start) == (self.epoch, self.start)

    cdef int take(self, bytes piece) except -1:
        """The next piece of it."""
        self.coming.append(piece)
        return 0

    cdef int finish(self) except -1:
        """All of it is here: what was before is let go."""
        self.given, self.coming = self.coming, []
        self.given_size = sum([len(piece) for piece in self.given])
        del self.since[:self.mark]
        self.size -= self.mark_size
        self.limit = max(self.least, 2 * self.given_size)
        self.whole = True
        return self.abandon()

    cdef int abandon(self) except -1:
        """It does not come: its giver is gone, or another is asked."""
        self.asked = False
        self.giver, self.mark, self.coming = None, -1, []
        if not self.whole:
            self.forget()
        return 0

    cdef int fail(self) except -1:
        """It cannot be given now: try again when twice as much has come, or in another view if nothing is kept."""
        self.abandon()
        self.refused = True
        self.limit = max(self.limit, 2 * self.size)
        return 0

    def forget(self):
        """What has come belongs to no state."""
        self.given, self.since = [], []
        self.given_size = self.used = self.size = 0
        self.departed = ()

    # For joiners.

    def pieces(self):
        """All of it: whether a piece is of what has come since, and the piece."""
        self.close_piece()
        found = [(False, piece) for piece in self.given] + [(True, piece) for piece in self.since]
        return iter(found)

    def given_bytes(self):
        """Of the state that was given last."""
        return self.given_size


def events(pieces):
    """What has come since, at the joiner: (view, cut), or (message, the members that had left); raises ProtocolError."""
    cdef bytes data = b"".join(pieces)
    cdef const unsigned char* p = data
    cdef const unsigned char* end = p + len(data)
    cdef Message message
    cdef Py_ssize_t size
    cdef tuple departed = ()
    while p < end:
        if p[0] == CAST and end - p >= CAST_HEAD:
            size = load32(p + 22)
            if size > end - p - CAST_HEAD:
                break
            message = Message.new(size)
            memcpy(message.room(size), p + CAST_HEAD, size)
            message.stop += size
            message.degree, message.source = p[1], <int32_t>load32(p + 2)
            message.seqno, message.stamp = load64(p + 6), load64(p + 14)
            p += CAST_HEAD + size
            yield message, departed
        elif p[0] in (VIEW, DEPARTED) and end - p >= HEAD and load32(p + 1) <= end - p - HEAD:
            size = load32(p + 1)
            fields = unpack(p[HEAD:HEAD + size], "what has come since a state", depth=5)
            if p[0] == VIEW:
                view, cut = view_in(fields)
                yield view, cut
            else:
                departed = members_in(fields)
            p += HEAD + size
        else:
            break
    if p < end:
        raise ProtocolError("what has come since a state is cut short")


def members_in(fields):
    """The members of a record."""
    if not isinstance(fields, list):
        raise ProtocolError("members that no view had")
    return tuple([Member.unpack(member) for member in fields])


def view_in(fields):
    """The view of a record, and its cut."""
    match fields:
        case [[*view], bytes(cut)]:
            return View.unpack(view), cut
    raise ProtocolError("a view that no member has installed")
