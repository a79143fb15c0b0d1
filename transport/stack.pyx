# cython: allow_none_for_extension_args=False
"""Stack: the layers of one endpoint, driven from outside (Horus, section 3: H15, H16, H18).

The protocol core is a deterministic machine: frames, calls and the time go in; frames to send,
upcalls and the next deadline come out. It does no I/O and never reads a clock.

Inputs: `link_up`, `link_anew`, `link_down`, `connect_failed`, `receive`, `died`, the downcalls, `expire`; each takes
`now`, an integer of nanoseconds that never goes back. Upcalls to `above` are direct calls before
the input returns, and make no downcall. After each input the driver empties `out` and reads
`deadline`. One input runs at a time: the driver sees to that.
"""

from orcalike.transport.errors import DamagedMemory, ProtocolError, StackError

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from orcalike.transport.layers.base cimport NEVER, Core, End, Layer
from orcalike.transport.wire.message cimport Message

cdef class Stack(Core):
    """`Stack(layers, config, me, seed)`: layers as `parse_stack` gives them, top first.

    `config` has `group` (its name), `options` (what all members must agree on) and `epoch` (ns
    between `now` and the wall clock); `me` is this endpoint, a `Member`.
    """

    def __init__(self, layers, config, me, uint64_t seed):
        cdef Layer layer, upper
        self.config = config
        self.epoch = config.epoch
        self.me = me
        self.seed = seed
        self.layers = tuple([spec.make(self, config, me) for spec in layers])
        for layer in self.layers:
            if layer.core is not self:
                raise StackError(f"{layer.name}.__init__ must call super().__init__(core)")
        self.end = End(self)
        for upper, layer in zip((self.end, *self.layers), (*self.layers, self.end)):
            upper.below = layer
            layer.above = upper
        self.depth = len(self.layers)
        self.chain = <void**>malloc(self.depth * sizeof(void*))
        if self.chain is NULL:
            raise MemoryError
        for i, layer in enumerate(self.layers):
            self.chain[<Py_ssize_t>i] = <void*>layer
        self.top = self.layers[0]
        self.bottom = self.layers[len(self.layers) - 1]
        self.members = self.top.focus("MBRSHIP")
        for layer in reversed(self.layers):
            layer.start()

    def __dealloc__(self):
        free(self.chain)

    @property
    def above(self):
        """What stands on top and gets the upcalls; the stack's `End` where nothing does."""
        return self.top.above

    @above.setter
    def above(self, Layer upper not None):
        self.top.above = upper
        upper.below = self.top
        upper.above = self.end
        self.end.below = upper

    cdef int stand_in(self, Layer former, Layer layer) except -1:
        if self.chain is not NULL:      # else the stack does not stand yet
            self.layers = tuple([layer if each is former else each for each in self.layers])
            for i, each in enumerate(self.layers):
                self.chain[<Py_ssize_t>i] = <void*>each
        return 0

    # Inputs.

    cdef int settle(self) except -1:
        """Let the layers go on that waited for the upcalls to return.

        What they deliver runs here, where nothing of this input is left on any layer's stack frame.
        """
        while self.handing is not None or self.todo is not None:
            if self.handing is not None:
                self.handing.hand_up()
            else:
                self.take_todo().proceed()
        return 0

    def link_up(self, int link, str address, int64_t now):
        """A link stands: to `address` if `out.connects` asked for it, else from a non-member ("")."""
        self.enter(now)
        self.bottom.link_up(link, address)
        self.settle()

    def link_anew(self, int link, int64_t now):
        """A link that stands is made anew by another road: what has come by it was not handed in, not even a greeting."""
        self.enter(now)
        self.bottom.link_anew(link)

    def link_down(self, int link, str why, int64_t now):
        """A link is gone."""
        self.enter(now)
        self.bottom.link_down(link, why)
        self.settle()

    def connect_failed(self, str address, str why, int64_t now):
        """The link that `out.connects` asked for cannot be made."""
        self.enter(now)
        self.bottom.connect_failed(address, why)
        self.settle()

    def heard(self, incarnation, int64_t when):
        """No input: called right before `expire`, for each of `beats`.

        `when` (ns) is the latest time at which the way to that member and back was known to work.
        """
        if self.members is not None:
            self.members.heard(incarnation, when)

    def excuse(self, incarnation, int64_t until):
        """No input: called right before `expire`. Silence before `until` (ns) says nothing of it."""
        if self.members is not None:
            self.members.detector.excuse(incarnation, until)

    def quiet(self, int64_t now):
        """Of whose processes the driver says whether they live (`lives`), right before `expire`."""
        return self.members.detector.quiet(now) if self.members is not None else set()

    def lives(self, incarnation):
        """No input: called right before `expire`. The kernel of this host says that its process lives.

        It is not stopped either, and no way to it is cut on purpose: it has got no processor.
        """
        if self.members is not None:
            self.members.detector.lives(incarnation)

    def died(self, incarnation, int64_t now, uint64_t lease=0, int64_t age=0):
        """The process of that member was seen to end (H13).

        Called only after all that it had sent here was handed in, and `link_down`. `lease` is the key
        of the last lease that it granted to this member, 0 for none; when its end was seen, `age` ns
        had passed since the beat of this member which that lease answers.
        """
        self.enter(now)
        if self.members is not None:
            self.members.died(incarnation, lease, age)
        self.settle()

    def leases_ended(self, granted, int64_t now):
        """The driver has read `lease` 0, and grants none any more.

        `granted` has (incarnation, when) for each of `beats`: when it got its last one, in ns.
        """
        self.enter(now)
        if self.members is not None:
            self.members.leases_ended(granted)
        self.settle()

    def receive(self, int link, frame, int64_t now):
        """One whole frame."""
        self.receive_frame(link, Message(frame), now)

    cdef int receive_frame(self, int link, Message frame, int64_t now) except -1:
        self.enter(now)
        try:
            self.bottom.receive(link, frame)
        except Exception as error:
            if not self.refuse(link, error):
                raise
        if self.handing is not None or self.todo is not None:
            self.settle()
        return 0

    cdef bint refuse(self, int link, object error) except -1:
        """Refuse a link, of whose frame this error came; False if it is this stack's own.

        Of what a member sends nothing may come but what is foreseen; a non-member's frame has changed
        nothing, and ends with its link, whatever came of it. That memory is damaged is no fault of the one that sends.
        """
        if isinstance(error, DamagedMemory):
            return False
        if isinstance(error, ProtocolError):
            why = str(error)
        elif self.bottom.is_non_member(link):
            why = f"{type(error).__name__} came of what it sent"
        else:
            return False
        self.bottom.refuse(link, why)
        return True

    def join(self, str address, int64_t now):
        """Join through the endpoint at `address`, or make a group ("")."""
        self.enter(now)
        self.top.join(address)
        self.settle()

    def make_or_join(self, tuple addresses, int64_t now):
        """Rank 0 of a job: make the group if all its ranks are in none, or join it.

        The ranks are asked at these addresses. A view comes up, or `up_join_failed`: then call it again.
        """
        self.enter(now)
        if self.members is None:
            raise StackError("no layer of this stack makes groups")
        self.members.make_or_join(addresses)
        self.settle()

    def cast(self, Message message not None, int64_t now):
        """Multicast to the view."""
        self.enter(now)
        self.top.cast(message)
        self.settle()

    def send(self, Message message not None, tuple members, int64_t now):
        """Send to a subset of the view, by position."""
        self.enter(now)
        self.top.send(message, members)
        self.settle()

    def leave(self, int64_t now):
        """Leave the group; EXIT comes up when it is done."""
        self.enter(now)
        self.top.leave()
        self.settle()

    def reset(self, int minimum, int64_t now):
        """Go on with at least `minimum` members, on the program's word (A05).

        A view comes up, or `up_reset_failed`.
        """
        self.enter(now)
        self.top.reset(minimum)
        self.settle()

    def held_up(self, int64_t now):
        """What stands above waits for other members."""
        self.enter(now)
        self.top.held_up()
        self.settle()

    def nudge(self, Layer layer, int64_t now):
        """Let one layer, or what stands above, go on (`proceed`)."""
        self.enter(now)
        self.again(layer)
        self.settle()

    def rung(self, int64_t now):
        """Another member of this host has written to the `alarm`."""
        if self.alarm.silence():
            self.woken(now)

    cpdef woken(self, int64_t now):
        """The same where the driver has looked at the `alarm`."""
        self.enter(now)
        if self.ear is not None:
            self.ear.woken()
        self.settle()

    cpdef catch_up(self, int64_t now):
        """Deliver what is in the order in shared memory, if this stack has one."""
        self.enter(now)
        if self.ear is not None:
            self.ear.catch_up()
        self.settle()

    def resume(self, int64_t now):
        """Go on with an input in the middle of which another thread ran what was handed up.

        That thread leaves the input by an exception, which what stands above raises for that.
        """
        self.enter(now)
        self.settle()

    def expire(self, int64_t now):
        """The deadline has come."""
        cdef Layer layer
        self.enter(now)
        for layer in self.layers:
            if layer.deadline <= now:
                layer.expire()
        if self.top.above.deadline <= now:
            self.top.above.expire()
        self.settle()

    cpdef flush_packets(self, int64_t now):
        """Cast what stands above has marshalled in place."""
        self.enter(now)
        self.top.cast_packets()
        if self.ear is not None:
            self.schedule(self.ear)
        if self.handing is not None or self.todo is not None:
            self.settle()

    cdef int hand_up_fast(self) except -1:
        """Hand up what has gone past the layers in this input."""
        self.top.hand_up_fast()
        self.settle()
        self.top.end_fast()
        return self.settle() if self.todo is not None else 0

    # Outputs.

    @property
    def deadline(self):
        """When `expire` is due, in ns; None if nothing waits for the time."""
        cdef int64_t least = self.next_deadline()
        return None if least == NEVER else least

    def focus(self, str name):
        """The layer with that name (H33), or None."""
        return self.top.focus(name)

    def awaited_donors(self):
        """The members of which one is to give this one its state; none if it waits for none."""
        xfer = self.focus("XFER")
        return () if xfer is None else xfer.awaited_donors()

    def dump(self):
        """What each layer knows (H34), by name."""
        return {layer.name: layer.dump() for layer in self.layers}
