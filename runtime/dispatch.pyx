"""Dispatch: the runtime of one group, on top of its stack (active messages 3: D12, D16; D08).

A message is  object (varint) | operation, twice, plus 1 where names follow (varint) | arguments.
Object 0 is the group itself; what it does is in `manager`. What is done with an invocation of an object is in `applying`.

This member's own invocations are with its `sender`, which knows where their outcomes are wanted.
"""

from collections import OrderedDict

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t

from orcalike.runtime.codes import Code
from orcalike.runtime.errors import ObjectDropped
from orcalike.runtime.evidence import note_delivery
from orcalike.runtime.own_numbers import numbers_of_reads
from orcalike.runtime.state import canonical_state
from orcalike.transport.stacks import check_above

from orcalike.runtime.applying cimport Applying
from orcalike.runtime.atomic_calls cimport AtomicCalls
from orcalike.runtime.call cimport Call
from orcalike.runtime.degrees cimport Degrees
from orcalike.runtime.group_clock cimport GroupClock
from orcalike.runtime.left cimport Left
from orcalike.runtime.receipts cimport Receipts
from orcalike.runtime.replica cimport UNDECLARED, Replica
from orcalike.runtime.sender cimport Sender
from orcalike.runtime.time_budget cimport BATCH_MAX, TimeBudget
from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.layers.pack cimport Pack
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.bytes cimport get_varint
from orcalike.transport.wire.message cimport Message

cdef extern from "Python.h":
    Py_ssize_t PyList_GET_SIZE(PyObject*) noexcept

cdef unsigned int ATOMIC = Code.ATOMIC
cdef unsigned int DIGESTS = Code.DIGESTS

@cython.final
cdef class Runtime(Applying):
    """The shared objects of one group, as this member has them."""

    name, kind = "the runtime of shared objects", "objects"
    needs = frozenset({"PACKED", "TOTAL_ORDER", "STATE"})

    def __init__(self, Stack stack, codec_of, incarnation):
        super().__init__(stack)
        self.stack, self.incarnation = stack, incarnation
        self.replicas = [None]
        self.waiting = {}
        self.position = -1
        self.credit_reported = True
        self.look_at = UINT64_MAX
        self.dirty = OrderedDict()
        self.degrees = Degrees(self)
        self.sender = Sender(self, codec_of(self), self.degrees)
        self.atomic_calls = AtomicCalls(self)
        self.budget = TimeBudget()
        self.clock = GroupClock()
        self.attach(stack)

    cdef int attach(self, Stack stack) except -1:
        """Stand on a stack that gives what this needs; raises StackError for any other."""
        check_above(stack.layers, Runtime)
        stack.above = self
        # What is right below gives PACKED: invocations are marshalled there in place.
        self.sender.stand_on(<Pack?>self.below, Receipts(stack, self)
                             if stack.focus("STABLE") is not None else None)
        return 0

    # Receiving.

    cpdef up_cast(self, Message message):
        """One message of a packet, in its place in the order."""
        cdef const unsigned char* p = message.data()
        cdef const unsigned char* stop = p + message.size()
        cdef uint32_t number, code
        cdef Replica replica
        self.dispatched += 1
        if self.chain is not None and (stop - p < 2 or p[0] != 0 or p[1] != DIGESTS << 1):
            note_delivery(self, message)
        if message.index == 0:
            self.start_batch(message)
        self.recent = 0
        p = get_varint(p, stop, &number)
        if p is not NULL:
            p = get_varint(p, stop, &code)
        if p is NULL:
            self.drop_invocation(message, "it is cut short")
        elif number == 0:
            self.do(message, code, p, stop)
        elif number >= <uint32_t>PyList_GET_SIZE(<PyObject*>self.replicas):
            self.drop_invocation(message, f"there is no object {number}")
        else:
            replica = <Replica>self.replicas[number]
            if replica is None:
                self.sender.lose(self.taken(message),
                                 ObjectDropped("the object was ended with group.drop"))
            else:
                self.apply(replica, message, p, stop, code)
        if message.source < 0 and message.index + 1 == message.count:
            self.manager.left_already(self.member_at(message.source))

    cdef int do(self, Message message, uint32_t code, const unsigned char* p, const unsigned char* stop) except -1:
        """One of the group's own operations."""
        if code == ATOMIC << 1:
            return self.atomic_calls.take(message, p, stop, self.taken(message))
        if code >> 1 == DIGESTS:
            self.dispatched -= 1
        self.manager.dispatch(message.source, message.ticket, code >> 1, p[:stop - p], self.taken(message))
        return 0

    # The bound on handlers.

    cpdef proceed(self):
        """The packets of this input have been dispatched: how long did it take?"""
        if self.sender.history is not None:
            self.sender.history.flush()
        if self.sender.room.waitable is not None or self.sender.room.futures:
            self.sender.room.tell()
        if self.least != self.least_reported:
            self.least_reported = self.least
            self.below.degree(self.least)
        if self.credit_reported != (self.full_queues == 0):
            self.credit_reported = not self.credit_reported
            self.below.credit(self.credit_reported)
        self.budget.dispatched_in = self.core.now
        if self.budget.in_batch:
            self.budget.in_batch = False
            if self.sender.driver.has_come(self.budget.batch_began + BATCH_MAX):
                self.slow_batch(self.sender.driver.clock(), self.dispatched == self.budget.batch_first)

    cdef int start_batch(self, Message message) except -1:
        """The first message of a packet has come; the others are the same object, moved along."""
        cdef bint is_new = <int64_t>message.stamp == self.core.wall and message.source == self.position
        cdef int64_t now = self.budget.moment(self.sender.driver, self.core.now if is_new else 0)
        self.message = message
        self.core.schedule(self)
        if self.budget.in_batch and now - self.budget.batch_began >= BATCH_MAX:
            self.slow_batch(now, self.dispatched == self.budget.batch_first + 1)
        self.clock.note(message.stamp, now)
        self.budget.begin(self.sender.driver, now, self.dispatched)
        if self.sender.receipts is not None:
            self.sender.receipts.note(message.seqno)
        if message.stamp >= self.look_at:
            self.digests.due(message.seqno, message.index, message.stamp)
            self.budget.batch_began = self.sender.driver.clock()   # a look is no operation's fault
        return 0

    cdef int slow_batch(self, int64_t now, bint alone) except -1:
        """A packet took too long; `alone`: it had one message."""
        cdef Replica replica = self.replicas[self.recent] if self.recent < len(self.replicas) else None
        return self.budget.check(self.sender.driver, now, alone, replica, self.recent_code)

    # Deadlines.

    def wake_in(self, int64_t ns):
        """Have `expire` called after so long, if no earlier time is set."""
        self.deadline = min(self.deadline, self.core.now + ns)

    cpdef bint up_is_held_up(self):
        return self.long_waits.is_any()

    cpdef expire(self):
        """The deadline has come."""
        self.deadline = NEVER
        self.digests.expire()
        self.long_waits.expire(self.core.now)

    # What tasks ask for.

    def queue_full(self, Replica replica):
        """A lock queue is at its bound: no more is taken for applied, and so the senders wait.

        An operation in a thread of its own, which holds the object up, waits for nothing. An object without a class is given up.
        """
        if replica.flags & UNDECLARED:
            self.table.give_up(replica)
            return
        self.full_queues += 1
        self.proceed_with(self)

    def queue_has_room(self, Replica replica):
        """It has become half as long."""
        if not replica.flags & UNDECLARED:
            self.full_queues -= 1
            self.proceed_with(self)

    def digest_of(self, Replica replica):
        """The object's state, encoded in one way only."""
        return canonical_state(self.sender.codec, replica)

    def fail_all(self, error):
        """Nothing that is under way will have an outcome any more: `error` ends it, and all calls."""
        if self.sender.failure is None or self.barred:
            self.sender.failure = error
            self.barred = False
        self.end_calls(error)
        self.waiting.clear()

    def let_go(self, error):
        """The group was left, which `error` says: its objects, the ended ones too, are the program's."""
        cdef Left left = Left(error, self)
        for replica in self.replicas:
            if replica is not None:
                replica.let_go(left, error)
        for replica, _ in self.table.remains():
            replica.let_go(left, error)

    def bar(self, error):
        """Until there is a view again `error` ends what is under way, and all calls.

        What was sent may be ordered yet.
        """
        if self.sender.failure is None or self.barred:
            self.sender.failure = error
            self.barred = True
            self.end_calls(error)

    cdef int end_calls(self, object error) except -1:
        self.sender.lose_all(error)
        self.manager.fail_all(error)
        if self.sender.receipts is not None:
            self.sender.receipts.fail_all(error)
        self.sender.room.tell()
        for call in list(self.waiting.values()):
            (<Call>call).fail(error)
        return 0

    # Views and state.

    def rebind(self, Stack stack):
        """This member joins again, after `fail_all`, on another stack, as another incarnation.

        The state that comes goes into the objects that there are, and calls work again when it is
        complete. To be called as an input of the driver.
        """
        self.core.forget_todo()         # the old stack may have been about to go on with this one
        self.core = self.stack = stack
        self.incarnation = stack.me.incarnation
        self.message = None             # the view stays: threads that wait look at it
        self.position = -1
        self.dispatched = 0
        self.chain = None if self.chain is None else b""
        self.donor.forget()
        self.taker.keep_objects([*self.replicas, *self.table.remains()])
        self.replicas = [None]
        self.waiting = {}
        self.least = self.least_reported = 0
        self.full_queues = 0
        self.credit_reported = True
        self.manager.forget()
        self.barred = self.joins = True
        self.attach(stack)

    cpdef up_view(self, object view, bytes cut):
        before, self.joins = None if self.joins else self.view, False
        if self.barred:
            self.barred = False
            self.taker.lose_kept()      # objects that no state has named
            self.sender.failure = None
            if self.sender.receipts is not None:
                self.core.again(self.sender.receipts)
        self.view = view
        self.clock.ahead_is_old = True      # another member may order
        self.position = view.position(self.incarnation)
        if self.sender.history is not None:
            self.sender.history.viewed(view, self.position, None if self.message is None else self.message.seqno)
        self.budget.run_aside(self.sender.driver, self.manager.view_changed, before, view)
        if self.sender.receipts is not None:
            self.sender.receipts.viewed(view)
        if self.digests is not None:
            self.digests.begin()
        if self.position >= 0:          # else it was before this member, and comes with the state
            self.events.viewed(view)

    cpdef up_stable(self, object matrix):
        self.sender.receipts.up_stable(matrix)

    cpdef up_problem(self, object member, str why):
        self.events.suspected(member, why)

    cpdef up_blocked(self, object missing, str rule):
        self.events.blocked_by(missing, rule)

    cpdef up_reset_failed(self, str why):
        self.events.reset_failed(why)

    cpdef up_exit(self, str why):
        if self.sender.history is not None:
            self.sender.history.exited(why)
        self.events.exited(why)

    cpdef up_join_failed(self, str why):
        self.events.join_failed(why)

    cpdef up_join_denied(self, str why):
        self.events.join_denied(why)

    cpdef up_system_error(self, str why):
        self.events.system_error(why)

    cpdef object up_give_state(self):
        return self.donor.give()

    cpdef up_begin_state(self):
        self.taker.begin()

    cpdef up_take_state(self, bytes piece):
        self.taker.take(piece)

    cpdef up_end_state(self):
        self.budget.run_aside(self.sender.driver, self.taker.end)

    # What a session asks of whatever stands on its stack.

    @property
    def group_degree(self):
        """The degree of what has none of its own."""
        return self.degrees.group

    @property
    def available(self):
        """Whether a degree counts as far as the view has members for it."""
        return self.degrees.available

    @property
    def notice(self):
        """What the next call raises, once."""
        return self.sender.notice

    @notice.setter
    def notice(self, error):
        self.sender.notice = error

    def load(self):
        """How many objects have a name, and how many calls wait here for their guards."""
        return len(self.table.names), len(self.waiting)

    def too_few(self):
        """Why writes of a degree in use wait for more members; None if none has to."""
        return self.degrees.too_few()

    def say_too_few(self, int degree):
        """What a degree takes, and what the view has."""
        return self.degrees.say_too_few(degree)

    # For what is written in Python.

    def set_least(self, int least):
        """R has changed; the stack is notified when the upcalls have returned."""
        self.least = least
        self.core.again(self)

    def proceed_with(self, layer):
        """Have a layer, or what belongs to this one, go on; from any thread."""
        self.core.again(layer)
        self.sender.driver.kick()

    def more_state(self):
        """A piece of state that a joiner waits for may be there now."""
        self.proceed_with(self.stack.focus("XFER"))

    cpdef object member_at(self, int position):
        return self.view.members[position] if position >= 0 else self.core.departed[-2 - position]

    def place_of(self):
        """(seqno, index, stamp) of the message that is dispatched now."""
        if self.message is None:
            return 0, 0, self.manager.stamp
        return self.message.seqno, self.message.index, self.message.stamp

    cpdef uint64_t group_clock(self) except? 0:
        """The sequencer's clock in this moment, as far as it is known here."""
        return self.clock.read(self.place_of()[2], self.sender.driver.clock())

    def rng_of_reads(self):
        """A generator for the reads of this process, from the group's seed."""
        if self.rng is None:
            self.rng = numbers_of_reads(self.manager.seed, self.position)
        return self.rng

    @property
    def seed(self):
        """The group's."""
        return self.manager.seed

    @property
    def me(self):
        """This member, with its rank where it is in a view."""
        return self.view.members[self.position] if self.position >= 0 else self.stack.me
