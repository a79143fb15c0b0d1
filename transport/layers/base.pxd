"""The uniform interface of layers (Horus, tables 1 and 2; H16 to H49), and the core they share."""

from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.interests cimport Interests
from orcalike.transport.wire.message cimport Message

cdef enum:
    NEVER = 0x7FFFFFFFFFFFFFFF      # a deadline that does not come


cdef struct Outgoing:
    int link
    void* message                   # owned


cdef class Layer


cdef class Outbox:
    """What is to be sent: filled by COM, emptied by the driver after each input."""
    cdef Outgoing* items
    cdef Py_ssize_t count, capacity
    cdef readonly list connects     # addresses that a link is wanted to
    cdef readonly list closes       # links that are not wanted any more
    cdef int grow(self) except -1

    cdef inline void clear(self) noexcept:
        cdef Py_ssize_t i
        for i in range(self.count):
            Py_DECREF(<object>self.items[i].message)
        self.count = 0

    cdef inline bint is_empty(self) noexcept:
        return self.count == 0 and not self.connects and not self.closes

    cdef inline bint is_one_message(self) noexcept:
        """Whether what is to be sent is one message, to one link or to many."""
        return self.count > 0 and self.items[0].message == self.items[self.count - 1].message

    cdef inline int put(self, int link, Message message) except -1:
        """Queue `message` for `link`; the same message may go to many links."""
        if self.count == self.capacity:
            self.grow()
        Py_INCREF(message)
        self.items[self.count].link = link
        self.items[self.count].message = <void*>message
        self.count += 1
        return 0


cdef class Futex:
    """A word of memory that one thread sleeps on until another process has news (futex(2))."""
    cdef int doze(self, int64_t ns) except -1
    cdef int rouse(self) noexcept


cdef class Core:
    """What the layers of one stack share: the time of this input, the outbox, the rng."""
    cdef readonly int64_t now       # ns, monotonic; set at each input
    cdef readonly int64_t wall      # ns since the epoch; set at each input
    cdef int64_t epoch              # ns between `now` and the wall clock
    cdef readonly Outbox out
    cdef Layer todo                 # the first layer that goes on once the upcalls have returned
    cdef Layer handing              # the layer that has something to hand up before; or None
    cdef uint64_t seed
    cdef readonly object me         # this endpoint, a Member
    cdef public tuple beats         # the heartbeat peers of this endpoint, which it watches
    cdef public uint64_t lease      # key of the view in which beats grant leases; 0 for none
    cdef public tuple unleased      # incarnations of heartbeat peers to which beats grant none
    cdef public uint64_t beats_version  # changes when `beats`, `lease` or `unleased` does
    cdef public bint rests          # others' silence matters only while this endpoint is held up (up_is_held_up)
    cdef public bint answers        # heartbeats of others are answered, though none may be sent
    cdef public object on_mark      # called with the name of each failpoint passed, or None
    cdef public object processes    # which processes of other members are at their end, by the kernel; or None
    cdef public object descriptors  # opens what other members of this host give, Descriptors; or None
    cdef public object alarm         # a pipe by which these wake this member, an Alarm; or None
    cdef uint64_t inputs            # how many there were
    cdef public Layer ear           # the layer that goes on when it was written to, and at each cast; or None
    cdef const void* order          # of an order in shared memory: what `ring_is_stale` looks at; or NULL
    cdef public int waiting         # how many threads and coroutines wait for any news: others' writes are looked for at once
    cdef readonly Interests patient     # what others wait for that need to be woken by little
    cdef bint lingers               # now this member is not woken by all news, but looks again in a while
    cdef Futex futex                # what others wake by an order in shared memory; or None
    cdef bint dozes                 # one of these threads sleeps on it, or is about to: the `alarm` need not be set
    cdef bint by_futex              # the last input has set that, and not the `alarm`
    cdef int64_t doze_until         # ns: when that thread is to look again; or NEVER
    cdef uint64_t due               # a bit for each member, by position, a call of which something of this member's has let go on; all bits: all members are to look, also those that want no news
    cdef public tuple departed      # members that left, whose packets may still come: at -2, -3, ...
    cpdef uint64_t random(self)
    cpdef again(self, Layer layer)

    cdef inline int schedule(self, Layer layer) except -1:
        """The same as `again`, for what each invocation goes through."""
        if not layer.scheduled:
            layer.scheduled = True
            layer.next_todo = self.todo
            self.todo = layer
        return 0

    cdef inline bint is_awaited(self) noexcept:
        """Whether anything waits here for news, or for some."""
        return self.waiting or self.patient.count

    cdef inline int hurry_all(self) except -1:
        """All members are to look into the order in shared memory, also those in which nothing waits: some have to act on what is there."""
        if self.order is not NULL:
            self.due = ~<uint64_t>0
            self.schedule(self.ear)
        return 0

    cdef int again_last(self, Layer layer) except -1
    cdef int stand_in(self, Layer former, Layer layer) except -1

    cdef inline bint is_quiet(self) noexcept:
        """Whether no layer has anything to do in this input."""
        return self.todo is None and self.handing is None

    cdef inline Layer take_todo(self):
        """The layer that goes on next, which waits no longer; there is one."""
        cdef Layer layer = self.todo
        self.todo = layer.next_todo
        layer.next_todo = None
        layer.scheduled = False
        return layer

    cdef int forget_todo(self) except -1

    cdef inline int mark(self, str step) except -1:
        """The protocol passes a failpoint (docs/internals/failpoints.md): the driver decides what that means."""
        if self.on_mark is not None:
            self.on_mark(step)
        return 0


cdef class Layer:
    cdef readonly Core core
    cdef readonly Layer above, below    # never None: `End` closes both ends of a stack
    cdef public int64_t deadline
    cdef bint scheduled             # is in core.todo
    cdef Layer next_todo            # the next one there

    # downcalls
    cpdef start(self)
    cpdef join(self, str address)
    cpdef view(self, object view)
    cpdef cast(self, Message message)
    cpdef cast_packets(self)
    cdef bint has_packets(self) noexcept
    cpdef object fast(self)
    cpdef send(self, Message message, tuple members)
    cpdef contact(self, Message message, str address)
    cpdef ack(self, Message message)
    cpdef credit(self, bint given)
    cpdef degree(self, int least)
    cpdef incomplete(self, object members)
    cpdef held_up(self)
    cpdef list unsent(self)
    cpdef lower(self, Message packet)
    cpdef leave(self)
    cpdef flush(self, object failed)
    cpdef flush_ok(self, bytes report)
    cpdef holds(self)
    cpdef reset(self, int minimum)
    cpdef object focus(self, str name)
    cpdef dict dump(self)
    # upcalls
    cpdef up_join_failed(self, str why)
    cpdef up_join_denied(self, str why)
    cpdef up_flush(self, object failed)
    cpdef bytes up_flush_ok(self, dict reports, object view, bint ends)
    cpdef bint up_rests(self, object view, bytes cut)
    cpdef bytes up_held(self)
    cpdef list up_missing(self, bytes report, bint before)
    cpdef up_check(self, object report, object cut)
    cpdef up_supply(self, bytes piece)
    cpdef bint up_cut(self, bytes cut)
    cpdef int up_has_state(self)
    cpdef up_view(self, object view, bytes cut)
    cpdef up_cast(self, Message message)
    cpdef up_send(self, Message message)
    cpdef bint up_may_leave(self)
    cpdef bint up_is_held_up(self)
    cpdef bint up_vouches(self, object incarnation)
    cpdef up_alone(self, tuple left_out)
    cpdef up_stable(self, object matrix)
    cpdef up_problem(self, object member, str why)
    cpdef up_linked(self, object member)
    cpdef up_blocked(self, object missing, str rule)
    cpdef up_reset_failed(self, str why)
    cpdef up_system_error(self, str why)
    cpdef up_exit(self, str why)
    cpdef object up_give_state(self)
    cpdef up_begin_state(self)
    cpdef up_take_state(self, bytes piece)
    cpdef up_end_state(self)
    # from the core
    cpdef expire(self)
    cpdef proceed(self)
    cpdef woken(self)
    cpdef catch_up(self)
    cdef int hand_up(self) except -1
    cdef int hand_up_fast(self) except -1
    cdef int end_fast(self) except -1


cdef class End(Layer):
    """Both ends of one stack: it answers what no layer answers."""
    cdef int unanswered(self, str call) except -1
    cdef int untaken(self, str call) except -1
