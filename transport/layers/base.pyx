# cython: allow_none_for_extension_args=False
"""The uniform interface of layers (Horus, tables 1 and 2; H16 to H49), and the core they share.

Of the tables' calls those are here that some layer makes or answers.

A layer is a room: one protocol, in one file. It is written by overriding the calls that it
changes; each passes through by default. Downcalls go to `below`, upcalls (`up_...`) to `above`.

- What stands above the stack makes no downcall while an upcall runs; it queues. A layer may send
  messages of its own meanwhile. What a layer wants to do once the upcalls of an input have
  returned it does in `proceed`, which `core.again(self)` asks for.
- A layer reads no clock: `core.now` and `core.wall` are the times of this input. A layer that
  waits for a time sets `deadline`; `expire` is called when it has come.
- `needs` and `gives` name the properties that the layer needs from below and gives to those
  above; what is below stays true above unless the layer takes it away, and says so by `takes`.
- Both ends of a stack are closed (`End`), so a layer always has a layer above and one below it,
  and each call is answered, or raises an error that names the call and the stack.
"""

from orcalike.transport.application_state import State
from orcalike.transport.errors import ProtocolError, StackError

cimport cython
from cpython.ref cimport PyObject
from libc.stdlib cimport free, realloc

NO_DEADLINE = <int64_t>NEVER     # for layers in Python


@cython.final
cdef class Outbox:
    """What is to be sent: filled by COM, emptied by the driver after each input."""

    def __cinit__(self):
        self.connects = []
        self.closes = []

    def __dealloc__(self):
        self.clear()
        free(self.items)

    cdef int grow(self) except -1:
        cdef void* items = realloc(self.items, (2 * self.capacity + 16) * sizeof(Outgoing))
        if items is NULL:
            raise MemoryError
        self.items = <Outgoing*>items
        self.capacity = 2 * self.capacity + 16
        return 0

    def take(self):
        """All that is to be sent, as (link, frame) pairs; the outbox is empty then."""
        cdef Py_ssize_t i
        frames = [(self.items[i].link, (<Message>self.items[i].message).body)
                  for i in range(self.count)]
        self.clear()
        return frames

    def take_connects(self):
        """The addresses that a link is wanted to; each is asked for once."""
        connects, self.connects = self.connects, []
        return connects

    def take_closes(self):
        """The links that are not wanted any more."""
        closes, self.closes = self.closes, []
        return closes


cdef class Futex:
    """What a thread sleeps on until another process has news; a layer gives it, the driver has the thread sleep."""

    cdef int doze(self, int64_t ns) except -1:
        """Sleep for so long at most, and not at all if there was news since the layer has listened; other threads go on."""
        return 0

    cdef int rouse(self) noexcept:
        """Wake the thread of this process that sleeps, if there is one."""
        return 0


cdef class Core:
    """What the layers of one stack share: the time of this input, the outbox, the rng."""

    def __cinit__(self, *args, **kwargs):
        self.out = Outbox()
        self.patient = Interests()
        self.doze_until = NEVER
        self.beats = self.unleased = ()
        self.departed = ()

    def pass_failpoint(self, str step):
        """As `mark` does for compiled layers: tests strike at the step of that name."""
        self.mark(step)

    cpdef uint64_t random(self):
        """The next number of this stack's own splitmix64."""
        cdef uint64_t z
        self.seed += 0x9E3779B97F4A7C15u
        z = self.seed
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu
        return z ^ (z >> 31)

    cpdef again(self, Layer layer):
        """Have `layer.proceed()` called when the upcalls of this input have returned."""
        self.schedule(layer)

    cdef int again_last(self, Layer layer) except -1:
        """The same, once all others that ask for it now have gone on."""
        cdef Layer last = self.todo
        if last is None:
            self.again(layer)
        elif not layer.scheduled:
            while last.next_todo is not None:
                last = last.next_todo
            last.next_todo = layer
            layer.scheduled = True
        return 0

    cdef int stand_in(self, Layer former, Layer layer) except -1:
        """From here on `layer` has the deadline of this place in the stack, where `former` stood."""
        return 0

    cdef int forget_todo(self) except -1:
        """No layer of this stack goes on: it is given up."""
        while self.todo is not None:
            self.take_todo()
        return 0


cdef class Layer:
    """One protocol of a stack. Override what you change; the rest passes through."""

    name = "LAYER"
    needs = frozenset()
    gives = frozenset()
    takes = frozenset()

    def __cinit__(self, *args, **kwargs):
        self.deadline = NEVER
        self.above = self.below = NOWHERE

    def __init__(self, Core core not None):
        self.core = core

    def stand_on(self, Layer below not None):
        """Stand right above `below`, whatever stood there before."""
        self.below = below
        below.above = self

    cpdef start(self):
        """The stack stands: called from the bottom to the top, once."""

    # Downcalls.

    cpdef join(self, str address):
        """Become a member of the group that the endpoint at `address` is in ("" makes one)."""
        self.below.join(address)

    cpdef view(self, object view):
        """From here on `view` is the group: links and indexes follow it."""
        self.below.view(view)

    cpdef cast(self, Message message):
        """Multicast to the view."""
        self.below.cast(message)

    cpdef cast_packets(self):
        """Send what was marshalled in place here, past `cast`; where nothing can be, it does nothing."""
        self.below.cast_packets()

    cdef bint has_packets(self) noexcept:
        """Whether `cast_packets` may have something to send."""
        return True

    cpdef object fast(self):
        """The layer below that takes packets past this one in this view, and what the layers between put before each.

        (FastLayer, bytes), or None: this layer does something with casts, or cannot say.
        """
        return None

    cpdef send(self, Message message, tuple members):
        """Send to a subset of the view, given by their positions in it."""
        self.below.send(message, members)

    cpdef contact(self, Message message, str address):
        """Send to an endpoint that need not be in the view."""
        self.below.contact(message, address)

    cpdef ack(self, Message message):
        """The application has seen `message`, whatever it means by that."""
        self.below.ack(message)

    cpdef credit(self, bint given):
        """False: what is delivered from now on is not applied yet, so senders must wait."""
        self.below.credit(given)

    cpdef degree(self, int least):
        """From here on `least` is the smallest resilience degree above 0 of any cast (R in H1).

        With `degree.AVAILABLE`: what is cast goes also if the view has too few members for it.
        """
        self.below.degree(least)

    cpdef list unsent(self):
        """What was cast and has not left this member, as messages that may be changed in place."""
        return self.below.unsent()

    cpdef lower(self, Message packet):
        """One that `unsent` has shown has a smaller degree by now, its own: it may be able to leave."""
        self.below.lower(packet)

    cpdef incomplete(self, object members):
        """These incarnations have no complete state: their word does not count for resilience."""
        self.below.incomplete(members)

    cpdef held_up(self):
        """Something here waits for other members, as `up_is_held_up` says: their silence matters from now on."""
        self.below.held_up()

    cpdef leave(self):
        """Leave the group; EXIT comes up when it is done."""
        self.below.leave()

    cpdef flush(self, object failed):
        """Remove the `failed` members and flush."""
        self.below.flush(failed)

    cpdef flush_ok(self, bytes report):
        """Go along with the flush: `report` says what is held here."""
        self.below.flush_ok(report)

    cpdef holds(self):
        """All of the cut that was asked for is held here now."""
        self.below.holds()

    cpdef reset(self, int minimum):
        """Go on with at least `minimum` members where the group is blocked (A05)."""
        self.below.reset(minimum)

    cpdef object focus(self, str name):
        """The layer with that name, here or below; None if there is none."""
        if self.name == name:
            return self
        return self.below.focus(name)

    cpdef dict dump(self):
        """What the layer knows, for people."""
        return {}

    # Upcalls.

    cpdef up_join_failed(self, str why):
        """No address could be reached."""
        self.above.up_join_failed(why)

    cpdef up_join_denied(self, str why):
        """The group refused."""
        self.above.up_join_denied(why)

    cpdef up_flush(self, object failed):
        """A flush of the view has started: freeze, then `flush_ok` with what is held."""
        self.above.up_flush(failed)

    cpdef bytes up_flush_ok(self, dict reports, object view, bint ends):
        """All have frozen; their reports by position. Returns the cut: what comes before `view`, which is proposed."""
        return self.above.up_flush_ok(reports, view, ends)

    cpdef bint up_rests(self, object view, bytes cut):
        """Does others' silence matter in `view`, which follows on `cut`, only while this member is held up?"""
        return self.above.up_rests(view, cut)

    cpdef bytes up_held(self):
        """What is held here, as a flush reports it."""
        return self.above.up_held()

    cpdef list up_missing(self, bytes report, bint before):
        """The packets held here that the member that reported so lacks.

        `before`: only those that were numbered before this view.
        """
        return self.above.up_missing(report, before)

    cpdef up_check(self, object report, object cut):
        """Raise ProtocolError if a member cannot have reported so, or made that cut.

        Either may be None; so what a member says is refused when it comes, and not when it is used.
        """
        self.above.up_check(report, cut)

    cpdef up_supply(self, bytes piece):
        """A packet that was missing here, as `up_missing` gave it."""
        self.above.up_supply(piece)

    cpdef int up_has_state(self):
        """Is the state here WHOLE, so that others can get it from here? See `State`."""
        return self.above.up_has_state()

    cpdef bint up_cut(self, bytes cut):
        """Is all of `cut` held here? If not, `holds()` comes down when it is."""
        return self.above.up_cut(cut)

    cpdef up_view(self, object view, bytes cut):
        """`view` is installed, after all of `cut`."""
        self.above.up_view(view, cut)

    cpdef up_cast(self, Message message):
        """A multicast has arrived."""
        self.above.up_cast(message)

    cpdef up_send(self, Message message):
        """A message to a subset has arrived."""
        self.above.up_send(message)

    cpdef bint up_may_leave(self):
        """May this member's wish to leave go on? If not, `leave` comes down again when it may."""
        return self.above.up_may_leave()

    cpdef bint up_is_held_up(self):
        """Does something here wait for other members?"""
        return self.above.up_is_held_up()

    cpdef bint up_vouches(self, object incarnation):
        """Is it known that a member, whose process has ended, has not ended this view without this one's acceptance (H13)?"""
        return self.above.up_vouches(incarnation)

    cpdef up_alone(self, tuple left_out):
        """This member decides on the next view, and these incarnations have not accepted it, and may live."""
        self.above.up_alone(left_out)

    cpdef up_stable(self, object matrix):
        """The stability matrix has changed."""
        self.above.up_stable(matrix)

    cpdef up_problem(self, object member, str why):
        """Communication with `member` is in trouble: it is suspected."""
        self.above.up_problem(member, why)

    cpdef up_linked(self, object member):
        """A link to a peer stands."""
        self.above.up_linked(member)

    cpdef up_blocked(self, object missing, str rule):
        """No primary view can be formed now: by which rule, and which members are waited for."""
        self.above.up_blocked(missing, rule)

    cpdef up_reset_failed(self, str why):
        """A reset was asked for, and cannot be done."""
        self.above.up_reset_failed(why)

    cpdef up_system_error(self, str why):
        """Something is wrong that no protocol mends."""
        self.above.up_system_error(why)

    cpdef up_exit(self, str why):
        """This endpoint is out of the group."""
        self.above.up_exit(why)

    cpdef object up_give_state(self):
        """The state as it stands now, for joiners: an iterator of pieces, taken bit by bit.

        An empty piece says that the next one is not there yet. What it raises is why the state
        cannot be given. Where it has a `close`, that is called when no more is wanted.
        """
        return self.above.up_give_state()

    cpdef up_begin_state(self):
        """State is about to come, all of it; what came before that, from another donor, is void."""
        self.above.up_begin_state()

    cpdef up_take_state(self, bytes piece):
        """A piece of the state, in the order in which it was given.

        What it raises is why this member cannot take the state.
        """
        self.above.up_take_state(piece)

    cpdef up_end_state(self):
        """That was the last piece. Raises where the state is not whole."""
        self.above.up_end_state()

    # From the core.

    cpdef expire(self):
        """The deadline has come; set another, or NEVER."""
        self.deadline = NEVER

    cpdef proceed(self):
        """The upcalls of this input have returned: go on with what had to wait."""

    cpdef woken(self):
        """The `alarm` was written to, where this layer is the core's `ear`."""

    cpdef catch_up(self):
        """Deliver all that is in the order in this input, where this layer is the core's `ear`."""

    cdef int hand_up(self) except -1:
        """Hand up what was kept for the end of the upcalls: `core.handing` is this layer."""
        return 0

    cdef int hand_up_fast(self) except -1:
        """Hand up what has gone past the layers into the order, if it is the next one there."""
        return 0

    cdef int end_fast(self) except -1:
        """What has gone past the layers has run."""
        return 0


cdef class End(Layer):
    """Both ends of one stack: it answers what no layer answers.

    Below the bottom it takes no downcall: each raises StackError, which names the call, the stack
    and the layers to add. Above the top it lets go what only tells something, answers for an
    application that keeps nothing and has no state, and refuses what an application must take.
    """

    name = "END"

    cdef int unanswered(self, str call) except -1:
        """Raise, since no layer answers a downcall."""
        answers = ANSWERED_BY.get(call)
        remedy = f": put {answers} into it" if answers is not None else ""
        raise StackError(f"{call!r} is answered by no layer of {self.stack_name()}{remedy}")

    cdef int untaken(self, str call) except -1:
        """Raise, since nothing above the top took an upcall."""
        raise StackError(f"{call!r} is taken by nothing on top of {self.stack_name()}: what stands "
                         "there must override it")

    def stack_name(self):
        """The stack that this is the end of, for errors."""
        layers = getattr(self.core, "layers", None)
        return ":".join([layer.name for layer in layers]) if layers else "a stack: there is none"

    # Downcalls, at the bottom.

    cpdef join(self, str address):
        self.unanswered("join")

    cpdef view(self, object view):
        self.unanswered("view")

    cpdef cast(self, Message message):
        self.unanswered("cast")

    cpdef cast_packets(self):
        pass

    cpdef send(self, Message message, tuple members):
        self.unanswered("send")

    cpdef contact(self, Message message, str address):
        self.unanswered("contact")

    cpdef ack(self, Message message):
        self.unanswered("ack")

    cpdef credit(self, bint given):
        self.unanswered("credit")

    cpdef degree(self, int least):
        self.unanswered("degree")

    cpdef list unsent(self):
        self.unanswered("unsent")

    cpdef lower(self, Message packet):
        self.unanswered("lower")

    cpdef incomplete(self, object members):
        self.unanswered("incomplete")

    cpdef held_up(self):
        pass

    cpdef leave(self):
        self.unanswered("leave")

    cpdef flush(self, object failed):
        self.unanswered("flush")

    cpdef flush_ok(self, bytes report):
        self.unanswered("flush_ok")

    cpdef holds(self):
        self.unanswered("holds")

    cpdef reset(self, int minimum):
        self.unanswered("reset")

    cpdef object focus(self, str name):
        return None

    # Upcalls, at the top: what only tells something.

    cpdef up_join_failed(self, str why):
        pass

    cpdef up_join_denied(self, str why):
        pass

    cpdef up_view(self, object view, bytes cut):
        pass

    cpdef up_stable(self, object matrix):
        pass

    cpdef up_problem(self, object member, str why):
        pass

    cpdef up_linked(self, object member):
        pass

    cpdef up_blocked(self, object missing, str rule):
        pass

    cpdef up_reset_failed(self, str why):
        pass

    cpdef up_system_error(self, str why):
        pass

    cpdef up_exit(self, str why):
        pass

    cpdef up_check(self, object report, object cut):
        pass

    cpdef up_alone(self, tuple left_out):
        pass

    # What is asked: nothing is held above, and there is no state.

    cpdef up_flush(self, object failed):
        self.below.flush_ok(b"")

    cpdef bytes up_flush_ok(self, dict reports, object view, bint ends):
        return b""

    cpdef bint up_rests(self, object view, bytes cut):
        return False

    cpdef bytes up_held(self):
        return b""

    cpdef list up_missing(self, bytes report, bint before):
        return []

    cpdef int up_has_state(self):
        return State.WHOLE

    cpdef bint up_cut(self, bytes cut):
        return True

    cpdef bint up_may_leave(self):
        return True

    cpdef bint up_is_held_up(self):
        return False

    cpdef bint up_vouches(self, object incarnation):
        return False

    cpdef object up_give_state(self):
        return iter(())

    # What must be taken above. Members send the last two: that is their fault, not this stack's.

    cpdef up_cast(self, Message message):
        self.untaken("up_cast")

    cpdef up_begin_state(self):
        pass

    cpdef up_take_state(self, bytes piece):
        self.untaken("up_take_state")

    cpdef up_end_state(self):
        pass

    cpdef up_send(self, Message message):
        raise ProtocolError("a message to some members, which nothing here takes")

    cpdef up_supply(self, bytes piece):
        raise ProtocolError("a packet that nothing here lacks")


ANSWERED_BY = {
    "join": "MBRSHIP", "leave": "MBRSHIP", "flush": "MBRSHIP", "flush_ok": "MBRSHIP",
    "holds": "MBRSHIP", "reset": "MBRSHIP", "degree": "MBRSHIP", "credit": "TOTAL",
    "incomplete": "TOTAL", "unsent": "TOTAL", "lower": "TOTAL",
    "ack": "STABLE",
}
"""The layers that answer a downcall; COM, which is in each stack, answers the others."""


cdef Layer NOWHERE = End.__new__(End)
NOWHERE.above = NOWHERE.below = NOWHERE     # a layer that stands in no stack stands between these
