# cython: allow_none_for_extension_args=False
"""The members that have the state, as layers below one that takes it: which of them gives it, and how (H76, A44).

All that are complete agree on the donor of each joiner (`admit`, `change_donor`). It gives a few pieces, and one more for
each that is acknowledged.

One that only keeps the state (`keep`, `transport.xfer.kept_state`) takes it of the first that is complete for all to
see, as of its KEEP's place in the order, and gives it where no member with replicas is left that could.
"""

from collections import deque

import msgpack

from orcalike.transport.errors import OrcalikeError
from orcalike.transport.wire.control import shown
from orcalike.transport.wording import text_of

from libc.stdint cimport uint32_t

from orcalike.transport.layers.base cimport Core, Layer
from orcalike.transport.wire.bytes cimport load32, load64, store32
from orcalike.transport.wire.message cimport Message
from orcalike.transport.xfer.kept_state cimport SIZE_LEAST, KeptState

cdef enum:
    AHEAD = 8                       # pieces that are given before one is acknowledged
    REASON_MAX = 2000               # bytes of a reason


cdef class Transfer:
    """State on its way to one joiner, or to a member that keeps it."""


cdef class Donor(Layer):
    """A member that has the state, or keeps it."""

    def __init__(self, Core core):
        super().__init__(core)
        self.donors = {}
        self.transfers = {}

    def keep(self, Py_ssize_t least=SIZE_LEAST):
        """Keep the state of the others, and all that comes, to give it when they are gone: this member is a witness.

        When more than `least` bytes have come since the state that it has, and twice the bytes of that, it asks for another.
        """
        self.silent = True
        self.keeper = KeptState(least)

    cpdef leave(self):
        if self.has_joiners():
            self.leaves = True
        else:
            self.below.leave()

    cdef bint has_joiners(self):
        """Whether a joiner waits for this member; one that keeps the state can have it of another."""
        cdef Transfer transfer
        for transfer in list(self.transfers.values()):
            if transfer.is_kept:
                self.take_back(transfer.joiner)
        return bool(self.transfers)

    cpdef bint up_may_leave(self):
        if not self.has_joiners():
            return True
        self.leaves = True              # it became a donor after it had asked to leave
        return False

    cdef admit(self, object view):
        """Which members wait for state in `view`, and from which donors; all whose state is complete agree."""
        for member in view.members:
            if self.known_view.position(member.incarnation) < 0 and not member.witness:
                self.donors[member.incarnation] = ANY_DONOR
        oldest = view.members[0].incarnation
        present = {member.incarnation for member in view.members}
        able = self.able_in(view)
        # If none is complete for all to see, some that joined before may be, and may have seen
        # casts, which a witness cannot give: each of these gives, and a joiner takes from one.
        unsure = [member.incarnation for member in view.members
                  if not member.witness and self.known_view.position(member.incarnation) >= 0]
        alone = unsure[0] if not able and len(unsure) == 1 else None
        giver = able[0] if able else ANY_DONOR if unsure else oldest
        self.known_view = view
        self.donors = {joiner: donor if donor in present else oldest if joiner == alone else giver
                       for joiner, donor in self.donors.items() if joiner in present}
        for joiner in [joiner for joiner in self.transfers if joiner not in present]:
            self.take_back(joiner)

    cdef change_donor(self, object joiner, Message message):
        """A joiner cannot do with what it got: all whose state is complete agree on another donor."""
        cdef const unsigned char* p = message.data()
        cdef object me = self.core.me.incarnation
        cdef Py_ssize_t i
        if joiner not in self.donors or message.size() % 8 or message.size() > 8 * TRIES:
            return
        tried = [load64(p + 8 * i) for i in range(message.size() // 8)]
        able = self.able()
        untried = [member for member in able if member not in tried]
        others = [member for member in untried if member != self.donors[joiner]]
        # Where none is complete for all to see, each that is knows only of itself.
        giver = (others or untried or able or [ANY_DONOR])[0]
        self.donors[joiner] = giver
        self.take_back(joiner)
        if joiner != me and self.is_donor(joiner):
            self.begin(joiner, <uint32_t>message.seqno, me in tried)
        if self.leaves:
            self.core.again(self)

    cdef list able(self):
        return self.able_in(self.known_view)

    cdef list able_in(self, object view):
        """The members with replicas that are complete for all to see."""
        return [member.incarnation for member in view.members
                if not member.witness and member.incarnation not in self.donors]

    # The state, to joiners.

    cdef bint is_donor(self, object joiner):
        """Whether this member gives to a joiner, as far as it has anything to give.

        One that keeps the state does it too where the joiner itself is all that is left: there is no other.
        """
        cdef object donor = self.donors[joiner]
        if donor == self.core.me.incarnation:
            return True
        if self.core.me.witness:
            return self.keeper is not None and self.keeper.whole and donor in (ANY_DONOR, joiner)
        return donor == ANY_DONOR

    cdef take_back(self, object joiner):
        """A transfer is over: nothing waits for it any more."""
        cdef Transfer transfer = self.transfers.pop(joiner, None)
        if transfer is not None:
            close = getattr(transfer.pieces, "close", None)
            transfer.over = True
            transfer.pieces = iter(())
            if close is not None:
                close()

    cdef hand_out(self):
        """Begin to give to those that wait for this member; repeat what may have been dropped."""
        cdef Transfer transfer
        for transfer in self.transfers.values():
            for number, kind, body in transfer.sent:
                self.tell(transfer, number, kind, body)
        me = self.core.me.incarnation
        for joiner in list(self.donors):
            # This member may stand here itself, until its COMPLETE has its place in the order.
            if joiner != me and joiner not in self.transfers and self.is_donor(joiner):
                self.begin(joiner, 0, False)

    cdef begin(self, object joiner, uint32_t start, bint refused):
        """Begin to give the state as it is now; `refused`: say only that there is no other donor."""
        cdef Transfer transfer = Transfer.__new__(Transfer)
        self.transfers[joiner] = transfer
        transfer.joiner = joiner
        transfer.epoch = self.known_view.number
        transfer.start = start
        transfer.waiting = msgpack.packb(list(self.donors.items()))
        transfer.sent = deque()
        transfer.pieces = iter(())
        if refused:
            self.end_transfer(transfer, REFUSED, b"no other member has the state")
            return
        if self.keeper is not None and self.keeper.whole:
            transfer.pieces = self.keeper.pieces()
        elif not self.core.me.witness:
            try:
                transfer.pieces = self.above.up_give_state()
            except Exception as error:  # whatever it is, the giver goes on
                self.end_transfer(transfer, FAILED, reason_of(error))
                return
        self.give(transfer)

    cdef give(self, Transfer transfer):
        """The next pieces, as far ahead as may be."""
        while not self.replays and not transfer.over and len(transfer.sent) < AHEAD:
            try:
                piece = next(transfer.pieces, None)
            except Exception as error:
                self.end_transfer(transfer, FAILED, reason_of(error))
                return
            if piece == b"":
                return                  # nothing now: `again` has this layer go on
            if piece is None:
                self.end_transfer(transfer, LAST, transfer.waiting)
            elif self.keeper is not None:
                self.put(transfer, SINCE if piece[0] else PIECE, piece[1])
            else:
                self.put(transfer, PIECE, piece)

    cdef end_transfer(self, Transfer transfer, int kind, bytes body):
        transfer.over = True
        self.put(transfer, kind, body)

    cdef put(self, Transfer transfer, int kind, bytes body):
        """Send the next piece, and keep it until it is acknowledged."""
        transfer.sent.append((transfer.next, kind, body))
        self.tell(transfer, transfer.next, kind, body)
        transfer.next += 1

    cdef tell(self, Transfer transfer, uint32_t number, int kind, bytes body):
        cdef Message message
        if self.replays:
            return                      # in no view yet: `finish` repeats it
        message = Message(body)
        store_header(message, kind, transfer.epoch, transfer.start, number)
        self.below.send(message, (self.known_view.position(transfer.joiner),))

    cdef acknowledged(self, int source, Message message):
        cdef Transfer transfer
        if not self.complete:
            return
        transfer = self.transfers.get(self.known_view.members[source].incarnation)
        if (transfer is None or load32(message.data() + 1) != transfer.epoch
                or load32(message.data() + 5) != transfer.start):
            return
        wanted = load32(message.data() + 9)
        while transfer.sent and transfer.sent[0][0] < wanted:
            transfer.sent.popleft()
        self.give(transfer)
        if transfer.is_kept and transfer.over and not transfer.sent:
            self.take_back(transfer.joiner)

    # The member that keeps the state, and the one that gives it to that one.

    cdef renew_kept(self):
        """Ask for the state as it is now, if much has come since the one that is kept."""
        if self.known_view is not None and self.keeper.is_due() and self.able():
            if not self.keeper.ask():
                self.above.up_system_error("the state of the group is kept no more: the members do not give it anew")
            self.cast_kind(KEEP)

    cdef give_to_keeper(self, object member, Message message):
        """A witness asks for the state as it is here: the first that is complete for all to see gives it."""
        cdef object me = self.core.me.incarnation
        cdef uint32_t start = <uint32_t>message.seqno
        able = self.able()
        if self.keeper is not None and member.incarnation == me:
            if able:
                self.keeper.begin(able[0], self.known_view.number, start, self.known_view, self.cut)
            else:
                self.keeper.abandon()
        elif member.witness and able and able[0] == me and not self.leaves:
            self.take_back(member.incarnation)
            self.begin(member.incarnation, start, False)
            (<Transfer>self.transfers[member.incarnation]).is_kept = True

    cdef keep_view(self, object view, bytes cut):
        """A view begins: it is kept, and the state is asked for anew if the member that gave it is gone."""
        self.cut = cut
        self.keeper.note_view(view, cut)
        if self.keeper.giver is not None and view.position(self.keeper.giver) < 0:
            self.keeper.abandon()
        self.core.again(self)

    cdef take_to_keep(self, int source, Message message):
        """A piece of the state that is kept."""
        cdef unsigned char* header = message.pop(HEADER)
        cdef uint32_t epoch = load32(header + 1), start = load32(header + 5), number = load32(header + 9)
        cdef Message want
        if not self.keeper.expects(self.known_view.members[source].incarnation, epoch, start):
            return
        if number == self.keeper.wanted:
            self.keeper.wanted += 1
            if header[0] == PIECE:
                self.keeper.take(message.body)
            elif header[0] == LAST:
                self.keeper.finish()
            else:
                self.keeper.fail()
                why = shown(message.body.decode(errors="replace"))
                self.above.up_system_error(f"a member cannot give the state that is to be kept: {why}")
        want = Message.new(0)
        store_header(want, WANT, epoch, start, number + 1)
        self.below.send(want, (source,))

    cdef cast_kind(self, int kind):
        """Cast that alone."""
        cdef Message message = Message.new(0)
        message.push(1)[0] = <unsigned char>kind
        self.below.cast(message)


cdef bytes reason_of(object error):
    """Why a state could not be given or taken, as it travels."""
    text = text_of(error)
    if not isinstance(error, OrcalikeError):
        text = f"{type(error).__name__}: {text}"
    return text.encode(errors="replace")[:REASON_MAX].decode(errors="ignore").encode()


cdef int store_header(Message message, int kind, uint32_t epoch, uint32_t start,
                      uint32_t number) except -1:
    cdef unsigned char* header = message.push(HEADER)
    header[0] = <unsigned char>kind
    store32(header + 1, epoch)
    store32(header + 5, start)
    store32(header + 9, number)
    return 0
