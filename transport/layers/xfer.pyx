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

A witness may keep the state without applying anything (`keep`; transport/xfer): pieces of a state as they were given,
and all casts and views since. By a KEEP it asks for another one, as of that place in the order, when much has come
since, and the first member that is complete for all to see gives it. When no other member has the state it gives what
it keeps, and the joiner applies what has come since (SINCE) to the state before what it has buffered itself.
"""

from orcalike.transport.application_state import State
from orcalike.transport.errors import ProtocolError
from orcalike.transport.wire.control import unpack
from orcalike.transport.xfer.kept_state import events

cimport cython
from libc.stdint cimport uint32_t

from orcalike.transport.layers.base cimport NEVER, Core
from orcalike.transport.wire.bytes cimport load32, store64
from orcalike.transport.wire.message cimport Message
from orcalike.transport.xfer.donor cimport (
    AGAIN, COMPLETE, DATA, FAILED, HEADER, KEEP, LAST, OTHER, PIECE, REFUSED, SINCE, TRIES, WANT, Donor, Transfer,
    reason_of, store_header,
)

cdef enum:
    BUFFERED_MAX = 67108864         # bytes of casts that a joiner keeps before senders must wait
    CAST_COST = 256                 # bytes that one takes beside its own


@cython.final
cdef class Xfer(Donor):
    """A joiner gets the state as it stood at the view that admits it."""

    name = "XFER"
    needs = frozenset({"TOTAL_ORDER", "VIEWS"})
    gives = frozenset({"STATE"})

    def __init__(self, Core core, config, me):
        super().__init__(core)
        self.buffered = []
        self.tried = []
        self.kept = []
        self.since = []
        self.piece_timeout = config.slow

    cpdef cast(self, Message message):
        message.push(1)[0] = DATA
        if self.complete:
            self.below.cast(message)
        else:
            self.kept.append(message)   # behind COMPLETE: others may wait for that

    cpdef object fast(self):
        found = self.below.fast() if self.complete and not self.silent else None
        return None if found is None else (found[0], found[1] + bytes([DATA]))

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

    cpdef proceed(self):
        if self.keeper is not None:
            self.renew_kept()
        for transfer in list(self.transfers.values()):
            self.give(transfer)
        if self.leaves and not self.transfers:
            self.leaves = False
            self.below.leave()

    cpdef up_cast(self, Message message):
        cdef unsigned char* kind
        if not self.complete:
            self.buffer(message)
            return
        kind = message.pop(1)
        if kind is NULL or kind[0] > COMPLETE and kind[0] not in (AGAIN, KEEP):
            self.above.up_system_error(f"member {message.source}: a cast of no kind")
            if message.source >= 0:
                self.below.flush((message.source,))
        elif kind[0] == DATA:
            if not self.silent:
                self.above.up_cast(message)
            elif self.keeper is not None:
                self.keeper.note_cast(message, self.core.departed)
                if self.keeper.is_due():
                    self.core.again(self)
        elif message.source < 0:
            return                          # it has left since
        elif kind[0] == KEEP:
            self.give_to_keeper(self.known_view.members[message.source], message)
        elif kind[0] == AGAIN:
            self.change_donor(self.known_view.members[message.source].incarnation, message)
        else:
            joiner = self.known_view.members[message.source].incarnation
            self.donors.pop(joiner, None)
            self.take_back(joiner)
            if joiner == self.core.me.incarnation:
                self.core.hurry_all()   # its donor may leave by now, and writes may have enough holders
            self.tell_incomplete()
            if self.leaves or self.keeper is not None:
                self.core.again(self)

    cpdef up_send(self, Message message):
        cdef int kind = message.data()[0] if message.size() else DATA
        if kind == OTHER:
            message.pop(1)
            self.above.up_send(message)
        elif message.size() < HEADER or not (PIECE <= kind <= WANT or FAILED <= kind <= SINCE):
            raise ProtocolError("a message of no kind for XFER")
        elif kind == WANT:
            self.acknowledged(message.source, message)
        elif self.keeper is not None:
            self.take_to_keep(message.source, message)
        else:
            self.take(message.source, message)

    cpdef up_blocked(self, object missing, str rule):
        self.blocked = (missing, rule)      # said again to one that gets its state, and so a view
        self.above.up_blocked(missing, rule)

    cpdef up_view(self, object view, bytes cut):
        if not self.replays:
            self.blocked = None
        if self.known_view is None:
            self.known_view = view
            self.epoch = view.number
            self.complete = len(view.members) == 1 or self.core.me.witness
            if self.keeper is not None and len(view.members) == 1:
                self.keeper.found()
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
        if self.keeper is not None:
            self.keep_view(view, cut)
        if self.leaves:                 # those that it gave to may be gone
            self.core.again(self)

    cdef tell_incomplete(self):
        """TOTAL must know whose word counts (H9); this member's own as soon as it is complete."""
        me = self.core.me.incarnation
        self.below.incomplete([member for member in self.donors if member != me])

    cpdef int up_has_state(self):
        """A witness has all there is, the empty state, as long as no member with replicas has more, or keeps more."""
        if not self.core.me.witness:
            return State.WHOLE if self.complete else State.NONE
        if self.keeper is not None and self.keeper.whole:
            return State.WHOLE
        if self.known_view is None:
            return State.NONE
        ranked = [member for member in self.known_view.members if not member.witness]
        if not ranked:
            return State.WHOLE
        known = all([member.incarnation in self.donors for member in ranked])
        return State.EMPTY if known else State.NONE

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
            self.core.hurry_all()       # one of the others is to give
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
            if kind == SINCE:
                self.since.append(body)
                return True
            if not self.begun and (kind == PIECE or not witness):
                self.begun = True
                self.above.up_begin_state()
            if kind == PIECE:
                self.above.up_take_state(body)
                return True
            donors = unpack_waiting(body)
            self.since = list(events(self.since))
            if self.begun:              # else a witness gave: there is no state yet
                self.above.up_end_state()
            elif self.was_begun:        # by another donor, of which nothing is to stay
                self.above.up_begin_state()
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
        self.was_begun |= self.begun
        self.begun = self.deaf = False
        self.since = []

    cdef finish(self, dict donors):
        """The state is whole: hand up what was buffered on top of it."""
        cdef Transfer transfer
        cdef tuple departed = self.core.departed
        buffered, self.buffered, self.buffered_bytes = self.buffered, [], 0
        self.complete = self.replays = True
        self.deadline = NEVER
        self.donors = donors
        before = self.replay_since()
        self.known_view, cut = buffered[0]
        if self.known_view != before:
            self.above.up_view(self.known_view, cut)
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
        self.cast_kind(COMPLETE)
        self.cast_kept()
        if self.blocked is not None:
            missing, rule = self.blocked
            self.above.up_blocked(missing, rule)

    cdef object replay_since(self):
        """Hand up what has come since the state, at a member that only kept it; the last view of it, or None."""
        before = None
        since, self.since = self.since, []
        for first, second in since:
            if isinstance(first, Message):
                self.core.departed = second
                self.above.up_cast(first)
            elif first != before:
                before = first
                self.above.up_view(first, second)
        return before

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
