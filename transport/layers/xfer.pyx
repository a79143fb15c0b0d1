"""XFER: a joiner gets the state as it stood at the view that admits it (Horus 4.8: H76; A44, F19, F20).

Promises: a joiner's application sees the state at that view, then every cast since, nothing
missed and nothing twice; the others go on meanwhile. What a piece of state holds is the business
of the application, which is asked with `up_give_state` and told with `up_take_state`.

The donor is the oldest member whose state is complete for all to see; where there is none, all who
are complete give, and the joiner takes from the first of them. A donor gives a few pieces, and one
more for each that the joiner acknowledges, so state never crowds out other work. The joiner buffers
views and casts until it has all. Its COMPLETE has a place in the order, so all know from when on it
may be a donor. A change of view drops what is under way between two members, so the donor repeats
what was not acknowledged; if the donor is gone, another starts again as of that view (F21). Who
leaves finishes what it gives first.

Needs total order. Where nobody has state (only witnesses were there) a joiner begins empty.
"""

from collections import deque

import msgpack

from orcalike.transport.errors import ProtocolError

from libc.stdint cimport uint32_t

from orcalike.transport.layers.base cimport EMPTY, NONE, WHOLE, Core, Layer
from orcalike.transport.wire.bytes cimport load32, store32
from orcalike.transport.wire.message cimport Message

cdef enum:
    # The first byte of a cast, ...
    DATA = 0
    COMPLETE = 1
    # ... and of a message to one member; then, but for OTHER, the epoch (4) and a number (4).
    PIECE = 2
    LAST = 3
    WANT = 4                        # the number is that of the piece that is wanted next
    OTHER = 5
    HEADER = 9
    AHEAD = 4                       # pieces that are given before one is acknowledged
    ANYBODY = 0                     # as a donor: all who are complete, whether it is known or not


cdef class Gift:
    """State on its way to one joiner."""


cdef class Xfer(Layer):
    """A joiner gets the state as it stood at the view that admits it."""

    name = "XFER"
    needs = frozenset({"TOTAL_ORDER", "VIEWS"})
    gives = frozenset({"STATE"})

    def __init__(self, Core core, config, me):
        super().__init__(core)
        self.donors = {}
        self.gifts = {}
        self.buffered = []
        self.pieces = []
        self.kept = []

    cpdef cast(self, Message message):
        message.push(1)[0] = DATA
        if self.complete:
            self.below.cast(message)
        else:
            self.kept.append(message)   # behind COMPLETE: others may wait for that

    cdef cast_kept(self):
        """Cast what was cast before this member's state was complete."""
        kept, self.kept = self.kept, []
        for message in kept:
            self.below.cast(message)

    cpdef send(self, Message message, tuple members):
        message.push(1)[0] = OTHER
        self.below.send(message, members)

    cpdef leave(self):
        if self.gifts:
            self.leaves = True
        else:
            self.below.leave()

    cpdef proceed(self):
        for gift in list(self.gifts.values()):
            self.give(gift)
        if self.leaves and not self.gifts:
            self.leaves = False
            self.below.leave()

    cpdef bint up_may_leave(self):
        if not self.gifts:
            return True
        self.leaves = True              # it became a donor after it had asked to leave
        return False

    cpdef up_cast(self, Message message):
        cdef unsigned char* kind
        if not self.complete:
            # Until it is handed up, `core.departed` may have become another one.
            self.buffered.append([message.copy(), self.core.departed])
            return
        kind = message.pop(1)
        if kind is NULL or kind[0] > COMPLETE:
            self.above.up_system_error(f"member {message.source}: a cast of no kind")
        elif kind[0] == DATA:
            if not self.silent:
                self.above.up_cast(message)
        elif message.source >= 0:
            joiner = self.view.members[message.source].incarnation
            self.donors.pop(joiner, None)
            self.gifts.pop(joiner, None)
            self.tell_incomplete()
            if self.leaves:
                self.core.again(self)

    cpdef up_send(self, Message message):
        cdef int kind = message.data()[0] if message.size() else DATA
        if kind == OTHER:
            message.pop(1)
            self.above.up_send(message)
        elif message.size() < HEADER or not PIECE <= kind <= WANT:
            self.above.up_system_error(f"member {message.source}: a message of no kind")
        elif kind == WANT:
            self.acknowledged(message.source, message)
        else:
            self.take(message.source, message)

    cpdef up_blocked(self, object missing, str rule):
        self.blocked = (missing, rule)      # said again to one that gets its state, and so a view
        self.above.up_blocked(missing, rule)

    cpdef up_view(self, object view, bytes cut):
        if not self.replays:
            self.blocked = None
        if self.view is None:
            self.view = view
            self.epoch = view.number
            self.complete = (len(view.members) == 1 or self.core.me.witness
                             or self.core.is_broken("joiner-without-state"))
            if not self.complete:
                self.below.credit(False)
        elif self.complete:
            self.admit(view)
        if not self.complete:
            self.newest = view
            if self.giver is not None and view.place(self.giver) < 0:
                self.forget_pieces()
            self.below.incomplete((self.core.me.incarnation,))
            self.buffered.append((view, cut))
            return
        self.tell_incomplete()
        self.above.up_view(view, cut)
        self.cast_kept()
        self.hand_out()
        if self.leaves:                 # whom it gave to may be gone
            self.core.again(self)

    cdef tell_incomplete(self):
        """TOTAL must know whose word counts (H9); this member's own as soon as it is complete."""
        me = self.core.me.incarnation
        self.below.incomplete([member for member in self.donors if member != me])

    cpdef int up_has_state(self):
        """A witness has all there is, the empty state, as long as nobody with replicas has more."""
        if not self.core.me.witness:
            return WHOLE if self.complete else NONE
        if self.view is None:
            return NONE
        ranked = [member for member in self.view.members if not member.witness]
        if not ranked:
            return WHOLE
        return EMPTY if all([member.incarnation in self.donors for member in ranked]) else NONE

    cdef admit(self, object view):
        """Who waits for state in `view`, and from whom; all whose state is complete agree."""
        for member in view.members:
            if self.view.place(member.incarnation) < 0 and not member.witness:
                self.donors[member.incarnation] = ANYBODY
        oldest = view.members[0].incarnation
        present = {member.incarnation for member in view.members}
        able = [member.incarnation for member in view.members
                if not member.witness and member.incarnation not in self.donors]
        # Where none is complete for all to see, some who joined before may be, and may have seen
        # casts, which a witness cannot give: each of these gives, and a joiner takes from one.
        unsure = [member.incarnation for member in view.members
                  if not member.witness and self.view.place(member.incarnation) >= 0]
        alone = unsure[0] if not able and len(unsure) == 1 else None
        giver = able[0] if able else ANYBODY if unsure else oldest
        self.view = view
        if self.core.is_broken("donor-not-replaced"):
            present |= set(self.donors.values()) - {ANYBODY}
        self.donors = {joiner: donor if donor in present else oldest if joiner == alone else giver
                       for joiner, donor in self.donors.items() if joiner in present}
        self.gifts = {joiner: gift for joiner, gift in self.gifts.items() if joiner in present}

    # The donor.

    cdef hand_out(self):
        """Begin to give to those who wait for this member; repeat what may have been dropped."""
        cdef Gift gift
        for gift in self.gifts.values():
            for number, kind, body in gift.sent:
                self.tell(gift, number, kind, body)
        me = self.core.me.incarnation
        waiting = msgpack.packb(list(self.donors.items()))
        for joiner, donor in self.donors.items():
            # This member may stand here itself, until its COMPLETE has its place in the order.
            mine = donor == me or donor == ANYBODY and not self.core.me.witness
            if mine and joiner != me and joiner not in self.gifts:
                gift = self.gifts[joiner] = Gift.__new__(Gift)
                gift.joiner = joiner
                gift.epoch = self.view.number
                gift.pieces = iter(()) if self.core.me.witness else self.above.up_give_state()
                gift.waiting = waiting
                gift.sent = deque()
                self.give(gift)

    cdef give(self, Gift gift):
        """The next pieces, as far ahead as may be."""
        while not self.replays and not gift.over and len(gift.sent) < AHEAD:
            piece = next(gift.pieces, None)
            if piece == b"":
                return                  # nothing now: `again` has this layer go on
            gift.over = piece is None
            kind = LAST if gift.over else PIECE
            body = gift.waiting if gift.over else piece
            gift.sent.append((gift.next, kind, body))
            self.tell(gift, gift.next, kind, body)
            gift.next += 1

    cdef tell(self, Gift gift, uint32_t number, int kind, bytes body):
        cdef Message message = Message(body)
        store_header(message, kind, gift.epoch, number)
        self.below.send(message, (self.view.place(gift.joiner),))

    cdef acknowledged(self, int source, Message message):
        cdef Gift gift
        if not self.complete:
            return
        gift = self.gifts.get(self.view.members[source].incarnation)
        if gift is None or load32(message.data() + 1) != gift.epoch:
            return
        wanted = load32(message.data() + 5)
        while gift.sent and gift.sent[0][0] < wanted:
            gift.sent.popleft()
        if wanted == 1 and self.core.is_broken("snapshot-late"):
            gift.pieces = self.above.up_give_state()
        self.give(gift)

    # The joiner.

    cdef take(self, int source, Message message):
        """A piece of state, or the word that it was the last."""
        cdef unsigned char* header = message.pop(HEADER)
        cdef uint32_t epoch = load32(header + 1)
        cdef object giver
        cdef Message want
        if self.complete or epoch < self.epoch:
            return
        if epoch > self.epoch:
            self.begin_again(epoch)
        giver = self.newest.members[source].incarnation
        if self.giver is None:
            self.giver = giver
        elif self.giver != giver:
            return                      # several give, each in pieces of its own
        if load32(header + 5) == self.wanted:
            self.wanted += 1
            if header[0] == LAST:
                self.finish(message.body)
                return
            self.pieces.append(message.body)
        want = Message.new(0)
        store_header(want, WANT, self.epoch, self.wanted)
        self.below.send(want, (source,))

    cdef begin_again(self, uint32_t epoch):
        """Another donor gives the state as of a later view: forget what was before that."""
        for start, event in enumerate(self.buffered):
            if isinstance(event, tuple) and event[0].number == epoch:
                break
        else:
            raise ProtocolError(f"state as of view {epoch}, which was not installed here")
        self.epoch = epoch
        self.forget_pieces()
        del self.buffered[:start]

    cdef forget_pieces(self):
        """Whoever gives next gives all of it."""
        self.giver = None
        self.wanted = 0
        self.pieces.clear()

    cdef finish(self, bytes waiting):
        """The state is whole: hand it up, then what was buffered on top of it."""
        cdef Message done = Message.new(0)
        cdef Gift gift
        cdef tuple departed = self.core.departed
        donors = unpack_waiting(waiting)
        pieces, self.pieces = self.pieces, []
        buffered, self.buffered = self.buffered, []
        if self.core.is_broken("forget-buffered"):
            buffered = [event for event in buffered if isinstance(event, tuple)]
        self.complete = self.replays = True
        self.donors = donors
        for piece in pieces:
            self.above.up_take_state(piece)
        self.view, cut = buffered[0]
        self.above.up_view(self.view, cut)
        self.hand_out()                 # it may be the one who gives, as of this view
        for event in buffered[1:]:
            if isinstance(event, tuple):
                self.up_view(event[0], event[1])
            else:
                self.core.departed = event[1]
                self.up_cast(event[0])
        self.core.departed = departed
        self.replays = False            # now the view is the one that messages are sent in
        for gift in self.gifts.values():
            self.give(gift)
        self.below.credit(True)
        self.tell_incomplete()
        done.push(1)[0] = COMPLETE
        self.below.cast(done)
        self.cast_kept()
        if self.blocked is not None:
            missing, rule = self.blocked
            self.above.up_blocked(missing, rule)

    cpdef dict dump(self):
        return {"complete": self.complete, "waiting": len(self.donors),
                "giving": len(self.gifts), "buffered": len(self.buffered)}


cdef dict unpack_waiting(bytes waiting):
    """Donor by who waits for state; raises ProtocolError."""
    try:
        donors = dict(msgpack.unpackb(waiting, max_ext_len=0))
    except Exception:
        raise ProtocolError("state that ends in no list of who waits") from None
    if all(isinstance(incarnation, int) for pair in donors.items() for incarnation in pair):
        return donors
    raise ProtocolError("state that ends in no list of who waits")


cdef int store_header(Message message, int kind, uint32_t epoch, uint32_t number) except -1:
    cdef unsigned char* header = message.push(HEADER)
    header[0] = <unsigned char>kind
    store32(header + 1, epoch)
    store32(header + 5, number)
    return 0
