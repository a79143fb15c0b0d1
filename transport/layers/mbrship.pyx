"""MBRSHIP: views, and which messages belong to which (Horus 4.3; H02 to H04, H13, H62 to H65, A02, A09).

Promises: members that go from one view to the next delivered the same messages in between
(virtual synchrony, H03). A message carries the view that it was sent in, and is passed up in
that view only: one of an older view is dropped (so a member that was expelled and does not know
it is fenced, I16, and is told), one of a view that is not installed here yet waits for it, and
its sender is asked for what is missing here. Joining goes through any member, and is repeated
until the group has answered.

Three modules in `membership/` do the thinking: who is suspected (`detector`), which members may
go on (`quorum`), and what the next view is (`agreement`). Which packets are held, and what must be
delivered before a view, is for the layers above (`up_flush`, `up_flush_ok`, `up_cut`).

Needs FIFO from below. A link that breaks is a suspicion at once, and leaves a gap that only a new
view closes; silence is one after the detection time; a death that was seen is no suspicion but a
fact (H13).
"""

import msgpack

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.agreement import OLDEST_WATCHED, Agreement
from orcalike.transport.membership.attempt import Value
from orcalike.transport.membership.detector import Detector
from orcalike.transport.view import BALLOT_BITS, Member, View

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport NEVER, Core, Layer
from orcalike.transport.layers.com cimport Peer
from orcalike.transport.wire.bytes cimport load64, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    HEADER = 8
    EARLY_MAX = 67108864            # bytes of views that are still to come
    ASK_AGAIN = 1000000000          # ns until a join is asked for again
    ANSWER_AGAIN = 10000000         # ns until a member of another view is told again

cdef uint64_t CONTROL = 1ull << 63  # set in control messages; the rest is the view, 0 for strangers


cdef uint64_t key_of(object view):
    """Count of the lineage (7 bits), number (32), ballot (24): in the order of views."""
    return (<uint64_t>(view.lineage >> BALLOT_BITS) << 56 | <uint64_t>view.number << 24
            | <uint64_t>view.ballot)


cdef class Mbrship(Layer):
    """Views, and which messages belong to which."""

    name = "MBRSHIP"
    needs = frozenset({"FIFO", "ANY_SIZE"})
    gives = frozenset({"VIEWS"})

    def __init__(self, Core core, config, me):
        super().__init__(core)
        self.me = me
        self.options = config.options
        self.agreement = Agreement(self, me, config.options)
        self.detector = Detector(config.detection)
        self.slow = config.slow
        self.place = -1
        self.unlinked, self.unlinked_at = {}, {}
        self.early = []
        self.answered = {}
        self.asked = set()
        self.ask_at = self.frozen_at = NEVER

    # Downcalls.

    cpdef join(self, str address):
        """Make a group of one (""), or ask the endpoint at `address` to be let in."""
        if self.over:
            self.above.up_join_failed("this endpoint is out of the group for good: make another")
            return
        if self.view is not None:               # it is in already, or was, and does not know it
            if address and self.agreement.missed():
                held = self.above.up_held()
                self.contact_with(address, ["BEHIND", self.view.number, held])
            return
        if not address:
            self.install(View(1, 1, 0, (self.first(),)), b"")
            return
        self.seed = address
        self.ask()

    def first(self):
        """This member, as the first of a group."""
        rank = self.me.rank if self.me.rank is not None or self.me.witness else 0
        return Member(self.me.address, self.me.incarnation, rank, self.me.witness)

    def ask(self):
        """Ask to be let in, and again later."""
        asked = {name: value for name, value in self.options.items() if value is not None}
        self.contact_with(self.seed, ["JOIN", self.me.pack(), asked])
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
        """Ask the leader for a view without this member; who is still joining is let in first."""
        self.leaves = True
        if self.view is None:
            if not self.seed:
                self.exit("left")
        elif len(self.view.members) == 1:
            self.exit("the last member left")
        elif self.agreement.leader == self.place:
            self.agreement.ask_leave(self.me.incarnation)
            self.core.again(self)
        else:
            self.tell(self.agreement.leader, ["LEAVE"])
        self.mark("L1")

    cpdef flush(self, object failed):
        """A layer above wants a new view, without the `failed` places: they are too slow."""
        if self.view is None:
            return
        for place in failed:
            self.agreement.expelled.add(self.view.members[place].incarnation)
        if failed or not self.agreement.unsettled:
            self.unsettle(None)

    cpdef flush_ok(self, bytes report):
        self.agreement.report(report)

    cpdef holds(self):
        self.agreement.complete()
        if self.pending is not None and self.above.up_cut(self.pending.cut):
            self.decided(self.pending.view, self.pending.cut)

    cpdef degree(self, int least):
        self.least = least

    cpdef reset(self, int minimum):
        if self.view is None or self.agreement.attempt is None and not self.agreement.frozen:
            self.above.up_reset_failed("the group is not blocked")
        elif self.agreement.leader != self.place:
            self.tell(self.agreement.leader, ["RESET", minimum])
        else:
            why = self.agreement.reset(minimum)
            if why is not None:
                self.above.up_reset_failed(why)

    cpdef proceed(self):
        self.agreement.proceed()

    # Who is there.

    def heard(self, incarnation, when):
        """A member was heard at the time `when`."""
        if incarnation in self.detector.silent and self.is_broken("suspicion-never-ends"):
            return
        self.detector.heard(incarnation, when)

    def died(self, incarnation):
        """The process of a member was seen to end (H13)."""
        if self.view is None or self.view.place(incarnation) < 0:
            return
        since = self.unlinked_at.get(incarnation, self.core.now)
        if self.core.now - since > self.detector.detection // 2:
            self.detector.doubt = True          # it may have gone on without this member
        self.agreement.dead.add(incarnation)
        self.suspicions()

    cpdef expire(self):
        now = self.core.now
        if self.is_broken("silence-unnoticed"):
            self.detector.watch((), now)
        if self.detector.deadline is not None and now >= self.detector.deadline:
            silent = set(self.detector.silent)
            if self.detector.check(now):
                for incarnation in sorted(self.detector.silent - silent):
                    self.suspected(incarnation, "it is silent")
                back = sorted(silent - self.detector.silent)
                self.suspicions()
                for incarnation in back:
                    self.agreement.again(incarnation)
            self.agreement.ask_again()
            self.ask_strangers()
        if now >= self.ask_at:
            self.ask_at = NEVER
            if self.view is None and self.seed:
                self.ask()                      # and perhaps somebody else is asked, too
                self.above.up_join_failed(f"{self.seed} does not answer")
        if self.frozen_at != NEVER and now >= self.frozen_at + self.slow:
            self.frozen_at = now
            self.agreement.expel_awaited()
            self.core.again(self)
        self.plan()

    cdef suspicions(self):
        """Tell the agreement who is suspected now."""
        self.agreement.suspect(self.detector.silent | self.unlinked.keys())
        if self.view is not None and OLDEST_WATCHED <= min(self.place, self.agreement.leader):
            self.watch_all()
        self.core.again(self)

    def suspected(self, incarnation, str why):
        """Say that a member of the view is suspected."""
        self.mark("V1")
        place = self.view.place(incarnation)
        if place >= 0:
            self.above.up_problem(self.view.members[place], why)

    cdef settle(self):
        """A link broke, and what was under way on it is gone: only a new view closes the gap."""
        self.agreement.unsettled = True
        self.core.again(self)

    def unsettle(self, incarnation):
        """Have the leader begin a new view."""
        self.settle()
        if self.agreement.leader != self.place:
            self.tell(self.agreement.leader, ["LOST", incarnation or 0])

    cdef watch(self):
        """Beat to the oldest, or to all where this is one of them; and hear them."""
        members = self.view.members if self.view is not None else ()
        if self.place >= OLDEST_WATCHED:
            members = members[:OLDEST_WATCHED]
        beats = tuple([m for m in members if m.incarnation != self.me.incarnation])
        if beats != self.core.beats:
            self.core.beats = beats
            self.core.beats_version += 1
        self.detector.watch([member.incarnation for member in beats], self.core.now)
        self.plan()

    cdef watch_all(self):
        """None of the oldest is there, as seen here: who leads now is watched like them."""
        beats = tuple([m for m in self.view.members if m.incarnation != self.me.incarnation])
        if beats == self.core.beats:
            return
        self.core.beats = beats
        self.core.beats_version += 1
        self.detector.watch_too([member.incarnation for member in beats], self.core.now)
        self.plan()
        if self.agreement.leader != self.place:
            self.tell(self.agreement.leader, ["HERE"])  # if it has gone on meanwhile, it says so

    cdef ask_strangers(self):
        """While this member waits for others: who is not in its view may know more.

        All who could tell it that the group has gone on may be gone, but for such.
        """
        if self.agreement.missed():
            for address in self.below.focus("COM").strangers():
                held = self.above.up_held()
                self.contact_with(address, ["BEHIND", self.view.number, held])

    cdef plan(self):
        """The deadline: the detector's, the next question, or the end of patience."""
        cdef object least = self.ask_at
        if self.detector.deadline is not None:
            least = min(least, self.detector.deadline)
        if self.frozen_at != NEVER:
            least = min(least, self.frozen_at + self.slow)
        self.deadline = least

    # Upcalls.

    cpdef up_cast(self, Message message):
        cdef unsigned char* header = message.pop(HEADER)
        cdef uint64_t key
        if header is NULL:
            self.complain(message, "a message without a view")
            return
        key = load64(header)
        if key == self.key and message.source >= 0:
            self.above.up_cast(message)
        else:
            self.elsewhere(message, key, True)

    cpdef up_send(self, Message message):
        cdef unsigned char* header = message.pop(HEADER)
        cdef uint64_t key
        if header is NULL:
            self.complain(message, "a message without a view")
            return
        key = load64(header)
        if key == self.key and message.source >= 0:
            self.above.up_send(message)
        elif key == CONTROL or key == CONTROL | self.key:
            self.control(message)
        else:
            self.elsewhere(message, key, False)

    cdef elsewhere(self, Message message, uint64_t key, bint is_cast):
        """A message of another view: too old is dropped, too new waits."""
        if key < self.key and is_cast and self.is_broken("stale-view-accepted"):
            self.above.up_cast(message)
            return
        if key & ~CONTROL <= self.key or (self.view is None and not self.seed):
            self.stale += 1
            if self.view is not None and (message.source < 0 or key & CONTROL):
                self.behind(message)
            return
        self.early_bytes += message.size()
        if self.early_bytes > EARLY_MAX:
            raise ProtocolError(f"{EARLY_MAX} bytes of views that are not installed here")
        self.early.append((key, is_cast, message.copy()))
        peer = self.peer_of(message)
        if self.view is not None and peer is not None and self.may_answer(peer.incarnation):
            held = self.above.up_held()
            self.contact_with(peer.address, ["BEHIND", self.view.number, held])

    def may_answer(self, incarnation):
        """Whether a member that speaks of another view is told about this one now: not each time."""
        now, last = self.core.now, self.answered.get(incarnation)
        if last is not None and now - last < ANSWER_AGAIN:
            return False
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
            self.contact_with(peer.address, ["EXPELLED", self.view.pack()])
        elif self.agreement.last is not None:
            self.contact_with(peer.address, ["INSTALL", self.view.pack(), self.agreement.last.cut])

    cdef ahead(self, Message message, object number, bytes held):
        """BEHIND: a member of the old view asks for what brings it into the present one."""
        cdef Peer peer = self.peer_of(message)
        if self.view is None or peer is None:
            return
        if self.view.place(peer.incarnation) < 0:
            if number > self.view.number:       # it is this member that is behind
                self.contact_with(peer.address, ["BEHIND", self.view.number, self.above.up_held()])
            else:
                self.contact_with(peer.address, ["EXPELLED", self.view.pack()])
        elif self.view.number == number + 1:
            for piece in self.above.up_missing(held, True):
                self.contact_with(peer.address, ["SHIP", number, piece])
            self.contact_with(peer.address, ["INSTALL", self.view.pack(), self.agreement.last.cut])
            self.agreement.again(peer.incarnation)

    cpdef up_problem(self, object member, str why):
        """A link went down. It is a loss only where the peer belongs to the view."""
        cdef Peer peer = member
        if self.view is None:
            if peer.address == self.seed:
                self.above.up_join_failed(why)
            return
        if peer.place < 0 or len(self.view.members) <= peer.place:
            return
        gone = self.view.members[peer.place]
        if gone.incarnation != peer.incarnation or gone.incarnation in self.unlinked:
            return
        if self.is_broken("gap-not-closed") and peer.link >= 0:
            return
        if peer.link >= 0:                      # there is another link; what went by this one is lost
            self.unsettle(gone.incarnation)
            self.agreement.again(gone.incarnation)
            return
        self.unlinked[gone.incarnation] = why
        self.unlinked_at[gone.incarnation] = self.core.now
        if not self.agreement.departs(gone.incarnation) and not self.leaves:
            self.suspected(gone.incarnation, why)
        self.suspicions()
        self.unsettle(gone.incarnation)

    cpdef up_linked(self, object member):
        """A link stands again."""
        cdef Peer peer = member
        if self.view is None:
            return
        if peer.place < 0 and self.agreement.frozen and peer.address:
            # Blocked here, and perhaps long gone on there.
            held = self.above.up_held()
            self.contact_with(peer.address, ["BEHIND", self.view.number, held])
        if self.unlinked.pop(peer.incarnation, None) is None:
            return
        self.suspicions()
        if self.agreement.unsettled or peer.missed:
            self.unsettle(peer.incarnation)     # that word may have been lost with a link, too
        if peer.place >= 0:
            self.tell(peer.place, ["HERE"])     # whoever has gone on meanwhile says so
            self.agreement.again(peer.incarnation)

    # Control messages.

    cdef control(self, Message message):
        if self.view is None and not self.seed:
            self.stale += 1                     # out of the group: none of its business
            return
        try:
            fields = msgpack.unpackb(message.body, max_ext_len=0)
        except Exception:
            self.complain(message, "a control message that is not msgpack")
            return
        try:
            self.dispatch(message, fields)
        except ProtocolError as error:
            self.complain(message, str(error))

    cdef dispatch(self, Message message, object fields):
        match fields:
            case ["JOIN", [*packed], dict(options)]:
                self.requested(Member.unpack(packed), options)
            case ["DENIED", str(why)]:
                if self.view is None and self.leaves:
                    self.exit("left")
                elif self.view is None:
                    self.ask_at = NEVER
                    self.plan()
                    self.above.up_join_denied(why)
            case ["INSTALL", [*packed], bytes(cut)]:
                self.decided(View.unpack(packed), cut)
            case ["EXPELLED", [*packed]]:
                self.told_expelled(View.unpack(packed))
            case ["BEHIND", int(number), bytes(held)]:
                self.ahead(message, number, held)
            case ["SHIP", int(number), bytes(piece)]:
                if self.view is not None and number == self.view.number:
                    self.above.up_supply(piece)
            case ["LEAVE"] if self.view is not None and message.source >= 0:
                self.agreement.ask_leave(self.view.members[message.source].incarnation)
                self.core.again(self)
            case ["HERE"] if self.view is not None and message.source >= 0:
                # A link was made again, and only the other end may know that one was broken.
                self.agreement.again(self.view.members[message.source].incarnation)
            case ["RESET", int(minimum)] if self.view is not None and message.source >= 0:
                self.reset_for(message.source, minimum)
            case ["RESET_FAILED", str(why)] if self.view is not None and message.source >= 0:
                self.above.up_reset_failed(why)
            case list() if self.view is not None and message.source >= 0:
                self.agreement.receive(message.source, fields)
            case _:
                raise ProtocolError(f"{fields!r:.80} out of place")

    def reset_for(self, place, minimum):
        """RESET, of a member that does not lead."""
        why = self.agreement.reset(minimum)
        if why is not None:
            self.tell(place, ["RESET_FAILED", why])

    cdef requested(self, object member, object options):
        """JOIN, from the joiner or passed on by the member that it knew."""
        if self.view is None or self.leaves and len(self.view.members) == 1:
            return
        if self.view.place(member.incarnation) >= 0:
            last = self.agreement.last
            self.contact_with(member.address, ["INSTALL", self.view.pack(), last.cut])
        elif self.agreement.leader != self.place:
            self.tell(self.agreement.leader, ["JOIN", member.pack(), options])
        else:
            why = self.agreement.ask_join(member, options)
            if why is None:
                self.core.again(self)
            else:
                self.contact_with(member.address, ["DENIED", why])

    cdef decided(self, object view, bytes cut):
        """INSTALL: the next view of this member, or its first."""
        self.pending = None
        if self.view is None:
            if view.place(self.me.incarnation) >= 0:
                self.above.up_cut(cut)          # raises where it cannot be read
                self.mark("J2")
                self.install(view, cut)
        elif (view.number != self.view.number + 1 or view.lineage < self.view.lineage) and not (
                self.is_broken("install-any-number") and view != self.view):
            self.stale += 1
        elif self.above.up_cut(cut):
            self.install(view, cut)
        else:
            self.pending = Value(view, cut)     # whoever sent it has more to send, or is asked
            held = self.above.up_held()
            for member in view.members:         # one after the other, each once
                if (member.incarnation != self.me.incarnation and
                        member.incarnation not in self.asked and
                        self.view.place(member.incarnation) >= 0):
                    self.asked.add(member.incarnation)
                    self.contact_with(member.address, ["BEHIND", self.view.number, held])
                    break

    cdef told_expelled(self, object view):
        """The group has gone on without this member: it can never have its old writes accepted."""
        if view.place(self.me.incarnation) >= 0:
            return
        if self.view is None:
            if self.seed:
                self.above.up_join_failed("the group had let this member in, and expelled it")
        elif (view.lineage, view.number) > (self.view.lineage, self.view.number):
            self.exit(f"expelled: {view} went on without this member")

    # The agreement's port.

    def tell(self, place, message):
        cdef Message control = Message(msgpack.packb(message))
        store64(control.push(HEADER), CONTROL | self.key)
        self.below.send(control, (place,))

    def contact_with(self, address, message):
        cdef Message control
        if message[0] == "EXPELLED" and self.is_broken("no-expel-notice"):
            return
        if address:
            control = Message(msgpack.packb(message))
            store64(control.push(HEADER), CONTROL)
            self.below.contact(control, address)

    def freeze(self):
        if self.frozen_at == NEVER:
            self.frozen_at = self.core.now
            self.plan()
        self.above.up_flush(None)

    def missing(self, report):
        return self.above.up_missing(report, False)

    def supply(self, piece):
        self.above.up_supply(piece)

    def cut_of(self, reports):
        return self.above.up_flush_ok(reports)

    def has_cut(self, cut):
        return self.above.up_cut(cut)

    def has_state(self):
        return self.above.up_has_state()

    def is_sure(self):
        return self.detector.is_sure(self.core.now)

    def degree_here(self):
        return self.least

    def blocked(self, missing, rule):
        self.above.up_blocked(missing, rule)

    def mark(self, step):
        if self.core.on_mark is not None:
            self.core.on_mark(step)

    def is_broken(self, switch):
        return self.core.broken is not None and switch in self.core.broken

    def install(self, view, cut):
        """`view` is the view from here on."""
        cdef bint gone = view.place(self.me.incarnation) < 0
        if gone:
            self.above.up_view(view, cut)       # so that it has all that came before
            self.exit("left" if self.leaves else f"expelled: {view} goes on without this member")
            return
        self.view = view
        self.key = key_of(view)
        self.place = view.place(self.me.incarnation)
        self.me = view.members[self.place]
        present = {member.incarnation for member in view.members}
        self.unlinked = {each: why for each, why in self.unlinked.items() if each in present}
        self.ask_at = self.frozen_at = NEVER
        self.pending = None
        self.answered.clear()
        self.asked.clear()
        self.agreement.installed(Value(view, cut))
        self.below.view(view)
        self.watch()
        self.suspicions()
        self.mark("V9")
        self.above.up_view(view, cut)
        early, self.early, self.early_bytes = self.early, [], 0
        for key, is_cast, message in early:
            self.replay(key, is_cast, message)
        if self.leaves and self.view is not None and self.above.up_may_leave():
            self.leave()                        # who was asked is gone, or did not hear
        self.core.again(self)                   # who asked meanwhile is served now

    cdef replay(self, uint64_t key, bint is_cast, Message message):
        cdef Peer peer
        if key & ~CONTROL != self.key:
            self.elsewhere(message, key, is_cast)
            return
        peer = self.below.focus("COM").peer_at(message.link)
        message.source = -1 if peer is None else peer.place
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
        self.ask_at = self.frozen_at = NEVER
        self.early, self.early_bytes = [], 0
        self.agreement.view = None
        self.watch()
        self.above.up_exit(why)

    cdef complain(self, Message message, str why):
        self.above.up_system_error(f"from place {message.source} by link {message.link}: {why}")

    cpdef dict dump(self):
        return {"view": self.view, "place": self.place, "unlinked": dict(self.unlinked),
                "silent": set(self.detector.silent), "promised": self.agreement.promised,
                "stale": self.stale}
