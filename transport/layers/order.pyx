# cython: allow_none_for_extension_args=False
"""ORDER: one order, in shared memory where all members are on one host, and through a sequencer where they are not.

Promises what TOTAL (A26) and RING (A24) promise, which it uses, one in each view (ADR-27). Seqnos go on from the one to the other, so what stands
above sees one order. The cut before a view says which of them orders in it (transport/ring/choice.py): the coordinator takes
RING if all members of the view are on its host, none is known to be *apart*, and there is room for all.

*Apart* are two members of which one cannot map the other's memory: they may be of two user namespaces, or be connected by a
relay, or not at all. Over RING alone the younger would have to leave. Here it says so to all, asks for a view, and as long as both are in
the group that has its order through a sequencer. If it was for want of descriptors or memory, some later views try again.

*Going over*: what the order of the view before has is delivered, what this member has cast and has no place there is cast
in the other one, in the view that begins. Each period of an order has a layer of its own, so that nothing stays of an earlier one.

*To memory*: a packet that is tentative has its holders counted by TOTAL, so the order goes over if the cut has none. Else the next
view has a sequencer, too, which numbers nothing more, and asks for a view as soon as all that has a number is accepted.
"""

from functools import partial

from orcalike.transport.drivers.descriptors import Alarm
from orcalike.transport.drivers.mapped_order import check_sizes
from orcalike.transport.errors import ProtocolError
from orcalike.transport.ring.choice import LASTS, Choice, can_share, in_view, still_apart
from orcalike.transport.ring.fence import Fence
from orcalike.transport.total.flush import Cut, Report

cimport cython

from orcalike.transport.layers.base cimport NEVER, Core, Layer
from orcalike.transport.layers.ring cimport SharedOrder
from orcalike.transport.layers.total cimport Total
from orcalike.transport.wire.message cimport Message


@cython.final
cdef class EitherOrder(Layer):
    """RING in views whose members share memory, TOTAL in others. `ORDER(packets=N, bytes=N, slots=N, lane=N)`: their parameters."""

    name = "ORDER"
    needs = frozenset({"VIEWS", "FIFO", "ANY_SIZE"})
    gives = frozenset({"TOTAL_ORDER"})

    def __init__(self, Core core, config, me, packets=1024, bytes=16777216, slots=65536, lane=1048576):
        super().__init__(core)
        self.config, self.me = config, me
        self.sizes = {"TOTAL": (packets, bytes), "RING": (slots, lane)}
        self.apart, self.found = {}, {}
        self.given = True
        self.current = self
        check_sizes(slots, lane)
        self.use(Total(core, config, me, packets, bytes))

    cpdef start(self):
        self.core.alarm = Alarm()
        self.link()
        self.core.stand_in(self, self.current)

    cdef int link(self) except -1:
        """The one that orders stands between the neighbours of this layer."""
        self.current.above, self.current.below = self.above, self.below
        return 0

    cdef int use(self, Layer layer) except -1:
        """This one orders from here on."""
        self.in_memory = layer if isinstance(layer, SharedOrder) else None
        self.sequenced = layer if isinstance(layer, Total) else None
        self.core.stand_in(self.current, layer)
        self.core.ear = self.in_memory
        self.current = layer
        self.link()
        return 0

    # Downcalls: what TOTAL and RING answer.

    cpdef cast(self, Message message):
        cdef Layer current = self.current       # which is not let go before it returns
        current.cast(message)

    cpdef send(self, Message message, tuple members):
        self.current.send(message, members)

    cpdef flush(self, object failed):
        self.current.flush(failed)

    cpdef list unsent(self):
        return self.current.unsent()

    cpdef lower(self, Message packet):
        self.current.lower(packet)

    cpdef credit(self, bint given):
        self.given = given
        self.current.credit(given)

    cpdef degree(self, int least):
        self.least = least
        self.current.degree(least)

    cpdef incomplete(self, object members):
        self.current.incomplete(members)
        if self.goes_over:
            self.sequenced.settle()
            self.watch()

    cpdef object fast(self):
        return self.current.fast()

    cpdef object focus(self, str name):
        if name == self.name:
            return self
        return self.current if name == self.current.name else self.below.focus(name)

    # Which of them orders.

    def set_apart(self, pair, lasts):
        """These two share no memory: the order goes on through a sequencer."""
        since = LASTS if lasts else self.apart.get(pair, self.installed.number)
        new = in_view({pair: since}, self.installed)
        if new and (pair not in self.found or lasts and self.found[pair] != LASTS):     # others may say it as often as they like
            self.found |= new
            self.below.flush(())

    cdef bint can_share(self, object view, dict apart) except -1:
        descriptors = self.core.descriptors
        return descriptors is not None and can_share(view, apart, partial(descriptors.is_near, self.me.address))

    cdef object choice_of(self, object view, bytes cut):
        """What a cut says of the view that follows; without a cut this member begins alone."""
        return Choice.unpack(cut) if cut else Choice(self.can_share(view, self.apart), self.apart, cut)

    cpdef bint up_rests(self, object view, bytes cut):
        return self.choice_of(view, cut).in_memory

    cpdef bytes up_flush_ok(self, dict reports, object view, bint ends):
        cdef bytes cut = self.current.up_flush_ok(reports, view, ends)
        cdef dict apart = in_view(self.apart if self.in_memory is None else self.found, view)
        cdef bint shared = self.can_share(view, still_apart(apart, view, self.is_due))
        if shared and self.sequenced is not None:
            it = Cut.unpack(cut)
            shared = it.mark == it.last
        return Choice(shared, apart, cut).pack()

    cpdef up_view(self, object view, bytes cut):
        """Begin the view, in the order that the cut says."""
        choice = self.choice_of(view, cut)
        self.past, self.former, self.goes_over = None, None, False
        self.link()                     # something else may stand above by now
        if view.position(self.me.incarnation) >= 0:
            self.apart, self.found = choice.apart, {}   # where word of others came too late for the cut it comes again
            self.is_due = not choice.in_memory and len(still_apart(self.apart, view, self.is_due)) < len(self.apart)
            if choice.in_memory != (self.in_memory is not None):
                self.go_over(view, choice)
        self.installed = view
        self.current.up_view(view, choice.cut)
        self.goes_over = (self.sequenced is not None and self.sequenced.position == 0
                          and self.can_share(view, still_apart(self.apart, view, self.is_due)))
        if self.goes_over:
            self.sequenced.settle()
            self.watch()

    cdef int go_over(self, object view, object choice) except -1:
        """The other one orders in the view that begins."""
        cdef object it = Cut.unpack(choice.cut) if choice.cut else None
        cdef list left = self.sequenced.hand_over(view, it) if self.in_memory is None else self.in_memory.hand_over(view, it)
        cdef SharedOrder shared
        cdef Total total
        cdef Message message
        self.past = self.current        # this may be called by it
        if choice.in_memory:
            self.former = self.sequenced if self.installed is not None else None
            shared = SharedOrder(self.core, self.config, self.me, *self.sizes["RING"])
            shared.on_apart = self.set_apart
            self.use(shared)
            self.below.degree(0)        # each is met by what is in memory
        else:
            total = Total(self.core, self.config, self.me, *self.sizes["TOTAL"])
            total.frozen = True         # until it has the view
            total.counter = 0 if it is None else it.counters.get(self.me.incarnation, 0)
            self.use(total)
        self.current.degree(self.least)
        self.current.credit(self.given)
        for message in left:
            self.current.cast(message)
        return 0

    cdef int watch(self) except -1:
        """Look whether the order can go over to memory by now."""
        if self.sequenced.is_settled():
            self.core.again(self)
        return 0

    cpdef proceed(self):
        if self.goes_over and self.sequenced.is_settled():
            self.goes_over = False
            self.below.flush(())

    # Upcalls of MBRSHIP: the one that orders answers.

    cdef object checked(self, bytes cut):
        """What a cut says; raises ProtocolError for one that no coordinator of this view makes."""
        cdef object choice = Choice.unpack(cut), it = Cut.unpack(choice.cut)
        if it.order:
            Fence.unpack(it.order)
        if self.in_memory is None and (choice.in_memory and it.mark != it.last and not it.order
                                       or it.order and self.installed is not None):
            raise ProtocolError("a cut that goes over to an order with what that cannot have")
        return choice

    cpdef up_flush(self, object failed):
        cdef Layer current = self.current
        current.up_flush(failed)

    cpdef bytes up_held(self):
        return self.current.up_held()

    cpdef list up_missing(self, bytes report, bint before):
        """Of the view before, another order may be asked: one in memory has all for all of its members."""
        cdef Layer holder = self.current
        if before and self.in_memory is not None and self.former is not None:
            holder, before = self.former, False
        elif before and self.sequenced is not None:
            try:
                Report.unpack(report)
            except ProtocolError:
                return []
        return holder.up_missing(report, before)

    cpdef up_check(self, object report, object cut):
        self.current.up_check(report, None if cut is None else self.checked(cut).cut)

    cpdef up_supply(self, bytes piece):
        self.current.up_supply(piece)

    cpdef int up_has_state(self):
        return self.current.up_has_state()

    cpdef bint up_cut(self, bytes cut):
        cdef Layer current = self.current
        return current.up_cut(self.checked(cut).cut)

    cpdef bint up_is_held_up(self):
        return self.goes_over or self.current.up_is_held_up()

    cpdef bint up_vouches(self, object incarnation):
        return self.current.up_vouches(incarnation)

    cpdef up_alone(self, tuple left_out):
        self.current.up_alone(left_out)

    cpdef up_cast(self, Message message):
        self.current.up_cast(message)

    cpdef up_send(self, Message message):
        cdef Layer current = self.current
        current.up_send(message)
        if self.goes_over:
            self.watch()

    cpdef up_exit(self, str why):
        self.goes_over = False
        self.link()
        self.current.up_exit(why)

    def release(self):
        """Give memory back, if this member has any."""
        if self.in_memory is not None:
            self.in_memory.release()
