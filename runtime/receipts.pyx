"""Receipts: what was applied here, and the calls that wait until others have applied it (Horus 4.4: H66, H68).

Only where STABLE is in the stack. The application's meaning of "seen" is *applied*: a packet is
acked when all its invocations have run here, those in lock queues and pop-up threads too. A `PendingApply`
stands for the tasks that were delivered at one place and are not applied yet; nothing is acked from
the oldest on. A call that waits for its guard is part of the objects' state, and counts as applied;
so does a task that waits for a class that is not declared here.

`options(stable=k)`: an invocation that has run here is held back until k members have acked the
packet that it came in. One that had waited for its guard ran at some later place: a mark is put
into the order behind it, and the mark's packet is what counts.
"""

import logging
from collections import deque
from heapq import heapify, heappop, heappush

from orcalike.runtime.codes import Code
from orcalike.runtime.errors import InvocationTimeout, TooManyWaiting
from orcalike.runtime.invocation import name_of
from orcalike.transport.errors import NotEnoughMembers
from orcalike.transport.wording import counted

from libc.stdint cimport uint64_t

from orcalike.runtime.invocation cimport Invocation
from orcalike.transport.layers.base cimport Core, Layer
from orcalike.transport.wire.message cimport Message

NO_STABLE = (
    "the group's stack has no STABLE layer, which knows what the other members have applied: make "
    'the group with join(stack="PACK:STABLE:XFER:TOTAL:MBRSHIP:COM:unix"), or tcp')

HEAP_SPARE = 64
HELD_MAX = 65536
"""Invocations of this member that may have run here and wait for others."""

_log = logging.getLogger("orcalike")


cdef class PendingApply:
    """Tasks that were delivered at one place in the order, and are not applied yet."""

    cdef PendingApply share(self):
        """Another task, which the first has let run, is part of the same."""
        self.tasks += 1
        return self

    cdef int end(self) except -1:
        """One of the tasks is applied."""
        self.tasks -= 1
        return self.receipts.settled() if self.tasks == 0 else 0


cdef class Receipts(Layer):
    """What of the order was applied here, and which invocations wait until others have applied it."""

    def __init__(self, Core core, runtime):
        super().__init__(core)
        self.runtime = runtime
        self.pending = deque()
        self.receipt = Message()
        self.held = {}
        self.awaited = {}
        self.marks = {}

    # What is applied here.

    cdef int note(self, uint64_t seqno) except -1:
        """A packet is dispatched; it is acked once the upcalls have returned."""
        self.delivered = seqno
        self.core.again(self)
        return 0

    cdef PendingApply begin_pending(self):
        """A task of the newest packet is not applied yet."""
        cdef PendingApply pending = PendingApply.__new__(PendingApply)
        pending.receipts = self
        pending.since = self.delivered or 1
        pending.tasks = 1
        self.pending.append(pending)
        return pending

    cdef int settled(self) except -1:
        """One is over, on whatever thread: ack what can be acked now."""
        while self.pending and (<PendingApply>self.pending[0]).tasks == 0:
            self.pending.popleft()
        if self.runtime.sender.receipts is self:   # and no other, of a later membership
            self.runtime.proceed_with(self)
        return 0

    cpdef proceed(self):
        """Ack all that is applied."""
        cdef uint64_t level = self.delivered
        if self.pending:
            level = (<PendingApply>self.pending[0]).since - 1
        if level > self.acked and self.runtime.sender.failure is None:
            if self.runtime.sender.history is not None:     # what others may know from this is on file
                self.runtime.sender.history.flush()
            self.acked = self.receipt.seqno = level
            (<Layer>self.runtime).below.ack(self.receipt)

    # Calls that wait until others have applied them.

    cdef int check(self, object operation, unsigned int members) except -1:
        """Raise if so few are in the view that no member can say when it would be applied."""
        cdef Py_ssize_t present
        if len(self.held) >= HELD_MAX:
            raise TooManyWaiting(
                f"{name_of(operation)} with stable={members}: {len(self.held)} invocations wait until "
                "others have applied them; this one was not sent")
        if not self.runtime.degrees.patient:
            present = len(self.runtime.view.replicas)
            if present < <Py_ssize_t>members:
                raise NotEnoughMembers(
                    f"{name_of(operation)} with stable={members}: the view has "
                    f"{counted(present, 'member')} with replicas; it was not sent")
        return 0

    cpdef int hold_back(self, Invocation invocation, uint64_t seqno, object result,
                        object error) except -1:
        """An invocation has run here, in the packet `seqno`, or, where that is 0, later than that."""
        self.held[invocation.ticket] = (invocation, result, error)
        if invocation.withdrawn is not None:
            self.give_up(invocation, invocation.withdrawn)
        elif not self.enough(invocation):
            self.too_few(invocation)
        elif seqno:
            self.wait_for(seqno, invocation)
        else:
            self.marks[self.runtime.sender.post(Code.FENCE, (), "a mark")] = invocation.ticket
        return 0

    def marked(self, ticket):
        """A mark of this member has its place in the order."""
        held = self.held.get(self.marks.pop(ticket, None))
        if held is not None:
            self.wait_for(self.delivered, held[0])

    cdef int wait_for(self, uint64_t seqno, Invocation invocation) except -1:
        cdef unsigned int members = invocation.wanted
        entry, first = (seqno, invocation.ticket), []       # to make them may let other threads run
        heap = self.awaited.setdefault(members, first)
        heappush(heap, entry)
        if len(heap) > 2 * len(self.held) + HEAP_SPARE:     # many have been given up
            heap[:] = [each for each in heap if each[1] in self.held]
            heapify(heap)
        if self.matrix is not None and self.matrix.reached(members) >= seqno:
            self.release(invocation.ticket)     # and not before: what reaches it meanwhile finds it
        else:
            self.runtime.sender.hurry_others()
        return 0

    cpdef up_stable(self, object matrix):
        """Others have applied more."""
        self.matrix = matrix
        for members, heap in list(self.awaited.items()):
            level = matrix.reached(members)
            while heap and heap[0][0] <= level:
                self.release(heappop(heap)[1])
            if not heap and self.awaited.get(members) is heap:
                del self.awaited[members]

    cdef int release(self, uint64_t ticket) except -1:
        """Its outcome is the caller's, if it was not given up."""
        held = self.held.pop(ticket, None)
        if held is not None:
            invocation, result, error = held
            if error is None:
                (<Invocation>invocation).succeed(result)
            else:
                (<Invocation>invocation).fail(error)
        return 0

    cdef bint give_up(self, Invocation invocation, str why) except -1:
        """Wait for the others no longer; False if it has not run here."""
        if invocation.ticket not in self.held:
            return False
        if why != "timeout":
            self.release(invocation.ticket)
        elif self.held.pop(invocation.ticket, None) is not None:
            invocation.fail(InvocationTimeout(
                f"{name_of(invocation.operation)} has run here, but when the time limit passed it "
                f"was not known that {counted(invocation.wanted, 'member')} had applied it: they may yet",
                "unknown"))
        return True

    def wanted_of(self, Invocation invocation):
        """By how many members an invocation is to be applied; 0 if it is for this one alone."""
        return invocation.wanted

    def is_held(self, Invocation invocation):
        """Whether an invocation has run here, and waits for others."""
        return invocation.wanted > 0 and invocation.ticket in self.held

    def enough(self, Invocation invocation):
        """Whether the view has as many members as it is to be applied by."""
        present = len(self.runtime.view.replicas)
        return self.runtime.degrees.patient or present >= invocation.wanted

    def too_few(self, Invocation invocation):
        """The view has become too small, and the program does not want to wait."""
        if self.held.pop(invocation.ticket, None) is not None:
            present = len(self.runtime.view.replicas)
            invocation.fail(NotEnoughMembers(
                f"{name_of(invocation.operation)} has run here, but "
                f"{counted(invocation.wanted, 'member')} cannot apply it: the view has {present} with replicas"))

    def holds_any(self):
        """Whether a call that has run here waits until others have applied it."""
        return bool(self.held)

    def viewed(self, view):
        """A view was installed."""
        for invocation, _, _ in list(self.held.values()):
            if not self.enough(invocation):
                self.too_few(invocation)

    def fail_all(self, error):
        """No member will know any more what the others have applied."""
        while self.held:
            _, (invocation, _, _) = self.held.popitem()
            (<Invocation>invocation).fail(error)
        self.awaited.clear()
        self.marks.clear()

    def still_waiting(self, Invocation invocation):
        """A call has waited for another 10 s: say so if the view is too small for it."""
        present = len(self.runtime.view.replicas)
        if present < invocation.wanted:
            name = name_of(invocation.operation)
            _log.warning("%s waits until it is applied by %s; the view has %d", name,
                         counted(invocation.wanted, "member"), present)
