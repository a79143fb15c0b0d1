"""Calls: operations and atomic functions at their places in the order, as tasks (D04, D05).

A call decodes its arguments when it is its turn, tests its guard, and runs, on the thread that let
its object's mutex go or in a pop-up thread; its outcome goes to the caller, where that is here.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from functools import partial

from orcalike.runtime.awaiting import blocking_call
from orcalike.runtime.divergence import diverged
from orcalike.runtime.errors import ReplicaDivergence, TooManyWaiting, Unreadable
from orcalike.runtime.invariants import check_invariants
from orcalike.runtime.invocation import annotate, complain, withdrawal_error
from orcalike.runtime.raising import fresh, own
from orcalike.runtime.replica import dropped
from orcalike.runtime.undo import SavedStates
from orcalike.runtime.task import go_on

from orcalike.runtime.audit cimport number_of, passed_over, refusal
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.atomic cimport Atomic
from orcalike.runtime.operation cimport ARGS_MAX, POPUP, UNDO, Operation
from orcalike.runtime.replica cimport (
    BYTES_MAX,
    CLOSED,
    DROPPED,
    INSISTED,
    READ,
    RECORDED,
    SIGNALLED,
    STRICT,
    TASKS_MAX,
    WAITING,
    Replica,
    interest_of,
    thread_slot,
)
from orcalike.runtime.task cimport KEPT, OVER, WAITS, Task, finish, hand_on, note_pending

cdef extern from "Python.h":
    Py_ssize_t PyTuple_GET_SIZE(object) noexcept
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t) noexcept
    object PyObject_Vectorcall(object, PyObject* const*, size_t, PyObject*)
    unsigned long PyThread_get_thread_ident() noexcept


cdef class Call(Task):
    """One call of an operation or an atomic function, at its place in the order.

    A read that waits for its guard is one too: it has no source, and no other replica knows it.
    """

    def __init__(self, runtime, function, uint32_t code, raw, tuple args=(), dict named=None):
        self.is_about(runtime, function, code, raw, args, named or {})

    cdef int is_about(self, runtime, function, uint32_t code, bytes raw, tuple args, dict named) except -1:
        """Say what is called: `raw`, if there is any, is decoded in its turn."""
        self.runtime = runtime
        self.function = function
        self.operation = function if isinstance(function, Operation) else None
        self.code = code
        self.raw = raw
        self.args = args
        self.named = named
        if raw is not None:
            self.size = len(raw)
        return 0

    def sized(self, Py_ssize_t size):
        """Say how long its arguments were as they came; returns the call."""
        self.size = size
        return self

    cpdef Call of(self, sender, uint64_t ticket, Invocation invocation):
        """Say which member's it is, None for a hook; returns the call."""
        self.sender = sender
        self.source = 0 if sender is None else sender.incarnation
        self.ticket, self.invocation = ticket, invocation
        return self

    cdef Call for_reader(self, Invocation invocation, bint brief, bint on_loop):
        """Say that it is a read of this process; returns the call.

        `brief`: another thread runs the calls that come for the object meanwhile. `on_loop`: an event
        loop stands still until it is over, so it fails if its guard is false.
        """
        self.source, self.invocation = None, invocation
        self.is_read = self.changes_nothing = True
        self.brief, self.on_loop = brief, on_loop
        return self

    cpdef int run(self) except -1:
        return OVER if self.attempt() != KEPT else KEPT

    cdef int refuse(self, object error) except -1:
        self.fail(error)
        return 0

    cdef int hand_on(self, Replica replica) except -1:
        if self.brief and replica.queue:
            replica.invoker.watch_threads()
            self.runtime.start_thread(partial(go_on, replica))
            return 0
        return hand_on(replica)

    cdef int attempt(self) except -1:
        """Test the guard and run: OVER, KEPT (in a pop-up thread), or WAITS."""
        cdef void** slot = thread_slot()
        cdef void* before = slot[0]
        cdef Replica replica
        cdef Replica ended = None
        cdef int progress = OVER
        cdef object result = None
        cdef object failure = None
        cdef object guard
        for replica in self.replicas:
            if replica.flags & CLOSED:      # the group was left while it queued
                self.fail(self.runtime.sender.failure)
                return OVER
        self.thread = PyThread_get_thread_ident()
        self.attempts += 1
        for replica in self.replicas:
            if replica.flags & DROPPED:
                ended = replica
            replica.flags &= ~<unsigned int>(SIGNALLED | INSISTED)  # what a handler has waited for was another one
            replica.owner = slot
            replica.task = self
            slot[0] = <void*>replica
        try:
            self.decode()
            if ended is not None:
                raise dropped(ended)
            guard = self.function.guard if self.operation is None else self.operation.guard
            if guard is not None:
                for replica in self.replicas:
                    replica.rng = None     # a later joiner has tried the guard less often
                if not self.apply(guard):
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
        if self.waits:
            (<Replica>self.replicas[0]).invoker.let_go_on(self.source, len(self.replicas) > 1)
        if self.waits or self.binds:
            self.end_waiting()
        if progress == KEPT:            # its thread may set the owner only now
            note_pending(self)
            (<Replica>self.replicas[0]).invoker.watch_threads()
            self.runtime.start_thread(self.popped_up)
            return KEPT
        self.over(result, failure)
        return OVER

    cdef int let_wait(self) except -1:
        """Enter the waiting lists of its objects, where it is not in them."""
        cdef Replica replica
        if self.is_read:
            return self.let_reader_wait()
        if self.departed:               # withdrawn, as what waited when its caller left
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
            self.waits_for(0)           # the member whose write lets it run says so
        if self.runtime.sender.failure is not None:
            self.fail(self.runtime.sender.failure)     # nothing is left that could wake it
        return 0

    cdef int let_reader_wait(self) except -1:
        """Of a read: wait at the object, where nothing stands against it."""
        cdef Replica replica = self.replicas[0]
        cdef object error
        if self.on_loop:
            error = blocking_call(self.function)
        elif len(replica.readers) >= TASKS_MAX:
            error = too_many(replica)
        else:
            replica.readers[self.invocation] = self
            replica.flags |= WAITING
            self.waits_for(interest_of(replica))
            # What ends it meanwhile says so first, and then looks for it: so one of the two finds it.
            error = self.runtime.sender.failure
            if error is None and self.invocation.withdrawn is not None:
                error = withdrawal_error(self.invocation)
            if error is None or replica.readers.pop(self.invocation, None) is None:
                return 0
        self.fail(error)
        return 0

    cdef int waits_for(self, uint64_t interest) except -1:
        """Its guard is false: until then the thread that waits for it needs to be woken by news of these objects alone."""
        if self.invocation is not None and not self.invocation.wanted:
            self.invocation.interest, self.invocation.waits_for_little = interest, True
        return 0

    cdef bint finds_room(self) except -1:
        """Whether it may wait; else it is over, at each replica alike.

        The waiting calls are the same everywhere at this position in the order. To make the caller wait for
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
                    self.complain(error)
                return False
        return True

    def wait_at(self, Replica replica not None):
        """Its guard was false where the object's state comes from: it waits here, too."""
        replica.waiting[self] = None
        replica.waiting_bytes += self.size
        replica.flags |= WAITING
        self.waits = True

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

    cpdef Call bind(self, list replicas):
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

    cpdef tuple arguments(self):
        """All positional arguments: an operation's object comes first."""
        if self.operation is None:
            return self.args
        return ((<Replica>self.replicas[0]).object,) + self.args

    cdef object apply(self, function):
        """What its function, or its guard, returns for its arguments."""
        cdef PyObject* argv[ARGS_MAX + 1]
        cdef tuple args = self.args
        cdef Py_ssize_t i, count = PyTuple_GET_SIZE(args)
        if self.operation is None or count > ARGS_MAX or self.named:
            return function(*self.arguments(), **self.named)
        argv[0] = <PyObject*>(<Replica>self.replicas[0]).object
        for i in range(count):
            argv[i + 1] = PyTuple_GET_ITEM(args, i)
        return PyObject_Vectorcall(function, argv, count + 1, NULL)

    def run_held(self, replicas):
        """Run with these mutexes, which the caller holds and goes on with: an `__init__`, or a hook."""
        self.replicas = self.held = replicas
        self.runtime.budget.run_aside(self.runtime.sender.driver, self.run)

    cdef int decode(self) except -1:
        """Decode the arguments: this replica's own copy."""
        if self.function is None:
            self.function = self.operation = (<Replica>self.replicas[0]).operations[self.code >> 1]
        if self.raw is not None:
            try:
                values = self.runtime.sender.codec.decode(self.raw)
            except Unreadable as error:
                raise error.of(self.function.title, (<Replica>self.replicas[0]).name) from None
            self.named = values.pop() if self.code & 1 else {}
            self.args = tuple(values)
            self.raw = None
        return 0

    cdef bint pops_up(self) except -1:
        """Whether the operation may take long, and runs in a thread of its own."""
        return self.operation is not None and self.operation.traits & (POPUP | READ) == POPUP

    def popped_up(self):
        """What the pop-up thread does: run with the mutex that the dispatcher took, and let it go."""
        cdef void** slot = thread_slot()
        cdef Replica replica = self.replicas[0]
        result = failure = before = None
        if self.operation.inline is not None:
            before = self.runtime.budget.start_run(self.runtime.sender.driver)
        self.thread = PyThread_get_thread_ident()
        self.attempts += 1
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
            self.runtime.budget.stop_run(self.runtime.sender.driver, replica, self.function, before)
        self.over(result, failure)
        finish(self)

    cdef object call(self):
        """Call the function; with `undo`, put the objects back where it raises."""
        cdef Replica replica = self.replicas[0] if self.replicas else None
        if replica is not None and replica.flags & STRICT and self.is_read:
            before = self.runtime.digest_of(replica)
            result = self.apply(self.operation.function)
            if before != self.runtime.digest_of(replica):
                raise ReplicaDivergence(f"{self.function.title} is declared @read and has changed "
                                        f"{replica.name!r}: declare it @write")
            return result
        if not (self.function.undo if self.operation is None else self.operation.traits & UNDO):
            return self.run_once(True)
        saved = SavedStates([(<Replica>replica).object for replica in self.replicas])
        try:
            return self.run_once(False)
        except Exception:
            saved.put_back()
            raise

    cdef object run_once(self, bint stays):
        """Run the function, and look at the objects' invariants.

        `stays`: the objects stay as it leaves them where it raises.
        """
        try:
            if self.is_read or self.runtime.shadow is None:
                result = self.apply(self.function.function if self.operation is None
                                    else self.operation.function)
            else:
                result = self.runtime.shadow.run(self)
        except Exception as error:
            if stays and not is_fault(error):
                look_at_invariants(self, error)
            raise
        look_at_invariants(self, None)
        return result

    def complain(self, error):
        """It failed, it is of this member's own, and nothing holds the invocation."""
        annotate(error, self.function, self.replicas[0])
        complain(self.function, error)

    cpdef int fail(self, object error) except -1:
        if self.invocation is not None:
            self.runtime.sender.lose(self.invocation, error)
            self.invocation = None
        return 0

    cdef int over(self, object result, object error) except -1:
        """It has run: the objects may have changed, and the caller may know."""
        cdef Replica replica
        cdef bint fault = error is not None and not self.is_read and is_fault(error)
        if error is not None:
            if fault:
                diverged(self.runtime, self.function,
                         self.replicas[0] if self.replicas else None, error)
            error = own(error)
        elif not self.is_read and self.source == self.runtime.incarnation:
            error = self.look_at_state()
        if not self.is_read:
            for replica in self.replicas:
                replica.changed = True
        if not self.is_read or (<Replica>self.replicas[0]).flags & RECORDED:
            if self.runtime.sender.history is not None:
                self.runtime.sender.history.ran(self, result, error)
        if self.invocation is not None:
            if fault:
                error = fresh(self.runtime.sender.failure)  # as all calls have from here on
            elif error is not None:
                annotate(error, self.function, self.replicas[0])
            if self.invocation.wanted:
                self.runtime.sender.receipts.hold_back(
                    self.invocation, 0 if self.waited else self.seqno, result, error)
            elif error is None:
                self.invocation.succeed(result)
            else:
                self.invocation.fail(error)
            self.invocation = None
        elif error is not None and self.source == self.runtime.incarnation and not fault:
            self.complain(error)        # a fault is logged, and known to the caller by now
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
                if not passed_over(replica, number_of(self.function)):
                    refused = refusal(self.runtime.sender.codec, replica, self.function)
            finally:
                slot[0] = before
                replica.owner = NULL
        return refused


cdef Call new_call(runtime, function, uint32_t code, bytes raw, tuple args, dict named):
    """A call as `Call` makes it, for the path that is taken often."""
    cdef Call call = Call.__new__(Call)
    call.is_about(runtime, function, code, raw, args, named)
    return call


cdef int look_at_invariants(Call call, error) except -1:
    """After a write of a class that has invariants; `error` is what it has raised."""
    cdef Replica replica
    if not call.is_read and isinstance(call.function, (Operation, Atomic)):
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


def waiting_calls(Replica replica not None):
    """The calls whose guard was false at an object, oldest first."""
    return list(replica.waiting)


def waiting_reads(Replica replica not None):
    """This process's own reads whose guard was false at an object."""
    return list(replica.readers.values())


def remove_waiting(Replica replica not None, set calls):
    """These calls wait at an object no longer; each is to `end_waiting` yet."""
    kept = {call: None for call in replica.waiting if call not in calls}
    replica.waiting_bytes = sum([call.size for call in kept])
    replica.waiting = kept


cpdef bint is_fault(object error):
    """Whether an exception is a fault of this process, and no result that all replicas share (H10)."""
    return not isinstance(error, Exception) or isinstance(
        error, (MemoryError, RecursionError, ImportError, ReplicaDivergence, Unreadable))
