# cython: allow_none_for_extension_args=False
"""XFER: a joiner gets the state as it stood at the view that admits it (Horus 4.8: H76; A44, F20).

Promises: a joiner's application sees the state at that view, then every cast since, nothing
missed and nothing twice; the others go on meanwhile. What a piece of state holds is the business
of the application, which is asked with `up_give_state` and given it with `up_take_state`.

The donor is the oldest member whose state is complete for all to see; if there is none, all that
are complete give, and the joiner takes from the first of them. A donor gives a few pieces, and one
more for each that the joiner acknowledges, so state never crowds out other work: whatever else goes
to the joiner waits behind a few pieces at the most. The joiner hands each piece up as it comes, and
buffers views and casts until it has all: up to a bound the senders need not wait for that. Its
COMPLETE has a place in the order, so all know from when on it may be a donor. A change of view drops
what is under way between two members, so the donor repeats what was not acknowledged; if the donor is
gone, another starts again as of that view (F21). A donor that leaves finishes what it gives first.

A donor that cannot give says why (FAILED), and goes on with all else. A joiner that did not get all,
or cannot take it, is no holder: it casts AGAIN, and at that place in the order another member begins
to give, the state as of there. If that fails too, or there is no other (REFUSED), it leaves, and its
application learns why it could not join. If no piece comes for `slow_timeout`, and twice as long each
time, it casts AGAIN too: then another member gives if there is one, else the same one from the start.

Needs total order. If no member has state (only witnesses were there) a joiner begins empty.
"""

from collections import deque

import msgpack

from orcalike.transport.application_state import State
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.wire.control import unpack

from libc.stdint cimport uint32_t

from orcalike.transport.layers.base cimport NEVER, Core, Layer
from orcalike.transport.wire.bytes cimport load32, load64, store32, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    # The first byte of a cast, ...
    DATA = 0
    COMPLETE = 1
    AGAIN = 6                       # then the incarnations of the donors that were tried (8 each)
    # ... and of a message to one member; then, but for OTHER, the epoch (4), the start (4) and a
    # number (4). The state is that at the view `epoch`, or at the cast whose seqno ends in `start`.
    PIECE = 2
    LAST = 3
    WANT = 4                        # the number is that of the piece that is wanted next
    OTHER = 5
    FAILED = 7                      # in a piece's place: why this donor cannot give the rest
    REFUSED = 8                     # likewise, and no other member can
    HEADER = 13
    AHEAD = 8                       # pieces that are given before one is acknowledged
    ANY_DONOR = 0                     # as a donor: all that are complete, whether it is known or not
    TRIES = 2                       # donors that a joiner tries
    REASON_MAX = 2000               # bytes of a reason
    BUFFERED_MAX = 67108864         # bytes of casts that a joiner keeps before senders must wait
    CAST_COST = 256                 # bytes that one takes beside its own


cdef class Transfer:
    """State on its way to one joiner."""


cdef class Xfer(Layer):
    """A joiner gets the state as it stood at the view that admits it."""

    name = "XFER"
    needs = frozenset({"TOTAL_ORDER", "VIEWS"})
    gives = frozenset({"STATE"})

    def __init__(self, Core core, config, me):
        super().__init__(core)
        self.donors = {}
        self.transfers = {}
        self.buffered = []
        self.tried = []
        self.kept = []
        self.piece_timeout = config.slow

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

    cpdef list unsent(self):
        cdef Message message
        cdef list found = []
        cdef list kept = []
        for each in self.kept:
            message = Message.view((<Message>each).data(), (<Message>each).size())
            message.owner = each
            kept.append(message)
        for message in self.below.unsent() + kept:
            if message.size() and message.pop(1)[0] == DATA:
                found.append(message)
        return found

    cpdef lower(self, Message packet):
        if packet.owner in self.kept:
            packet.owner.degree = packet.degree
        else:
            self.below.lower(packet)

    cpdef send(self, Message message, tuple members):
        message.push(1)[0] = OTHER
        self.below.send(message, members)

    cpdef leave(self):
        if self.transfers:
            self.leaves = True
        else:
            self.below.leave()

    cpdef proceed(self):
        for transfer in list(self.transfers.values()):
            self.give(transfer)
        if self.leaves and not self.transfers:
            self.leaves = False
            self.below.leave()

    cpdef bint up_may_leave(self):
        if not self.transfers:
            return True
        self.leaves = True              # it became a donor after it had asked to leave
        return False

    cpdef up_cast(self, Message message):
        cdef unsigned char* kind
        if not self.complete:
            self.buffer(message)
            return
        kind = message.pop(1)
        if kind is NULL or kind[0] > COMPLETE and kind[0] != AGAIN:
            self.above.up_system_error(f"member {message.source}: a cast of no kind")
            if message.source >= 0:
                self.below.flush((message.source,))
        elif kind[0] == DATA:
            if not self.silent:
                self.above.up_cast(message)
        elif message.source < 0:
            return                          # it has left since
        elif kind[0] == AGAIN:
            self.change_donor(self.view.members[message.source].incarnation, message)
        else:
            joiner = self.view.members[message.source].incarnation
            self.donors.pop(joiner, None)
            self.take_back(joiner)
            self.tell_incomplete()
            if self.leaves:
                self.core.again(self)

    cpdef up_send(self, Message message):
        cdef int kind = message.data()[0] if message.size() else DATA
        if kind == OTHER:
            message.pop(1)
            self.above.up_send(message)
        elif message.size() < HEADER or not (PIECE <= kind <= WANT or FAILED <= kind <= REFUSED):
            raise ProtocolError("a message of no kind for XFER")
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
            self.complete = len(view.members) == 1 or self.core.me.witness
        elif self.complete:
            self.admit(view)
        if not self.complete:
            self.newest = view
            if self.giver is not None and view.position(self.giver) < 0:
                self.forget_giver()
            self.expect()
            self.below.incomplete((self.core.me.incarnation,))
            self.buffered.append((view, cut))
            return
        self.tell_incomplete()
        self.above.up_view(view, cut)
        self.cast_kept()
        self.hand_out()
        if self.leaves:                 # those that it gave to may be gone
            self.core.again(self)

    cdef tell_incomplete(self):
        """TOTAL must know whose word counts (H9); this member's own as soon as it is complete."""
        me = self.core.me.incarnation
        self.below.incomplete([member for member in self.donors if member != me])

    cpdef int up_has_state(self):
        """A witness has all there is, the empty state, as long as no member with replicas has more."""
        if not self.core.me.witness:
            return State.WHOLE if self.complete else State.NONE
        if self.view is None:
            return State.NONE
        ranked = [member for member in self.view.members if not member.witness]
        if not ranked:
            return State.WHOLE
        known = all([member.incarnation in self.donors for member in ranked])
        return State.EMPTY if known else State.NONE

    cdef admit(self, object view):
        """Which members wait for state in `view`, and from which donors; all whose state is complete agree."""
        for member in view.members:
            if self.view.position(member.incarnation) < 0 and not member.witness:
                self.donors[member.incarnation] = ANY_DONOR
        oldest = view.members[0].incarnation
        present = {member.incarnation for member in view.members}
        able = [member.incarnation for member in view.members
                if not member.witness and member.incarnation not in self.donors]
        # If none is complete for all to see, some that joined before may be, and may have seen
        # casts, which a witness cannot give: each of these gives, and a joiner takes from one.
        unsure = [member.incarnation for member in view.members
                  if not member.witness and self.view.position(member.incarnation) >= 0]
        alone = unsure[0] if not able and len(unsure) == 1 else None
        giver = able[0] if able else ANY_DONOR if unsure else oldest
        self.view = view
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
        able = [member.incarnation for member in self.view.members
                if not member.witness and member.incarnation not in self.donors]
        untried = [member for member in able if member not in tried]
        others = [member for member in untried if member != self.donors[joiner]]
        # Where none is complete for all to see, each that is knows only of itself.
        giver = (others or untried or able or [ANY_DONOR])[0]
        self.donors[joiner] = giver
        self.take_back(joiner)
        if giver == me or giver == ANY_DONOR and not self.core.me.witness and joiner != me:
            self.begin(joiner, <uint32_t>message.seqno, me in tried)
        if self.leaves:
            self.core.again(self)

    # The donor.

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
        for joiner, donor in list(self.donors.items()):
            # This member may stand here itself, until its COMPLETE has its place in the order.
            mine = donor == me or donor == ANY_DONOR and not self.core.me.witness
            if mine and joiner != me and joiner not in self.transfers:
                self.begin(joiner, 0, False)

    cdef begin(self, object joiner, uint32_t start, bint refused):
        """Begin to give the state as it is now; `refused`: say only that there is no other donor."""
        cdef Transfer transfer = Transfer.__new__(Transfer)
        self.transfers[joiner] = transfer
        transfer.joiner = joiner
        transfer.epoch = self.view.number
        transfer.start = start
        transfer.waiting = msgpack.packb(list(self.donors.items()))
        transfer.sent = deque()
        transfer.pieces = iter(())
        if refused:
            self.end_transfer(transfer, REFUSED, b"no other member has the state")
            return
        if not self.core.me.witness:
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
        self.below.send(message, (self.view.position(transfer.joiner),))

    cdef acknowledged(self, int source, Message message):
        cdef Transfer transfer
        if not self.complete:
            return
        transfer = self.transfers.get(self.view.members[source].incarnation)
        if (transfer is None or load32(message.data() + 1) != transfer.epoch
                or load32(message.data() + 5) != transfer.start):
            return
        wanted = load32(message.data() + 9)
        while transfer.sent and transfer.sent[0][0] < wanted:
            transfer.sent.popleft()
        self.give(transfer)

    # The joiner.

    cdef expect(self):
        """The next piece is to come within the time limit of its donor."""
        self.deadline = self.core.now + self.piece_timeout

    cpdef expire(self):
        """Nothing has come for too long: perhaps the donor hangs, or its program does."""
        self.deadline = NEVER
        if not self.complete and not self.deaf:
            self.piece_timeout *= 2
            self.ask_again()

    cdef buffer(self, Message message):
        """Keep a cast until the state is here; the senders wait where that is too much."""
        cdef bint mine = self.newest is not None and message.source >= 0 and (
            self.newest.members[message.source].incarnation == self.core.me.incarnation)
        if mine and message.size() and message.data()[0] == AGAIN:
            self.start_again(<uint32_t>message.seqno)
            return
        # Until it is handed up, `core.departed` may have become another one.
        self.buffered.append([message.copy(), self.core.departed])
        self.buffered_bytes += message.size() + CAST_COST
        if self.buffered_bytes >= BUFFERED_MAX:
            self.below.credit(False)        # until then what is kept here counts as applied

    cdef take(self, int source, Message message):
        """A piece of state, or the word that it was the last."""
        cdef unsigned char* header = message.pop(HEADER)
        cdef uint32_t epoch = load32(header + 1)
        cdef uint32_t start = load32(header + 5)
        cdef object giver
        cdef Message want
        if self.complete or epoch < self.epoch or epoch == self.epoch and start != self.start:
            return
        if epoch > self.epoch:
            self.begin_again(epoch)
        if self.deaf:
            return
        giver = self.newest.members[source].incarnation
        if self.giver is None:
            self.giver = giver
        elif self.giver != giver:
            return                      # several give, each in pieces of its own
        if load32(header + 9) == self.wanted:
            self.wanted += 1
            if not self.take_next(header[0], message.body, self.newest.members[source].witness):
                return
        self.expect()
        want = Message.new(0)
        store_header(want, WANT, self.epoch, self.start, self.wanted)
        self.below.send(want, (source,))

    cdef bint take_next(self, int kind, bytes body, bint witness) except -1:
        """The next piece in order; whether more is wanted."""
        if kind == FAILED or kind == REFUSED:
            self.failed(body.decode(errors="replace"), kind == REFUSED)
            return False
        try:
            if not self.begun and (kind == PIECE or not witness):
                self.begun = True
                self.above.up_begin_state()
            if kind == PIECE:
                self.above.up_take_state(body)
                return True
            donors = unpack_waiting(body)
            if self.begun:              # else a witness gave: there is no state yet
                self.above.up_end_state()
        except Exception as error:      # whatever it is: this member is no holder
            self.failed(reason_of(error).decode(), False)
            return False
        self.finish(donors)
        return False

    cdef failed(self, str why, bint refused):
        """The state did not come, or cannot be taken: ask another donor, or give up."""
        self.deaf = True
        self.deadline = NEVER
        self.tried.append(self.giver)
        if not refused or not self.reason:
            self.reason = why
        if refused or len(self.tried) >= TRIES:
            self.gives_up = True
            self.below.leave()
        else:
            self.ask_again()

    cdef ask_again(self):
        """Have another donor give, as of this cast's place in the order."""
        cdef Message again = Message.new(8 * TRIES)
        again.room(8 * len(self.tried))
        for incarnation in self.tried:
            store64(again.base + again.stop, incarnation)
            again.stop += 8
        again.push(1)[0] = AGAIN
        self.below.cast(again)

    cdef start_again(self, uint32_t start):
        """This member's AGAIN is delivered: the state to come is as of here."""
        self.epoch = self.newest.number
        self.start = start
        self.forget_giver()
        self.expect()
        views = [event for event in self.buffered if isinstance(event, tuple)]
        self.buffered = views[len(views) - 1:]
        self.buffered_bytes = 0
        self.below.credit(True)

    cdef begin_again(self, uint32_t epoch):
        """Another donor gives the state as of a later view: forget what was before that."""
        for first, event in enumerate(self.buffered):
            if isinstance(event, tuple) and event[0].number == epoch:
                break
        else:
            raise ProtocolError(f"state as of view {epoch}, which was not installed here")
        self.epoch = epoch
        self.start = 0
        self.forget_giver()
        del self.buffered[:first]
        self.buffered_bytes = sum([(<Message>event[0]).size() + CAST_COST
                                   for event in self.buffered if isinstance(event, list)])

    cdef forget_giver(self):
        """The next donor gives all of it."""
        self.giver = None
        self.wanted = 0
        self.begun = self.deaf = False

    cdef finish(self, dict donors):
        """The state is whole: hand up what was buffered on top of it."""
        cdef Message done = Message.new(0)
        cdef Transfer transfer
        cdef tuple departed = self.core.departed
        buffered, self.buffered, self.buffered_bytes = self.buffered, [], 0
        self.complete = self.replays = True
        self.deadline = NEVER
        self.donors = donors
        self.view, cut = buffered[0]
        self.above.up_view(self.view, cut)
        self.hand_out()                 # it may be the donor, as of this view
        for event in buffered[1:]:
            if isinstance(event, tuple):
                self.up_view(event[0], event[1])
            else:
                self.core.departed = event[1]
                self.up_cast(event[0])
        self.core.departed = departed
        self.replays = False            # now the view is the one that messages are sent in
        for transfer in self.transfers.values():
            for number, kind, body in transfer.sent:
                self.tell(transfer, number, kind, body)
            self.give(transfer)
        self.below.credit(True)
        self.tell_incomplete()
        done.push(1)[0] = COMPLETE
        self.below.cast(done)
        self.cast_kept()
        if self.blocked is not None:
            missing, rule = self.blocked
            self.above.up_blocked(missing, rule)

    cpdef up_exit(self, str why):
        if self.gives_up:
            self.above.up_join_denied(f"the state of the group did not come: {self.reason}")
        self.above.up_exit(why)

    def awaited_donors(self):
        """The members of which one is to give this one its state; none if it has that, or no view yet."""
        if self.complete or self.newest is None:
            return ()
        me = self.core.me.incarnation
        return tuple([member for member in self.newest.members
                      if not member.witness and member.incarnation != me
                      and (self.giver is None or self.giver == member.incarnation)])

    cpdef dict dump(self):
        return {"complete": self.complete, "waiting": len(self.donors),
                "giving": len(self.transfers), "buffered": len(self.buffered),
                "tried": len(self.tried), "reason": self.reason,
                "epoch": self.epoch, "start": self.start}


cdef dict unpack_waiting(bytes waiting):
    """The donor of each member that waits for state; raises ProtocolError."""
    try:
        donors = dict(unpack(waiting, "a list", depth=2))
    except Exception:
        raise ProtocolError("state that ends in no list of waiting members") from None
    if all(isinstance(incarnation, int) for pair in donors.items() for incarnation in pair):
        return donors
    raise ProtocolError("state that ends in no list of waiting members")


cdef bytes reason_of(object error):
    """Why a state could not be given or taken, as it travels."""
    text = str(error) if isinstance(error, OrcalikeError) else f"{type(error).__name__}: {error}"
    return text.encode(errors="replace")[:REASON_MAX].decode(errors="ignore").encode()


cdef int store_header(Message message, int kind, uint32_t epoch, uint32_t start,
                      uint32_t number) except -1:
    cdef unsigned char* header = message.push(HEADER)
    header[0] = <unsigned char>kind
    store32(header + 1, epoch)
    store32(header + 5, start)
    store32(header + 9, number)
    return 0
