"""Tasks: what waits for objects' mutexes, and runs when it heads all their lock queues (D04, D05).

An invocation of a free object runs straight from the receive buffer, in `dispatch`. Everything else
is a task: it needs the mutex of one object, or of several (`@atomic`), and stands in the lock queue
of each that is not free. The thread that lets a mutex go runs what waited for it, first in first
out; a read that must come back soon has another thread do so (`Task.brief`). A task holds the
mutexes that it has while it waits for the rest, so the order of tasks is the same at each replica,
whatever was locked there.

A call whose guard is false goes to the object's waiting list. After each write these are tried,
oldest first, and from the oldest again after each that ran; then the reads that wait locally.

An atomic function that waits binds its objects: what it finds in one of them must not depend on how
far a replica is with the others. So whoever needs the mutex of one takes those of all that are
bound to it, and lets none go before all that waits has been tried.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint32_t, uint64_t

from functools import partial

from orcalike.runtime.errors import (
    NotSerializable,
    ObjectDropped,
    ReplicaDivergence,
    TooManyWaiting,
    Unreadable,
)
from orcalike.runtime.invariants import check_invariants
from orcalike.runtime.raising import own

from orcalike.runtime.audit cimport refusal
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.operation cimport POPUP, READ, UNDO, Atomic, Operation
from orcalike.runtime.receipts cimport Debt
from orcalike.runtime.replica cimport (
    BYTES_MAX,
    DROPPED,
    LOCKED,
    QUEUED,
    STRICT,
    TASKS_MAX,
    UNDECLARED,
    UNPACKED,
    WAITING,
    Replica,
    thread_slot,
)


cdef class Task:
    """Something that needs the mutexes of `replicas`; subclasses say what, in `run`."""

    cpdef int run(self) except -1:
        """Runs with all mutexes held, and says whether it keeps them."""
        return OVER

    def at(self, seqno, index, stamp):
        """Give it its place in the order; returns the task."""
        self.seqno, self.index, self.stamp = seqno, index, stamp
        return self

    def submit_for(self, replicas):
        """Take these mutexes, or queue for them, and run when all are held."""
        self.replicas = replicas
        submit(self)

    def run_held(self, replicas):
        """Run with these mutexes, which the caller holds and goes on with."""
        self.replicas = self.held = replicas
        self.run()

    def finished(self):
        """It is over, after `run` said that it keeps the mutexes."""
        finish(self)


cdef int submit(Task task) except -1:
    """Take the mutexes that are free, queue for the others, and run where none is missing."""
    cdef Replica replica
    for replica in task.replicas:
        if replica.flags & UNDECLARED:
            lost = (<object>replica.invoker).manager.lost.get(replica.number)
            if lost is not None:
                never(task, NotSerializable(lost))
                return 0
    if task.changes_nothing:
        task.held = task.replicas
    else:
        task.held = bound_to(task.replicas)
        for replica in task.held:
            if replica.flags & UNPACKED:    # a joiner gets what it was before this task
                (<object>replica.invoker).donor.pack(replica)
    for replica in task.held:
        if replica.flags & (LOCKED | QUEUED):
            replica.queue_up(task, task.size)
            task.missing += 1
        else:
            replica.flags |= LOCKED
    task.placed = True
    if task.missing:
        owe(task)
    elif task.run() == OVER:
        finish(task)
    return 0


def never(Task task, error):
    """A task of an object that this process cannot use, now or later."""
    if isinstance(task, Call):
        task.fail(error)
    else:
        task.held = []
        task.run()


cdef int owe(Task task) except -1:
    """It has its place in the order, and is not applied yet."""
    cdef Replica replica
    if task.debt is None and not task.changes_nothing:
        for replica in task.held:
            if replica.flags & UNDECLARED:
                return 0                # it belongs to the object's state, which waits as a whole
        task.debt = replica.invoker.owe()
    return 0


cdef int pay(Task task) except -1:
    """It is applied, and so is what it has let run."""
    cdef Debt debt = task.debt
    task.applied = True
    if debt is not None:
        task.debt = None
        debt.pay()
    return 0


cdef list bound_to(list replicas):
    """These, and those that are bound to them, directly or not."""
    cdef Replica replica, other
    for replica in replicas:
        if replica.bonds:
            break
    else:
        return replicas
    found = list(replicas)
    for replica in found:               # which grows meanwhile
        for other in replica.bonds:
            if other not in found:
                found.append(other)
    return found


def bound_together(replica):
    """An object, and those that are bound to it, by number."""
    return sorted(bound_to([replica]), key=number_of)


def number_of(Replica replica):
    """A replica's place in the object table."""
    return replica.number


cdef int finish(Task task) except -1:
    """The task is over: try what waits, let its mutexes go, and run what waited for them."""
    cdef Replica replica
    cdef int progress = wake(task)
    pay(task)
    if progress != KEPT:
        for replica in task.held:
            if task.brief and replica.queue:
                (<Call>task).runtime.start_thread(partial(go_on, replica))
            else:
                hand_on(replica)
    return 0


cdef int hand_on(Replica replica) except -1:
    """Pass a held mutex to the head of the lock queue, and on, until nobody waits."""
    cdef Task task = None
    cdef Replica other
    cdef int progress
    while replica.queue:
        task = replica.queue_head()
        replica.shrunk(task.size)
        task.missing -= 1
        if task.missing or task.run() == KEPT:
            return 0                    # it holds the mutex now
        progress = wake(task)
        pay(task)
        if progress == KEPT:
            return 0                    # what it woke holds the mutex
        for other in task.held:
            if other is not replica:
                hand_on(other)
        task = replica.task = None      # what goes with it may run anything, and queue more
    replica.flags &= ~<unsigned int>LOCKED
    return 0


def go_on(Replica replica):
    """Let the mutex go that `replica.hold` took."""
    replica.task = None
    replica.changed = False
    hand_on(replica)


cdef int wake(Task task) except -1:
    """After a write: try what waits for its guard, oldest first (KEPT: one keeps the mutexes)."""
    cdef Replica replica
    cdef Call call
    cdef int progress = OVER
    while progress == OVER:
        progress = try_waiting(task, waiting_at(task.held))
    if progress == KEPT:
        return KEPT
    for replica in task.held:
        if replica.changed:
            replica.changed = False
            for invocation, call in list(replica.readers.items()):
                if call.attempt() == OVER:
                    replica.readers.pop(invocation, None)
            if 4 * <Py_ssize_t>len(replica.waiting) < replica.waiting_peak:
                replica.waiting_peak = len(replica.waiting)
                replica.waiting = dict(replica.waiting)     # without the places of what has gone
            if not replica.waiting and not replica.readers:
                replica.flags &= ~<unsigned int>WAITING
        replica.task = None
    return OVER


cdef int try_waiting(Task task, list calls) except -1:
    """Try these, in their order, and from the first again after each that ran (WAITS: none can).

    OVER: an object has changed that had not, so others are to be tried too. What is over leaves the
    row at once, so a guard that holds for all that wait costs one look at each.
    """
    cdef Py_ssize_t count = len(calls)
    cdef Py_ssize_t first = 0, before = -1, at = 0
    cdef Py_ssize_t changed = changed_among(task.held)
    cdef Py_ssize_t* after          # by place in the row: the next place
    cdef int progress
    cdef Call call
    if count == 0:
        return WAITS
    after = <Py_ssize_t*>PyMem_Malloc(count * sizeof(Py_ssize_t))
    if after is NULL:
        raise MemoryError
    try:
        for at in range(count):
            after[at] = at + 1
        at = 0
        while at < count:
            call = calls[at]
            progress = WAITS
            if call.waits:
                call.held = task.held
                if task.debt is not None:
                    call.debt = task.debt.share()
                progress = call.attempt()
                if progress == KEPT:
                    return KEPT
                pay(call)
                if progress == OVER and changed_among(task.held) != changed:
                    return OVER
            if call.waits:
                before = at
            elif before < 0:
                first = after[at]
            else:
                after[before] = after[at]
            at = after[at]
            if progress == OVER:
                at, before = first, -1
        return WAITS
    finally:
        PyMem_Free(after)


cdef Py_ssize_t changed_among(list replicas) except -1:
    """How many of these objects have changed since what waits there was tried."""
    cdef Replica replica
    cdef Py_ssize_t found = 0
    for replica in replicas:
        found += replica.changed
    return found


cdef list waiting_at(list replicas):
    """What waits for its guard at those of the objects that have changed, oldest first."""
    cdef Replica replica
    cdef dict found = None
    cdef bint mixed = False
    for replica in replicas:
        if replica.changed and replica.waiting:
            mixed = found is not None
            found = {**found, **replica.waiting} if mixed else replica.waiting
    if found is None:
        return []
    return sorted(found, key=place_in_order) if mixed else list(found)


def place_in_order(Task task):
    """What orders tasks."""
    return task.seqno, task.index


cdef class Call(Task):
    """One call of an operation or an atomic function, at its place in the order.

    A read that waits for its guard is one too: it has no source, and no other replica knows it.
    """

    def __init__(self, runtime, function, uint32_t code, raw, tuple args=(), dict named=None):
        self.runtime = runtime
        self.function = function
        self.code = code
        self.raw = raw
        self.args = args
        self.named = named or {}
        if raw is not None:
            self.size = len(raw)

    def sized(self, Py_ssize_t size):
        """Say how long its arguments were as they came; returns the call."""
        self.size = size
        return self

    def of(self, sender, uint64_t ticket, Invocation invocation):
        """Say which member's it is, None for a hook; returns the call."""
        self.sender = sender
        self.source = 0 if sender is None else sender.incarnation
        self.ticket, self.invocation = ticket, invocation
        return self

    def for_reader(self, Invocation invocation, bint brief):
        """Say that it is a read of this process; returns the call.

        `brief`: what waits for the object meanwhile is run by another thread.
        """
        self.source, self.invocation, self.changes_nothing = None, invocation, True
        self.brief = brief
        return self

    cpdef int run(self) except -1:
        return OVER if self.attempt() != KEPT else KEPT

    cdef int attempt(self) except -1:
        """Test the guard and run: OVER, KEPT (in a pop-up thread), or WAITS."""
        cdef void** slot = thread_slot()
        cdef void* before = slot[0]
        cdef Replica replica
        cdef Replica dropped = None
        cdef int progress = OVER
        cdef object result = None
        cdef object failure = None
        for replica in self.replicas:
            if replica.flags & DROPPED:
                dropped = replica
            replica.owner = slot
            replica.task = self
            slot[0] = <void*>replica
        try:
            self.decode()
            if dropped is not None:
                raise ObjectDropped(f"{dropped.name!r} was ended with group.drop")
            if self.function.guard is not None:
                for replica in self.replicas:
                    replica.dice = None     # who joined meanwhile has tried the guard less often
                if not self.function.guard(*self.arguments(), **self.named):
                    progress = WAITS
            if progress != WAITS:
                if self.pops_up():
                    progress = KEPT
                else:
                    result = self.call()
        except BaseException as error:
            failure = error
        finally:
            slot[0] = before
            for replica in self.replicas:
                replica.owner = NULL
        if progress == WAITS:
            self.let_wait()
            return WAITS
        if self.waits or self.binds:
            self.end_waiting()
        if progress == KEPT:            # its thread may set the owner only now
            owe(self)
            self.runtime.pop_up(self)
            return KEPT
        self.over(result, failure)
        return OVER

    cdef int let_wait(self) except -1:
        """Enter the waiting lists of its objects, where it is not in them."""
        cdef Replica replica
        if self.source is None:
            replica = self.replicas[0]
            if self.invocation is None or self.invocation in replica.readers:
                pass
            elif len(replica.readers) >= TASKS_MAX:
                self.fail(too_many(replica))
            else:
                replica.readers[self.invocation] = self
                replica.flags |= WAITING
        elif self.departed:             # withdrawn, as what waited when its caller left
            self.end_waiting()
        elif not self.waits and not self.finds_room():
            self.end_waiting()
        elif not self.waits:
            self.waits = self.waited = True
            for replica in self.replicas:
                replica.waiting[self] = None
                replica.waiting_peak = max(replica.waiting_peak, <Py_ssize_t>len(replica.waiting))
                replica.waiting_bytes += self.size
                replica.flags |= WAITING
            self.runtime.waiting[self.source, self.ticket] = self
        if self.runtime.failure is not None:
            self.fail(self.runtime.failure)     # nobody is left who could wake it

    cdef bint finds_room(self) except -1:
        """Whether it may wait; else it is over, at each replica alike.

        What waits is the same everywhere at this place in the order. To make the caller wait for
        room instead would not do: it may be the one that lets the others run.
        """
        cdef Replica replica
        for replica in self.replicas:
            if replica.waiting and (len(replica.waiting) >= TASKS_MAX
                                    or replica.waiting_bytes + self.size > BYTES_MAX):
                error = too_many(replica)
                if self.invocation is not None:
                    self.fail(error)
                elif self.source == self.runtime.incarnation:
                    self.runtime.complain(self, error)
                return False
        return True

    def end_waiting(self):
        """Leave all waiting lists: it runs, or never will."""
        cdef Replica replica
        if self.waits:
            self.waits = False
            self.runtime.waiting.pop((self.source, self.ticket), None)
            for replica in self.replicas:
                if self in replica.waiting:
                    del replica.waiting[self]
                    replica.waiting_bytes -= self.size
        if self.binds:
            self.binds = False
            self.bind_together(-1)

    def bind(self, replicas):
        """Name its objects; a guarded atomic function binds them together. Returns the call."""
        self.replicas = replicas
        self.binds = len(replicas) > 1 and self.function.guard is not None
        if self.binds:
            self.bind_together(1)
        return self

    cdef int bind_together(self, int more) except -1:
        """One function more, or one less, binds each of its objects to the others."""
        cdef Replica replica, other
        for replica in self.replicas:
            for other in self.replicas:
                if other is not replica:
                    count = replica.bonds.get(other, 0) + more
                    if count:
                        replica.bonds[other] = count
                    else:
                        replica.bonds.pop(other, None)
        return 0

    def arguments(self):
        """All positional arguments: an operation's object comes first."""
        if isinstance(self.function, Operation):
            return ((<Replica>self.replicas[0]).object, *self.args)
        return self.args

    def decode(self):
        """Decode the arguments: this replica's own copy."""
        if self.function is None:
            self.function = (<Replica>self.replicas[0]).operations[self.code >> 1]
        if self.raw is not None:
            try:
                values = self.runtime.codec.decode(self.raw)
            except Unreadable as error:
                raise error.of(self.function.title, (<Replica>self.replicas[0]).name) from None
            self.named = values.pop() if self.code & 1 else {}
            self.args = tuple(values)
            self.raw = None

    cdef bint pops_up(self) except -1:
        """Whether the operation may take long, and runs in a thread of its own."""
        return isinstance(self.function, Operation) and (
            (<Operation>self.function).traits & (POPUP | READ) == POPUP)

    def popped_up(self):
        """What the pop-up thread does: run with the mutex that the dispatcher took, and let it go."""
        cdef void** slot = thread_slot()
        cdef Replica replica = self.replicas[0]
        result = failure = before = None
        if (<Operation>self.function).inline is not None:
            before = self.runtime.start_run()
        replica.owner = slot
        slot[0] = <void*>replica
        try:
            result = self.call()
        except BaseException as error:
            failure = error
        finally:
            slot[0] = NULL
            replica.owner = NULL
        if before is not None:
            self.runtime.stop_run(self, before)
        self.over(result, failure)
        finish(self)

    def call(self):
        """Call the function; with `undo`, put the objects back where it raises."""
        cdef Replica replica = self.replicas[0] if self.replicas else None
        if replica is not None and replica.flags & STRICT and self.source is None:
            before = self.runtime.digest_of(replica)
            result = self.function.function(*self.arguments(), **self.named)
            if before != self.runtime.digest_of(replica):
                raise ReplicaDivergence(f"{self.function.title} is declared @read and has changed "
                                        f"{replica.name!r}: declare it @write")
            return result
        if not self.function.undo:
            return self.run_once(True)
        saved = [(replica, self.runtime.saved(replica)) for replica in self.replicas]
        try:
            return self.run_once(False)
        except Exception:
            for replica, state in saved:
                self.runtime.put_back(replica, state)
            raise

    def run_once(self, bint stays):
        """Run the function, and look at the objects' invariants.

        `stays`: the objects stay as it leaves them where it raises.
        """
        shadow = self.runtime.shadow
        try:
            if shadow is None or self.source is None:
                result = self.function.function(*self.arguments(), **self.named)
            else:
                result = shadow.run(self)
        except Exception as error:
            if stays and not is_fault(error):
                look_at_invariants(self, error)
            raise
        look_at_invariants(self, None)
        return result

    def fail(self, error):
        """It will not run any more: tell the caller, where that is here."""
        if self.invocation is not None:
            self.runtime.lose(self.invocation, error)
            self.invocation = None

    cdef int over(self, object result, object error) except -1:
        """It has run: the objects may have changed, and the caller may know."""
        cdef Replica replica
        if error is not None:
            if is_fault(error) and self.source is not None:
                self.runtime.diverged(self.function, self.replicas[0] if self.replicas else None,
                                      error)
            error = own(error)
        elif self.source is not None and self.source == self.runtime.incarnation:
            error = self.look_at_state()
        if self.source is not None:
            for replica in self.replicas:
                replica.changed = True
        if self.runtime.history is not None:
            self.runtime.history.ran(self, result, error)
        if self.invocation is not None:
            if error is not None:
                self.runtime.annotate(self, error)
            if self.invocation.wanted:
                self.runtime.receipts.hold_back(
                    self.invocation, 0 if self.waited else self.seqno, result, error)
            elif error is None:
                self.invocation.succeed(result)
            else:
                self.invocation.fail(error)
            self.invocation = None
        elif error is not None and self.source == self.runtime.incarnation:
            self.runtime.complain(self, error)
        return 0


    cdef object look_at_state(self):
        """Why the state of one of its objects cannot travel now; None if all can."""
        cdef void** slot = thread_slot()
        cdef void* before = slot[0]
        cdef Replica replica
        cdef object refused = None
        if not isinstance(self.function, (Operation, Atomic)):
            return None
        for replica in self.replicas:
            if replica.object is None or refused is not None:
                continue
            replica.owner = slot        # its `snapshot` may call its own operations
            slot[0] = <void*>replica
            try:
                refused = refusal(self.runtime.codec, replica, self.function)
            finally:
                slot[0] = before
                replica.owner = NULL
        return refused


cdef int look_at_invariants(Call call, error) except -1:
    """After a write of a class that has invariants; `error` is what it has raised."""
    cdef Replica replica
    if call.source is not None and isinstance(call.function, (Operation, Atomic)):
        for replica in call.replicas:
            if replica.info is not None and replica.info.invariants:
                check_invariants(replica.object, replica.info, replica.name, call.function.title,
                                 error)
    return 0


cdef object too_many(Replica replica):
    """Why a call may not wait at an object."""
    return TooManyWaiting(f"{replica.name!r}: {len(replica.waiting) or len(replica.readers)} calls wait "
                          f"there for their guards already, with {replica.waiting_bytes} bytes of arguments; "
                          "this one did not run and never will")


cpdef bint is_fault(object error):
    """Whether an exception is a fault of this process, and no result that all replicas share (H10)."""
    return not isinstance(error, Exception) or isinstance(
        error, (MemoryError, RecursionError, ImportError, ReplicaDivergence, Unreadable))
