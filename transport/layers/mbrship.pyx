# cython: allow_none_for_extension_args=False
"""MBRSHIP: views, and which messages belong to which (Horus 4.3; H02 to H04, H62 to H65, A02, A09).

Promises: members that go from one view to the next delivered the same messages in between
(virtual synchrony, H03). A message carries the view that it was sent in, and is passed up in
that view only: one of an older view is dropped (so a member that was expelled and does not know
it is fenced, I16, and is told), one of a view that is not installed here yet waits for it, and
its sender is asked for what is missing here. Joining goes through any member, and is repeated
until the group has answered.

The modules in `membership/` do the thinking: which members are suspected (`failure_detector`), which members may go
on (`quorum`), which deaths excuse one (`lease`), and what the next view is (`agreement`). Which
packets are held, and what must be delivered before a view, is for the layers above (`up_flush`,
`up_flush_ok`, `up_cut`).

A member that waits for another one to lead than before says so to that one (HERE), and an endpoint that
is out says so to those that may count on it (GONE): none waits for one that has gone on, or is out.

An incarnation is a member once: one that the group went on without is told so, and never let in
again. A view names the one that it follows, and is installed after that one alone.

Needs FIFO from below. A link that breaks is a suspicion at once, and leaves a gap that only a new
view closes; silence is one after the detection time; a death that was seen is no suspicion but a
fact (H13).
"""

import msgpack

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership import effects, events
from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.membership.attribution import Speaker, is_believed
from orcalike.transport.membership.early import Early, Entry
from orcalike.transport.membership.failure_detector import FailureDetector
from orcalike.transport.membership.leader import LeaderWatch
from orcalike.transport.membership.lease import Leases
from orcalike.transport.membership.left_behind import LeftBehind
from orcalike.transport.membership.messages import (
    Alive, Behind, Denied, Expelled, Gone, Here, Install, Join, Leave, Lost, Reset, ResetFailed,
    Ship, Slow, Value, Waits, unpack)
from orcalike.transport.membership.participant import OLDEST_WATCHED
from orcalike.transport.view import Member, View
from orcalike.transport.wire.control import shown, unpack as unpack_fields

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport NEVER, Core, Layer
from orcalike.transport.layers.com cimport Peer
from orcalike.transport.wire.bytes cimport load64, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    HEADER = 8
    ASK_AGAIN = 1000000000          # ns until a join is asked for again
    JOINERS_MAX = 1024              # that are known to have been passed on to the leader
    ANSWER_AGAIN = 10000000         # ns until a member of another view is told again
    NOTED_MAX = 4096                # endpoints outside of the view that are remembered
    ALL_WATCHED = 8                 # in a view of so many all beat to all, so each has all leases

cdef uint64_t CONTROL = 1ull << 63  # set in control messages; the rest is the view, 0 for strangers


cdef class Mbrship(Layer):
    """Views, and which messages belong to which."""

    name = "MBRSHIP"
    needs = frozenset({"FIFO", "ANY_SIZE"})
    gives = frozenset({"VIEWS"})

    def __init__(self, Core core, config, me):
        super().__init__(core)
        self.me = me
        self.options = config.options
        self.leases = Leases(config.detection)
        self.agreement = Agreement(self, me, config.options, self.leases)
        self.leader = LeaderWatch(self, self.agreement, config.slow)
        self.detector = FailureDetector(config.detection)
        self.slow = config.slow
        self.place = -1
        self.unlinked = {}
        self.early = Early()
        self.answered = {}
        self.asked, self.passed_on = set(), set()
        self.questioned, self.former = {}, {}
        self.left_behind = LeftBehind(self, config.detection, self.detector.patience)
        self.ask_at = self.frozen_at = self.lease_at = NEVER

    # Downcalls.

    cpdef join(self, str address):
        """Make a group of one (""), or ask the endpoint at `address` to be let in."""
        if self.over:
            self.above.up_join_failed("this endpoint is out of the group for good: make another")
            return
        if self.view is not None:               # it is in already, or was, and does not know it
            if address and self.agreement.missed():
                self.ask_what_is_missing(address)
            return
        if not address:
            self.install(View.first(self.me), b"")
            return
        self.seed = address
        self.ask()

    def ask(self):
        """Ask to be let in, and again later."""
        asked = {name: value for name, value in self.options.items() if value is not None}
        self.contact_with(self.seed, Join(self.me, asked))
        self.mark("J1")
        self.ask_at = self.core.now + ASK_AGAIN
        self.plan()

    cpdef cast(self, Message message):
        store64(message.push(HEADER), self.key)
        self.below.cast(message)

    cpdef send(self, Message message, tuple members):
        store64(message.push(HEADER), self.key)
        self.below.send(message, members)

    cpdef leave(self):
        """Ask the leader for a view without this member; a joiner is let in first."""
        self.leaves = True
        if self.view is None:
            if not self.seed:
                self.exit("left")
        elif len(self.view.members) == 1:
            self.exit("the last member left")
        elif self.agreement.leader == self.place:
            self.step(events.LeaveAsked(self.me.incarnation))
        else:
            self.tell(self.agreement.leader, Leave())
        self.mark("L1")

    cpdef flush(self, object failed):
        """A layer above wants a new view, without the `failed` places: they are slow, or they lie."""
        if self.view is None:
            return
        out = [self.view.members[place].incarnation for place in failed if place != self.place]
        self.step(events.Expelled(tuple(out)))
        if failed or not self.agreement.known.unsettled:
            self.unsettle(None)

    cpdef flush_ok(self, bytes report):
        self.step(events.Held(report))

    cpdef holds(self):
        self.step(events.CutHeld())
        if self.pending is not None and self.above.up_cut(self.pending.cut):
            self.decided(self.pending.view, self.pending.cut)

    cpdef degree(self, int least):
        self.least = least

    cpdef reset(self, int minimum):
        self.step(events.ResetAsked(minimum))

    cpdef proceed(self):
        self.step(events.Proceed())
        self.leader.wait(self.core.now)
        self.say_here()
        self.plan()

    cdef say_here(self, bint again=False):
        """This member waits for another leader than before: if that one has gone on, it answers.

        All that knew that it has may be gone, and from its silence nothing follows. `again`: it may
        have gone on after it was told.
        """
        if self.view is None or self.agreement.leader == self.place:
            return
        leader = self.view.members[self.agreement.leader].incarnation
        if again or leader != self.awaited:
            self.awaited = leader
            self.tell(self.agreement.leader, Here())

    # Which members are there.

    def heard(self, incarnation, when):
        """A member was heard at the time `when`."""
        self.detector.heard(incarnation, when)

    def died(self, incarnation, lease, age):
        """The process of a member was seen to end (H13), `age` ns after its last `lease` was sent."""
        self.left_behind.forget(incarnation, self.place, self.core.now)
        if self.view is None or self.view.place(incarnation) < 0:
            return
        vouched = bool(lease) and lease == self.key and 0 <= age < self.leases.span
        self.step(events.Died(incarnation, vouched))
        self.suspicions()

    def leases_ended(self, granted):
        """The driver grants no leases any more: (incarnation, when) of the last to each member."""
        self.step(events.LeasesEnded(tuple(granted)))

    cpdef expire(self):
        now = self.core.now
        if self.detector.deadline is not None and now >= self.detector.deadline:
            silent = set(self.detector.silent)
            if self.detector.check(now):
                for incarnation in sorted(self.detector.silent - silent):
                    self.suspected(incarnation, "it is silent")
                back = sorted(silent - self.detector.silent)
                self.suspicions()
                for incarnation in back:
                    self.say_again(incarnation)
                    if self.view.place(incarnation) >= 0:
                        # It may have gone on without this member, whose link may be a dead one.
                        self.tell(self.view.place(incarnation), Here())
            self.step(events.AskAgain())
            self.ask_strangers()
            self.say_here(bool(self.detector.silent))
        if now >= self.lease_at:
            self.lease_at = NEVER
            self.core.again(self)
        if self.left_behind.deadline is not None:
            self.left_behind.seek(self.place, now)
        if now >= self.ask_at:
            self.ask_at = NEVER
            if self.view is None and self.seed:
                self.ask()                      # and perhaps another one is asked, too
                self.above.up_join_failed(f"{self.seed} does not answer")
        if self.frozen_at != NEVER and now >= self.frozen_at + self.slow:
            self.frozen_at = now
            self.step(events.Overdue())
            self.core.again(self)
        self.leader.expire(now)
        self.plan()

    cdef suspicions(self):
        """Tell the agreement which members are suspected now."""
        self.step(events.Suspected(frozenset(self.detector.silent | self.unlinked.keys())))
        if self.view is not None and OLDEST_WATCHED <= min(self.place, self.agreement.leader):
            self.watch(is_all=True)
        self.core.again(self)

    def suspected(self, incarnation, str why):
        """Say that a member of the view is suspected."""
        self.mark("V1")
        place = self.view.place(incarnation)
        if place >= 0:
            self.above.up_problem(self.view.members[place], why)

    def unsettle(self, incarnation):
        """Have the leader begin a new view: a link broke, and no other closes the gap in it."""
        self.step(events.Unsettled())
        self.core.again(self)
        if self.agreement.leader != self.place:
            self.awaited = self.view.members[self.agreement.leader].incarnation
            self.tell(self.agreement.leader, Lost(incarnation or 0))

    def say_again(self, incarnation):
        """A member can be reached anew: what was under way to it, or from it, may be lost."""
        self.step(events.Reachable(incarnation))
        self.leader.again(incarnation, self.core.now)
        self.plan()

    def ask_leader(self):
        """A layer, or a joiner, waits for the member that leads: does it hang?"""
        self.leader.ask(self.core.now)
        self.plan()

    cdef watch(self, bint is_all=False):
        """Beat to the oldest, or to all where this is one of them, and hear them.

        `is_all`: none of the oldest is there, as seen here, so the leader is watched like them.
        """
        members = self.view.members if self.view is not None else ()
        if not is_all and self.place >= OLDEST_WATCHED and len(members) > ALL_WATCHED:
            members = members[:OLDEST_WATCHED]
        beats = tuple([m for m in members if m.incarnation != self.me.incarnation])
        if beats != self.core.beats:
            self.core.beats = beats
            self.core.beats_version += 1
        elif is_all:
            return
        listen = self.detector.watch_too if is_all else self.detector.watch
        listen([member.incarnation for member in beats], self.core.now)
        self.plan()

    cdef ask_strangers(self):
        """While this member waits for others: it may be that only one outside of its view knows more."""
        if self.agreement.missed() or self.agreement.leader != self.place and self.detector.silent:
            for address in self.below.focus("COM").strangers():
                self.ask_what_is_missing(address)

    def ask_what_is_missing(self, address):
        """Say which view this member is in, and what it holds: an endpoint that knows more answers."""
        self.contact_with(address, Behind(self.view.identity, self.above.up_held()))

    cdef plan(self):
        """The deadline: the detector's, the next question, or the end of patience."""
        frozen_until = NEVER if self.frozen_at == NEVER else self.frozen_at + self.slow
        times = (self.ask_at, self.lease_at, frozen_until, self.detector.deadline,
                 self.leader.deadline, self.left_behind.deadline)
        self.deadline = min([each for each in times if each is not None])

    # Upcalls.

    cpdef up_cast(self, Message message):
        cdef unsigned char* header = message.pop(HEADER)
        cdef uint64_t key
        if header is NULL:
            raise ProtocolError("a message without a view")
        key = load64(header)
        if key == self.key and message.source >= 0:
            self.above.up_cast(message)
        else:
            self.elsewhere(message, key, True)

    cpdef up_send(self, Message message):
        cdef unsigned char* header = message.pop(HEADER)
        cdef uint64_t key
        if header is NULL:
            raise ProtocolError("a message without a view")
        key = load64(header)
        if key == self.key and message.source >= 0:
            self.above.up_send(message)
        elif key == CONTROL or key == CONTROL | self.key:
            if key == CONTROL:
                message.source = -1             # it speaks in no view
            self.control(message)
        else:
            self.elsewhere(message, key, False)

    cdef elsewhere(self, Message message, uint64_t key, bint is_cast):
        """A message of another view: too old is dropped, too new waits."""
        if key & ~CONTROL <= self.key or (self.view is None and not self.seed):
            self.stale += 1
            if self.view is not None and (message.source < 0 or key & CONTROL):
                self.behind(message)
            elif self.over and key & CONTROL:
                self.say_gone(message)          # that view counts on this endpoint
            return
        peer = self.below.focus("COM").peer_at(message.link)
        known = self.is_known(peer.incarnation)
        late = self.early.keep(Entry(key, is_cast, message.copy(), peer), message.size(),
                               is_member=known)
        if late is not None:
            self.below.focus("COM").refuse_peer(late, "too much of views that are still to come")
        elif self.view is not None and known and peer.address and self.may_answer(peer.incarnation):
            self.ask_what_is_missing(peer.address)

    def is_known(self, incarnation):
        """Whether an endpoint is in the view, or in the next one as far as that is known here.

        One that is still to join knows no member, and must hear all.
        """
        if self.view is None or self.view.place(incarnation) >= 0:
            return True
        proposed = self.agreement.proposed()
        return proposed is not None and proposed.place(incarnation) >= 0

    def may_answer(self, incarnation):
        """Whether a member that speaks of another view is told about this one now: not each time."""
        now, last = self.core.now, self.answered.get(incarnation)
        if last is not None and now - last < ANSWER_AGAIN:
            return False
        if len(self.answered) >= NOTED_MAX:
            self.answered.clear()
        self.answered[incarnation] = now
        return True

    def peer_of(self, Message message):
        """The peer that sent a message, where it can be answered."""
        peer = self.below.focus("COM").peer_at(message.link)
        return peer if peer is not None and peer.address else None

    cdef behind(self, Message message):
        """The sender is in an older view: tell it the present one, or that it is out (I16)."""
        cdef Peer peer = self.peer_of(message)
        if peer is None or not self.may_answer(peer.incarnation):
            return
        if self.view.place(peer.incarnation) < 0:
            self.tell_expelled(peer.address, peer.incarnation)
        elif self.agreement.known.last is not None:
            self.contact_with(peer.address, Install(self.view, self.agreement.known.last.cut))

    cdef ahead(self, Message message, tuple identity, bytes held):
        """BEHIND: a member of another view asks for what brings it into the present one."""
        cdef Peer peer = self.peer_of(message)
        if self.view is None or peer is None:
            return
        if self.view.place(peer.incarnation) < 0:
            if not self.may_answer(peer.incarnation):
                return
            if identity > self.view.identity:   # it is this member that is behind, perhaps
                if not self.agreement.missed() and peer.incarnation not in self.former:
                    return                      # asked for by a non-member, it were no own question
                self.ask_what_is_missing(peer.address)
            else:
                self.tell_expelled(peer.address, peer.incarnation)
        elif identity < self.view.identity:
            if self.view.follows == identity:
                for piece in self.above.up_missing(held, True):
                    self.contact_with(peer.address, Ship(piece, identity))
            self.contact_with(peer.address, Install(self.view, self.agreement.known.last.cut))
            self.say_again(peer.incarnation)
        elif identity > self.view.identity:     # it waits, without this member, which does not know
            self.ask_what_is_missing(peer.address)

    cdef gone(self, Message message):
        """GONE: the peer is out of the group for good, and answers for its member no more."""
        cdef Peer peer = self.peer_of(message)
        if self.view is None or peer is None:
            return
        self.left_behind.forget(peer.incarnation, self.place, self.core.now)
        if self.view.place(peer.incarnation) >= 0:
            self.step(events.Died(peer.incarnation, False))
            self.suspicions()

    cpdef up_problem(self, object member, str why):
        """A link went down. It is a loss only where the peer belongs to the view."""
        cdef Peer peer = <Peer?>member    # not None either
        self.early.forget(peer)                 # with the link more of it is lost
        if self.view is None:
            if peer.address == self.seed:
                self.above.up_join_failed(why)
            return
        if peer.place < 0 or len(self.view.members) <= peer.place:
            if peer.incarnation in self.answered:
                # What it was told of this view may be lost with the link: again by each other one
                # that stands, of which all but one may be dead, and once by a new one.
                if peer.link < 0:
                    del self.answered[peer.incarnation]
                self.tell_expelled(peer.address, peer.incarnation)
            return
        gone = self.view.members[peer.place]
        if gone.incarnation != peer.incarnation or gone.incarnation in self.unlinked:
            return
        if peer.link >= 0:                      # there is another link; what went by this one is lost
            self.unsettle(gone.incarnation)
            self.say_again(gone.incarnation)
            return
        self.unlinked[gone.incarnation] = why
        proposed = self.agreement.proposed()
        departs = proposed is not None and proposed.place(gone.incarnation) < 0
        if not departs and not self.leaves:
            self.suspected(gone.incarnation, why)
        self.suspicions()
        self.unsettle(gone.incarnation)

    cpdef up_linked(self, object member):
        """A link stands again."""
        cdef Peer peer = <Peer?>member    # not None either
        if self.view is None:
            return
        if self.left_behind.found(peer.address, peer.incarnation, self.place, self.core.now):
            self.tell_expelled(peer.address, peer.incarnation)
        if peer.place < 0 and self.agreement.frozen and peer.address:
            self.ask_what_is_missing(peer.address)  # blocked here, and perhaps long gone on there
        if self.unlinked.pop(peer.incarnation, None) is None:
            return
        self.suspicions()
        if self.agreement.known.unsettled or peer.missed:
            self.unsettle(peer.incarnation)     # that word may have been lost with a link, too
        if peer.place >= 0:
            self.tell(peer.place, Here())       # one that has gone on meanwhile says so
            self.say_again(peer.incarnation)

    # Control messages.

    cdef control(self, Message message):
        if self.view is None and not self.seed:
            self.stale += 1                     # out of the group: none of its business
            return
        fields = unpack_fields(message.body, "a control message")
        peer = self.below.focus("COM").peer_at(message.link)
        speaker = Speaker(message.source, peer.incarnation, peer.address)
        if is_believed(fields, speaker, self.view, self.former, self.questioned):
            self.dispatch(message, unpack(fields))
        else:
            self.stale += 1

    cdef dispatch(self, Message message, object it):
        in_view = self.view is not None and message.source >= 0
        match it:
            case Join():
                self.asked_to_join(message, it.member, it.options)
            case Denied(joiner=None):
                if self.view is None and self.leaves:
                    self.exit("left")
                elif self.view is None:
                    self.ask_at = NEVER
                    self.plan()
                    self.above.up_join_denied(shown(it.why))
            case Denied() if message.source >= 0:
                self.contact_with(it.joiner.address, Denied(it.why))    # that had asked here
            case Install():
                self.decided(it.view, it.cut)
                self.correct(message, it.view)
            case Expelled():
                if it.incarnation == self.me.incarnation:   # not one that had this address before
                    self.told_expelled(message, it.view)
                self.correct(message, it.view)
            case Behind():
                self.ahead(message, it.view, it.held)
            case Gone():
                self.gone(message)
            case Ship() if it.view is not None:
                if self.view is not None and it.view == self.view.identity:
                    self.above.up_supply(it.piece)
            case Leave() if in_view:
                self.step(events.LeaveAsked(self.view.members[message.source].incarnation))
            case Waits() | Alive() | Slow() if in_view:
                self.leader.receive(message.source, it, self.core.now)
                self.plan()
            case Here() if in_view:
                # A link was made again, and only the other end may know that one was broken.
                self.say_again(self.view.members[message.source].incarnation)
            case Reset() if in_view:
                self.step(events.ResetAsked(it.minimum, message.source))
            case ResetFailed() if in_view:
                self.above.up_reset_failed(shown(it.why))
            case _ if in_view:
                self.step(events.Received(message.source, it))
            case _:
                raise ProtocolError(f"{it.kind} out of place")

    cdef asked_to_join(self, Message message, object member, object options):
        """JOIN, from the joiner, in its own name; or passed on by the member that it knew."""
        cdef Peer peer = self.below.focus("COM").peer_at(message.link)
        if message.source < 0 and (peer.address, peer.incarnation) != (member.address,
                                                                       member.incarnation):
            raise ProtocolError("JOIN for another endpoint")
        self.requested(message.source, member, options)

    cdef requested(self, int source, object member, object options):
        """`source` is the place of the member that has passed it on, or -1."""
        if self.view is None or self.leaves and len(self.view.members) == 1:
            return
        if self.view.place(member.incarnation) >= 0:
            self.contact_with(member.address, Install(*self.agreement.known.last))
        elif member.incarnation in self.former:
            self.tell_expelled(member.address, member.incarnation)
        elif self.agreement.leader != self.place:
            self.tell(self.agreement.leader, Join(member, options))
            if member.incarnation in self.passed_on:    # in vain, so far
                self.ask_leader()
            elif len(self.passed_on) < JOINERS_MAX:
                self.passed_on.add(member.incarnation)
        else:
            self.step(events.JoinAsked(member, options, source))

    cdef decided(self, object view, bytes cut):
        """INSTALL: the next view of this member, or its first."""
        if self.view is None:
            if view.place(self.me.incarnation) >= 0:
                self.above.up_cut(cut)          # raises where it cannot be read
                self.mark("J2")
                self.install(view, cut)
        elif view.follows != self.view.identity:
            if view.place(self.me.incarnation) >= 0 and view.is_after(self.view):
                others = dict.fromkeys((*view.members, *self.view.members))
                self.left_behind.say_gone(others, self.me.incarnation)
                self.exit(f"expelled: {view} does not follow this member's {self.view}")
            else:
                self.stale += 1
        elif self.above.up_cut(cut):
            self.install(view, cut)
        else:
            self.pending = Value(view, cut)     # its sender has more to send, or is asked
            for member in view.members:         # one after the other, each once
                if (member.incarnation != self.me.incarnation and
                        member.incarnation not in self.asked and
                        self.view.place(member.incarnation) >= 0):
                    self.asked.add(member.incarnation)
                    self.ask_what_is_missing(member.address)
                    break

    def tell_expelled(self, address, incarnation):
        """Tell the endpoint at an address that the group went on without this incarnation of it."""
        self.contact_with(address, Expelled(self.view, incarnation))

    cdef told_expelled(self, Message message, object view):
        """The group has gone on without this member: it can never have its old writes accepted."""
        if view.place(self.me.incarnation) >= 0:
            return
        if self.view is None:
            self.exit("expelled: the group had let this member in, and went on without it")
        elif view.is_after(self.view):
            others = [each for each in self.view.members if view.place(each.incarnation) < 0]
            self.left_behind.say_gone(others, self.me.incarnation)
            if view.lineage > self.view.lineage:
                self.left_behind.pass_on(view, self.view, self.me.incarnation)
            self.exit(f"expelled: {view} went on without this member")
            self.say_gone(message)

    cdef correct(self, Message message, object view):
        """A member of an older lineage speaks of its view as the newest: tell it the present one."""
        if self.view is not None and view.lineage < self.view.lineage:
            self.behind(message)

    def say_gone(self, Message message):
        """A group that counts on this endpoint, or seeks it, learns that it is out.

        A member that missed the view without this one may have no other to ask for it.
        """
        cdef Peer peer = self.peer_of(message)
        if peer is None or not self.may_answer(peer.incarnation):
            return
        if self.outcome is not None and self.outcome.view.place(peer.incarnation) >= 0:
            self.contact_with(peer.address, Install(*self.outcome))
        elif not self.leaves:
            self.contact_with(peer.address, Gone())

    # The agreement: its steps, what follows from them, and what it asks.

    cdef step(self, object event):
        """A step of the agreement, and all that follows from it."""
        for it in self.agreement.step(event, self.core.now):
            self.carry_out(it)

    cdef carry_out(self, object it):
        """An effect; a step that comes of it is carried out before the effects behind it."""
        match it:
            case effects.Send():
                self.tell(it.position, it.message)
            case effects.Contact():
                self.contact_with(it.address, it.message)
            case effects.Mark():
                self.mark(it.step)
            case effects.Freeze():
                self.freeze()
            case effects.Supply():
                self.above.up_supply(it.piece)
            case effects.InstallView():
                self.install(it.view, it.cut)
            case effects.Grant():
                self.core.lease = self.key if it.granting else 0
                self.core.beats_version += 1
            case effects.Wake():
                if it.at < self.lease_at:
                    self.lease_at = it.at
                    self.plan()
            case effects.Seek():
                # A view goes on without a member that may live, and which this one leads.
                self.left_behind.left_out(it.member, self.core.now)
            case effects.ReportBlocked():
                self.above.up_blocked(it.missing, it.rule)
            case effects.RefuseReset():
                self.above.up_reset_failed(it.why)
            case effects.Schedule():
                self.core.again(self)
            case effects.Continue():
                self.step(events.Proceed())
            case effects.Changed():
                if self.on_change is not None:
                    self.on_change(it)
            case effects.Refuse():
                raise it.error
            case _:
                raise TypeError(f"no effect: {it}")

    def tell(self, place, message):
        cdef Message control = Message(msgpack.packb(message.pack()))
        store64(control.push(HEADER), CONTROL | self.key)
        self.below.send(control, (place,))

    def contact_with(self, address, message):
        cdef Message control = Message(msgpack.packb(message.pack()))
        if address:
            if isinstance(message, (Join, Behind)) and len(self.questioned) < NOTED_MAX:
                self.questioned[address] = True
            store64(control.push(HEADER), CONTROL)
            self.below.contact(control, address)

    cdef freeze(self):
        if self.frozen_at == NEVER:
            self.frozen_at = self.core.now
        self.leader.wait(self.core.now)
        self.plan()
        self.above.up_flush(None)

    def missing(self, report):
        return self.above.up_missing(report, False)

    def check(self, report, cut):
        self.above.up_check(report, cut)

    def cut_of(self, reports, ends):
        return self.above.up_flush_ok(reports, ends)

    def has_cut(self, cut):
        return self.above.up_cut(cut)

    def has_state(self):
        return self.above.up_has_state()

    def degree_here(self):
        return self.least

    def hangs(self, incarnation):
        """The member that leads did not answer in time."""
        self.step(events.Hangs(incarnation))
        self.unsettle(None)

    cdef mark(self, str step):
        if self.core.on_mark is not None:
            self.core.on_mark(step)

    def install(self, view, cut):
        """`view` is the view from here on."""
        cdef bint gone = view.place(self.me.incarnation) < 0
        if gone:
            self.outcome = Value(view, cut)
            self.above.up_view(view, cut)       # so that it has all that came before
            self.exit("left" if self.leaves else f"expelled: {view} goes on without this member")
            return
        if self.view is not None:
            if view.lineage != self.view.lineage:
                self.left_behind.reset(self.view, view, self.agreement.known.dead)
            for member in self.view.members:
                self.former[member.incarnation] = True
            for incarnation in list(self.former)[:-NOTED_MAX]:
                del self.former[incarnation]
        self.view = view
        self.key = view.key
        self.place = view.place(self.me.incarnation)
        self.me = view.members[self.place]
        self.awaited = view.members[0].incarnation
        present = {member.incarnation for member in view.members}
        self.unlinked = {each: why for each, why in self.unlinked.items() if each in present}
        self.ask_at = self.frozen_at = self.lease_at = NEVER
        self.leader.clear()
        self.pending = None
        self.answered.clear()
        self.asked.clear()
        self.passed_on.clear()
        self.questioned.clear()
        self.step(events.Installed(Value(view, cut)))
        self.below.view(view)
        self.left_behind.seek(self.place, self.core.now)
        self.watch()
        self.suspicions()
        self.mark("V9")
        self.above.up_view(view, cut)
        for entry in self.early.take():
            try:
                self.replay(entry)
            except ProtocolError as error:      # this one's, and not of the view's sender
                self.below.focus("COM").refuse_peer(entry.peer, str(error))
        if self.leaves and self.view is not None and self.above.up_may_leave():
            self.leave()                        # the member that was asked is gone, or did not hear
        self.core.again(self)                   # those that asked meanwhile are served now

    def seek(self, members):
        """Have links made to these, which are not in the view."""
        self.below.focus("COM").seek(members)

    cdef replay(self, object entry):
        """A message that has waited for its view; its link may lead to another peer by now."""
        cdef Message message = entry.message
        cdef Peer peer = entry.peer
        cdef uint64_t key = entry.key
        cdef bint is_cast = entry.is_cast
        if self.below.focus("COM").peer_at(message.link) is not peer:
            self.stale += 1
            return
        if key & ~CONTROL != self.key:
            self.elsewhere(message, key, is_cast)
            return
        message.source = peer.place
        if message.source < 0:
            self.stale += 1
        elif key & CONTROL:
            self.control(message)
        elif is_cast:
            self.above.up_cast(message)
        else:
            self.above.up_send(message)

    cdef exit(self, str why):
        self.over = True
        self.view = None
        self.key = 0
        self.place = -1
        self.seed = None
        self.ask_at = self.frozen_at = self.lease_at = NEVER
        self.leader.clear()
        self.early.clear()
        self.left_behind.clear()
        self.step(events.Exited())
        self.watch()
        self.above.up_exit(why)

    cpdef dict dump(self):
        return {"view": self.view, "place": self.place, "unlinked": dict(self.unlinked),
                "silent": set(self.detector.silent), "promised": self.agreement.participant.promised,
                "stale": self.stale, "early": self.early.bytes}
