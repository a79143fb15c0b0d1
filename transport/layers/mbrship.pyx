# cython: allow_none_for_extension_args=False
"""MBRSHIP: views, and which messages belong to which (Horus 4.3; H02 to H04, H62 to H65, A02, A09).

Promises: members that go from one view to the next delivered the same messages in between
(virtual synchrony, H03). A message carries the view that it was sent in, and is passed up in
that view only: one of an older view is dropped (so a member that was expelled and does not know
it is fenced, I16, and is notified), one of a view that is not installed here yet waits for it, and
its sender is asked for what is missing here. Joining goes through any member, and is repeated
until the group has answered.

The modules in `membership/` do the thinking: which members can be reached (`reachability`), whether
the one that leads hangs (`leader`), what the next view is (`agreement`), how an endpoint gets into
its first (`outside`), and what is sent to those of others (`other_views`). The layers above know what
is held (`holdings`). A view names the one that it follows, and is installed after that one alone.

Needs FIFO from below. A link that breaks is a suspicion at once, and leaves a gap that only a new
view closes; silence is one after the detection time; a death that was seen is no suspicion but a
fact (H13).
"""

import msgpack

from orcalike.transport.errors import DamagedMemory, ProtocolError
from orcalike.transport.membership import effects, events
from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.membership.attribution import Speaker, check_sender, is_believed
from orcalike.transport.membership.early import Early, Entry
from orcalike.transport.membership.holdings import HeldAbove
from orcalike.transport.membership.leader import LeaderWatch
from orcalike.transport.membership.lease import Leases
from orcalike.transport.membership.left_behind import LeftBehind
from orcalike.transport.membership.messages import (
    Alive, Behind, Denied, Expelled, Gone, HeldUp, Here, Inside, Install, Join, Leave, Nowhere, Reset,
    ResetFailed, Ship, Slow, Taken, Value, Waits, unpack)
from orcalike.transport.membership.other_views import OtherViews
from orcalike.transport.membership.outside import Outside
from orcalike.transport.membership.reachability import Reachability
from orcalike.transport.view import Member, View
from orcalike.transport.wire.control import shown, unpack as unpack_fields

cimport cython
from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport NEVER, Core, Layer
from orcalike.transport.layers.com cimport Peer
from orcalike.transport.wire.bytes cimport load64, store64
from orcalike.transport.wire.message cimport Message

cdef uint64_t CONTROL = 1ull << 63  # set in control messages; the rest is the view, 0 for non-members


@cython.final
cdef class Mbrship(Layer):
    """Views, and which messages belong to which."""

    name = "MBRSHIP"
    needs = frozenset({"FIFO", "ANY_SIZE"})
    gives = frozenset({"VIEWS"})

    def __init__(self, Core core, config, me):
        super().__init__(core)
        self.me = me
        self.leases = Leases(config.detection)
        held = HeldAbove(self)
        self.agreement = Agreement(held, me, config.options, self.leases)
        self.leader = LeaderWatch(self, self.agreement, config.slow)
        self.reachability = Reachability(self, self.agreement, me.incarnation, config.detection)
        self.detector = self.reachability.detector
        self.slow, self.position = config.slow, -1
        self.early = Early()
        self.outside = Outside(self, me, config.options, config.unanimous, config.detection)
        self.others = OtherViews(self, self.agreement, held.missing_before, me.incarnation)
        self.left_behind = LeftBehind(self, config.detection, self.detector.silence_max)
        self.frozen_at = self.lease_at = NEVER

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
        if address:
            self.outside.request.ask(address, self.core.now)
        else:
            self.install(View.first(self.me), b"")

    def make_or_join(self, addresses):
        """Rank 0: make the group if all ranks, at some of these addresses, are in none; else join it."""
        if self.over or self.view is not None:
            self.join(addresses[0] if addresses else "")
        else:
            self.outside.bootstrap.begin(addresses, self.core.now)

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
            if not self.outside.request.address:
                self.exit("left")
        elif len(self.view.members) == 1:
            self.exit("the last member left")
        elif self.agreement.leader == self.position:
            self.step(events.LeaveAsked(self.me.incarnation))
        else:
            self.tell(self.agreement.leader, Leave())
        self.mark("L1")
        self.held_up()

    cpdef flush(self, object failed):
        """A layer above wants a new view, without the members at the positions `failed`: they are slow, or they lie."""
        if self.view is None:
            return
        out = [self.view.members[position].incarnation for position in failed if position != self.position]
        self.step(events.Expelled(tuple(out)))
        if failed or not self.agreement.known.unsettled:
            self.unsettle(None)

    cpdef flush_ok(self, bytes report):
        self.step(events.Held(report))

    cpdef held_up(self):
        self.reachability.held_up(self.core.now)
        self.plan()

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
        self.leader.say_here()
        self.held_up()

    # Which members are there.

    def heard(self, incarnation, when):
        """A member was heard at the time `when`."""
        self.detector.heard(incarnation, when)

    def died(self, incarnation, lease, age):
        """The process of a member was seen to end (H13), `age` ns after its last `lease` was sent."""
        self.left_behind.forget(incarnation, self.position, self.core.now)
        vouched = self.leases.ended_at(incarnation, self.core.now, lease, age)
        if self.view is not None and self.view.position(incarnation) >= 0:
            self.step(events.Died(incarnation, vouched))
            self.reachability.report(self.core.now)

    def is_held_up(self):
        """Whether this member waits for others: in a change of view, for what it has asked, or above."""
        return (self.leaves or self.agreement.frozen or self.agreement.waits or self.leader.asked is not None
                or self.above.up_is_held_up())

    def leases_ended(self, granted):
        """The driver grants no leases any more: (incarnation, when) of the last to each member."""
        self.step(events.LeasesEnded(tuple(granted)))

    cpdef expire(self):
        now = self.core.now
        if self.reachability.check_silence(now):
            self.step(events.AskAgain())
            self.ask_non_members()
            self.leader.say_here(again=bool(self.detector.silent))
        if now >= self.lease_at:
            self.lease_at = NEVER
            self.core.again(self)
        if self.left_behind.deadline is not None:
            self.left_behind.seek(self.position, now)
        self.outside.expire(now)
        if self.frozen_at != NEVER and now >= self.frozen_at + self.slow:
            self.frozen_at = now
            self.step(events.Overdue())
            self.core.again(self)
        self.leader.expire(now)
        self.plan()

    def suspected(self, incarnation, str why):
        """Say that a member of the view is suspected."""
        self.mark("V1")
        position = self.view.position(incarnation)
        if position >= 0:
            self.above.up_problem(self.view.members[position], why)

    def unsettle(self, incarnation):
        """Have the leader begin a new view: a link broke, and no other closes the gap in it."""
        self.step(events.Unsettled())
        self.core.again(self)
        self.leader.say_lost(incarnation)

    def say_again(self, incarnation):
        """A member can be reached anew: what was under way to it, or from it, may be lost."""
        self.step(events.Reachable(incarnation))
        self.leader.again(incarnation, self.core.now)
        self.plan()

    def ask_leader(self):
        """A layer, or a joiner, waits for the member that leads: does it hang?"""
        self.leader.ask(self.core.now)
        self.held_up()

    cdef ask_non_members(self):
        """While this member waits for others: it may be that only one outside of its view knows more."""
        if self.agreement.missed() or self.agreement.leader != self.position and self.detector.silent:
            for address in self.below.focus("COM").non_members():
                self.ask_what_is_missing(address)

    def ask_what_is_missing(self, address):
        """Say which view this member is in, and what it holds: an endpoint that knows more answers."""
        self.contact_with(address, Behind(self.view.identity, self.above.up_held()))

    cpdef plan(self):
        """The deadline: the detector's, the next question, or the end of the change of view that is due."""
        frozen_until = NEVER if self.frozen_at == NEVER else self.frozen_at + self.slow
        times = (self.outside.deadline, self.lease_at, frozen_until, self.detector.deadline,
                 self.reachability.attend_at, self.leader.deadline, self.left_behind.deadline)
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
        if key & ~CONTROL <= self.key or (self.view is None and not self.outside.wants_in):
            self.stale += 1
            if self.view is not None and (message.source < 0 or key & CONTROL):
                self.others.correct(self.peer_of(message), self.core.now)
            elif self.over and key & CONTROL:
                self.others.say_gone(self.peer_of(message), self.core.now, has_left=self.leaves)
            return
        peer = self.below.focus("COM").peer_at(message.link)
        known = self.others.is_known(peer.incarnation)
        late = self.early.keep(Entry(key, is_cast, message.copy(), peer), message.size(), is_member=known)
        if late is not None:
            self.below.focus("COM").refuse_peer(late, "too much of views that are still to come")
        elif known:
            self.others.ask_of_next_view(peer, self.core.now)

    def peer_of(self, Message message):
        """The peer that sent a message, where it can be answered."""
        peer = self.below.focus("COM").peer_at(message.link)
        return peer if peer is not None and peer.address else None

    cdef gone(self, Message message):
        """GONE: the peer is out of the group for good, and answers for its member no more."""
        cdef Peer peer = self.peer_of(message)
        if self.view is None or peer is None:
            return
        self.left_behind.forget(peer.incarnation, self.position, self.core.now)
        if self.view.position(peer.incarnation) >= 0:
            self.step(events.Died(peer.incarnation, False))
            self.reachability.report(self.core.now)

    cpdef up_problem(self, object member, str why):
        """A link went down. It is a loss only where the peer belongs to the view."""
        cdef Peer peer = <Peer?>member    # not None either
        self.early.forget(peer)                 # with the link more of it is lost
        if self.view is None:
            self.outside.lost(peer, why, self.core.now)
            return
        if peer.position < 0 or len(self.view.members) <= peer.position:
            self.others.link_broke(peer, stands=peer.link >= 0)
            return
        gone = self.view.members[peer.position].incarnation
        if gone == peer.incarnation and gone not in self.reachability.unlinked:
            self.reachability.link_broke(gone, why, self.core.now, is_replaced=peer.link >= 0,
                                         is_leaving=self.leaves)

    cpdef up_linked(self, object member):
        """A link stands again."""
        cdef Peer peer = <Peer?>member    # not None either
        if self.view is None:
            self.outside.linked(peer, self.core.now)
            return
        if self.left_behind.found(peer.address, peer.incarnation, self.position, self.core.now):
            self.others.tell_expelled(peer.address, peer.incarnation)
        if peer.position < 0 and self.agreement.frozen and peer.address:
            self.ask_what_is_missing(peer.address)  # blocked here, and perhaps long gone on there
        stands = self.reachability.link_stands(peer.incarnation, self.core.now, was_missed=peer.missed)
        if stands and peer.position >= 0:
            self.tell(peer.position, Here())       # one that has gone on meanwhile says so
            self.say_again(peer.incarnation)

    # Control messages.

    cdef control(self, Message message):
        if self.view is None and not self.outside.wants_in:
            self.stale += 1                     # out of the group: none of its business
            return
        fields = unpack_fields(message.body, "a control message")
        peer = self.below.focus("COM").peer_at(message.link)
        speaker = Speaker(message.source, peer.incarnation, peer.address, peer.reached_at)
        if is_believed(fields, speaker, self.view, self.others.former, self.others.questioned):
            self.dispatch(message, unpack(fields))
        else:
            self.stale += 1

    cdef dispatch(self, Message message, object it):
        in_view = self.view is not None and message.source >= 0
        match it:
            case Join():
                if message.source < 0:          # in its own name; else it is passed on
                    check_sender(it, self.below.focus("COM").peer_at(message.link))
                if self.view is None:
                    self.outside.asked(it, self.core.now)
                elif not (self.leaves and len(self.view.members) == 1):
                    self.others.asked_to_join(it, message.source)
            case Nowhere() | Taken() | Inside():
                self.outside.answered(it, self.peer_of(message), self.core.now)
            case Denied(joiner=None):
                if self.view is None and self.leaves:
                    self.exit("left")
                elif self.view is None:
                    self.outside.request.answered()
                    self.plan()
                    self.above.up_join_denied(shown(it.why))
            case Denied() if message.source >= 0:
                self.contact_with(it.joiner.address, Denied(it.why))    # that had asked here
            case Install():
                self.decided(it.view, it.cut)
                self.others.learned_of(it.view, self.peer_of(message), self.core.now)
            case Expelled():
                if it.incarnation == self.me.incarnation:   # not one that had this address before
                    self.notified_expelled(message, it.view, shown(it.why))
                self.others.learned_of(it.view, self.peer_of(message), self.core.now)
            case Behind():
                peer = self.peer_of(message)
                if self.others.answer(peer, it, self.core.now):
                    self.say_again(peer.incarnation)
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
            case HeldUp() if in_view:
                self.reachability.asked_to_watch(self.core.now)
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

    def make_group(self, joiners):
        self.install(View.first(self.me), b"")
        for each in joiners:
            self.others.asked_to_join(Join(each.member, each.options), -1)

    def changed(self, change):
        if self.on_change is not None:
            self.on_change(change)

    cdef decided(self, object view, bytes cut):
        """INSTALL: the next view of this member, or its first."""
        if self.view is None:
            if view.position(self.me.incarnation) >= 0:
                self.above.up_cut(cut)          # raises where it cannot be read
                self.mark("J2")
                self.install(view, cut)
        elif view.follows != self.view.identity:
            if view.position(self.me.incarnation) >= 0 and view.is_after(self.view):
                others = dict.fromkeys((*view.members, *self.view.members))
                self.left_behind.say_gone(others, self.me.incarnation)
                self.exit(f"expelled: {view} does not follow this member's {self.view}")
            else:
                self.stale += 1
        elif self.above.up_cut(cut):
            self.install(view, cut)
        else:
            self.pending = Value(view, cut)     # its sender has more to send, or is asked
            self.others.ask_for_cut(view)

    cdef notified_expelled(self, Message message, object view, str why):
        """The group has gone on without this member: it can never have its old writes accepted."""
        if view.position(self.me.incarnation) >= 0:
            return
        if self.view is None:
            self.exit("expelled: the group had let this member in, and went on without it")
        elif view.is_after(self.view):
            self.step(events.WentOn(view, self.peer_of(message), self.leaves, why))

    # The agreement: its steps, what follows from them, and what it asks.

    cpdef step(self, object event):
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
            case effects.GoOut():
                self.left_behind.went_on(it.view, self.view, self.me.incarnation)
                self.exit(f"expelled: {it.view} went on without this member" + f": {it.why}" * bool(it.why))
                self.others.say_gone(it.sender, self.core.now, has_left=self.leaves)
            case effects.Grant():
                self.core.lease = self.key if it.granting and not self.core.rests else 0
                self.core.unleased = it.without
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
                self.changed(it)
            case effects.Refuse():
                raise it.error
            case _:
                raise TypeError(f"no effect: {it}")

    def tell(self, position, message):
        cdef Message control = Message(msgpack.packb(message.pack()))
        store64(control.push(HEADER), CONTROL | self.key)
        self.below.send(control, (position,))

    def contact_with(self, address, message):
        if self.view is None:
            self.leases.speak(self.core.now)
        cdef Message control = Message(msgpack.packb(message.pack()))
        if address:
            self.others.sent(address, message)
            store64(control.push(HEADER), CONTROL)
            self.below.contact(control, address)

    cdef freeze(self):
        self.frozen_at = min(self.frozen_at, self.core.now)
        self.leader.wait(self.core.now)
        self.held_up()
        self.above.up_flush(None)

    def join_failed(self, why):
        self.above.up_join_failed(why)

    def hangs(self, incarnation):
        """The member that leads did not answer in time."""
        self.step(events.Hangs(incarnation))
        self.unsettle(None)

    cpdef mark(self, str step):
        self.core.mark(step)

    def install(self, view, cut):
        """`view` is the view from here on."""
        if view.position(self.me.incarnation) < 0:
            self.others.outcome = Value(view, cut)
            self.above.up_view(view, cut)       # so that it has all that came before
            self.exit("left" if self.leaves else f"expelled: {view} goes on without this member")
            return
        if self.view is not None:
            if view.lineage != self.view.lineage:
                self.left_behind.reset(self.view, view, self.agreement.known.dead)
            self.others.leave_view(self.view)
        self.view, self.key, self.position = view, view.key, view.position(self.me.incarnation)
        self.me = view.members[self.position]
        self.core.rests = self.leases.in_memory = self.above.up_rests(view, cut)
        self.reachability.enter(view)
        self.frozen_at = self.lease_at = NEVER
        self.outside.entered()
        self.leader.enter(view)
        self.pending = None
        self.others.enter()
        self.step(events.Installed(Value(view, cut)))
        self.below.view(view)
        self.left_behind.seek(self.position, self.core.now)
        self.reachability.watch(self.core.now)
        self.reachability.report(self.core.now)
        self.mark("V9")
        self.above.up_view(view, cut)
        for entry in self.early.take():
            try:
                self.replay(entry)
            except ProtocolError as error:      # this one's, and not of the view's sender
                if isinstance(error, DamagedMemory):
                    raise
                self.below.focus("COM").refuse_peer(entry.peer, str(error))
        if self.leaves and self.view is not None and self.above.up_may_leave():
            self.leave()                        # the member that was asked is gone, or did not receive that
        self.core.again(self)                   # those that asked meanwhile are served now

    def schedule(self):
        self.core.again(self)

    def seek(self, members):
        """Have links made to these, which are not in the view."""
        self.below.focus("COM").seek(members)

    cdef replay(self, object entry):
        """A message that has waited for its view; its link may lead to another peer by now."""
        cdef Message message = entry.message
        cdef Peer peer = entry.peer
        cdef uint64_t key = entry.key
        if self.below.focus("COM").peer_at(message.link) is not peer:
            self.stale += 1
            return
        if key & ~CONTROL != self.key:
            self.elsewhere(message, key, entry.is_cast)
            return
        message.source = peer.position
        if message.source < 0:
            self.stale += 1
        elif key & CONTROL:
            self.control(message)
        elif entry.is_cast:
            self.above.up_cast(message)
        else:
            self.above.up_send(message)

    cdef exit(self, str why):
        self.over = True
        self.view, self.key, self.position = None, 0, -1
        self.outside.end()
        self.frozen_at = self.lease_at = NEVER
        self.leader.clear()
        self.early.clear()
        self.left_behind.clear()
        self.step(events.Exited())
        self.reachability.watch(self.core.now)
        self.above.up_exit(why)

    cpdef dict dump(self):
        return {"view": self.view, "position": self.position, "unlinked": dict(self.reachability.unlinked),
                "silent": set(self.detector.silent), "promised": self.agreement.participant.promised,
                "stale": self.stale, "early": self.early.bytes}
