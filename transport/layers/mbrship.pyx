"""MBRSHIP: views, and which messages belong to which (Horus 4.3; H02, H13, H62, A02, A09).

Promises: members that go from one view to the next delivered the same messages in between
(virtual synchrony, H03). A message carries the view that it was sent in, and is passed up in
that view only: one of an older view is dropped, one of a view that is not installed here yet
waits for it. Joining goes through any member, and is repeated until the group has answered.

Needs FIFO from below. The agreement on views is in `membership/agreement.py`; which packets are
held, and what must be delivered before a view, is for the layers above (`up_flush`,
`up_flush_ok`, `up_cut`).
"""

import msgpack

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.view import Member, View

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport NEVER, Core, Layer
from orcalike.transport.layers.com cimport Peer
from orcalike.transport.wire.bytes cimport load64, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    HEADER = 8
    EARLY_MAX = 67108864            # bytes of views that are still to come
    ASK_AGAIN = 1000000000          # ns until a join is asked for again

cdef uint64_t CONTROL = 1ull << 63  # set in control messages; the rest is the view, 0 for strangers


cdef uint64_t key_of(object view):
    """lineage (12 bits), number (32), ballot (12): in the order of views."""
    return (<uint64_t>view.lineage << 44) | (<uint64_t>view.number << 12) | <uint64_t>view.ballot


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
        self.place = -1
        self.lost = {}
        self.early = []

    # Downcalls.

    cpdef join(self, str address):
        """Make a group of one (""), or ask the endpoint at `address` to be let in."""
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
        self.deadline = self.core.now + ASK_AGAIN

    cpdef expire(self):
        self.deadline = NEVER
        if self.view is None and self.seed:
            self.ask()

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
        elif self.place == 0:
            self.agreement.ask_leave(self.me.incarnation)
            self.core.again(self)
        else:
            self.tell(0, ["LEAVE"])

    cpdef flush_ok(self, bytes report):
        self.agreement.report(report)

    cpdef holds(self):
        self.agreement.complete()

    cpdef proceed(self):
        self.agreement.begin()

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
        if key & ~CONTROL <= self.key or (self.view is None and not self.seed):
            self.stale += 1
            return
        self.early_bytes += message.size()
        if self.early_bytes > EARLY_MAX:
            raise ProtocolError(f"{EARLY_MAX} bytes of views that are not installed here")
        self.early.append((key, is_cast, message.copy()))

    cpdef up_problem(self, object member, str why):
        """A link went down. It is a loss only where the peer belongs to the view."""
        cdef Peer peer = member
        if self.view is None:
            if peer.address == self.seed:
                self.above.up_join_failed(why)
            return
        place = peer.place
        if place < 0 or self.leaves:
            return
        gone = self.view.members[place]
        if gone.incarnation != peer.incarnation or self.agreement.departs(gone.incarnation):
            return
        if gone.incarnation not in self.lost:
            self.lost[gone.incarnation] = why
            self.above.up_problem(gone, why)

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
                    self.deadline = NEVER
                    self.above.up_join_denied(why)
            case ["INSTALL", [*packed], bytes(cut)]:
                self.decided(View.unpack(packed), cut)
            case ["LEAVE"] if self.place == 0 and message.source > 0:
                self.agreement.ask_leave(self.view.members[message.source].incarnation)
                self.core.again(self)
            case list() if self.view is not None and message.source >= 0:
                self.agreement.receive(message.source, fields)
            case _:
                raise ProtocolError(f"{fields!r:.80} out of place")

    cdef requested(self, object member, object options):
        """JOIN, from the joiner or passed on by the member that it knew."""
        if self.view is None or self.leaves and len(self.view.members) == 1:
            return
        if self.place != 0:
            self.tell(0, ["JOIN", member.pack(), options])
            return
        why = self.agreement.ask_join(member, options)
        if why is None:
            self.core.again(self)
        else:
            self.contact_with(member.address, ["DENIED", why])

    cdef decided(self, object view, bytes cut):
        """INSTALL: the next view of this member, or its first."""
        if self.view is None:
            if view.place(self.me.incarnation) >= 0:
                self.above.up_cut(cut)          # raises where it cannot be read
                self.install(view, cut)
        elif view.number != self.view.number + 1:
            self.stale += 1
        elif self.agreement.proposal != (view, cut):
            raise ProtocolError(f"it installs {view}, which was not accepted here")
        elif self.agreement.departs(self.me.incarnation):
            self.above.up_view(view, cut)       # so that it has all that came before
            self.exit("left")
        else:
            self.install(view, cut)

    # The agreement's port.

    def tell(self, place, message):
        cdef Message control = Message(msgpack.packb(message))
        store64(control.push(HEADER), CONTROL | self.key)
        self.below.send(control, (place,))

    def contact_with(self, address, message):
        cdef Message control = Message(msgpack.packb(message))
        store64(control.push(HEADER), CONTROL)
        self.below.contact(control, address)

    def freeze(self):
        self.above.up_flush(None)

    def cut_of(self, reports):
        return self.above.up_flush_ok(reports)

    def has_cut(self, cut):
        return self.above.up_cut(cut)

    def install(self, view, cut):
        """`view` is the view from here on."""
        cdef bint gone = view.place(self.me.incarnation) < 0
        if gone:                                # the leader itself leaves
            self.above.up_view(view, cut)
            self.exit("left")
            return
        self.view = view
        self.key = key_of(view)
        self.place = view.place(self.me.incarnation)
        self.me = view.members[self.place]
        self.lost = {}
        self.deadline = NEVER
        self.agreement.installed(view)
        self.below.view(view)
        self.above.up_view(view, cut)
        early, self.early, self.early_bytes = self.early, [], 0
        for key, is_cast, message in early:
            self.replay(key, is_cast, message)
        if self.leaves and self.above.up_may_leave():
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
        self.view = None
        self.key = 0
        self.place = -1
        self.seed = None
        self.deadline = NEVER
        self.early, self.early_bytes = [], 0
        self.above.up_exit(why)

    cdef complain(self, Message message, str why):
        self.above.up_system_error(f"from place {message.source} by link {message.link}: {why}")

    cpdef dict dump(self):
        return {"view": self.view, "place": self.place, "lost": dict(self.lost),
                "stale": self.stale}
