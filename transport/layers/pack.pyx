# cython: allow_none_for_extension_args=False
"""PACK: many small messages in one packet, a large one in many (Horus 4.2 and 4.5: H61, H70).

Promises: what is cast comes out as it went in, message by message, in order; a lone message
leaves at once. No timer delays anything: while a packet of this member is under way, what is cast
meanwhile gathers in the next one, which leaves when it is full or when the other has come back.

A message is marshalled in place: `reserve` gives room in the open packet, `commit` ends the
message there; `cast` does both for a message that exists. Neither calls anything below, so they
may run while an upcall runs; `cast_packets` is the downcall that sends. Nor does either make or drop
an object that the collector of cycles knows: from a collection another thread may go on, which would
find the packet half filled.

A packet has the largest degree of its messages. A number and a majority do not mix: which is larger
depends on the view.

A packet is  number of its first message (8) | messages (4) | then for each: length (varint), bytes.

A packet of more than `fragment` bytes is cut above the order: its parts are packets of their own, of
which a few are under way at a time, so that what others send waits for a part only, at the sequencer
and behind it. Its messages are handed up with the last part, at that one's place in the order, as
every member does. Of the parts before the last nothing is known above; they are of degree 0, since
a member that holds a packet holds what came before. What has come of other members' packets belongs to the
state that a joiner gets. Of a sender that has left the rest may still come as long as the cut of the
view names it.

What comes is not handed up at once, but when the upcalls of the input have returned, in its order; so
what runs above runs where no layer is in the middle of anything.

A part is  the same number (8) | messages, 0 but in the last part, with the top bit set (4) | where it
belongs in the whole (4) | bytes.
"""

from orcalike.transport.errors import ProtocolError
from orcalike.transport.pack.pieces import PackPieces, PiecesToCome, unpack_sizes
from orcalike.transport.total.flush import Cut

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from orcalike.transport.degree cimport ALL, MAJORITY
from orcalike.transport.layers.base cimport Core
from orcalike.transport.drivers.look cimport ring_is_behind
from orcalike.transport.pack.degrees cimport DegreesOfMessages
from orcalike.transport.pack.fast cimport FastPackets
from orcalike.transport.pack.packets cimport HEADER, end_message, is_part, message_in
from orcalike.transport.wire.bytes cimport (
    VARINT_MAX,
    get_varint,
    load32,
    load64,
    store32,
    store64,
)
from orcalike.transport.wire.message cimport MESSAGE_MAX, NO_MESSAGES, Message, Py_REFCNT
from orcalike.transport.wire.ring cimport Ring

cdef enum:
    PART_HEADER = 16
    PARTS_AHEAD = 8         # parts that are under way at a time
    SIZE_MAX = 1048576
    BYTES_MAX = 67108864    # half of what TOTAL takes of one member
    FIRST = 512             # room of a packet that is opened
    GATHERED = 512          # messages that wait for one another, where the order is in memory
    SPARE = 1024            # room behind a packet's size, so that the last message seldom moves it


cdef uint32_t PART = 0x80000000u


@cython.final
cdef class Pack(FastPackets):
    """Many small messages in one packet, a large one in many.

    `PACK(size=N)` closes a packet at N bytes; `messages=N` and `bytes=N` bound what this member
    may have under way, not ordered yet; one that is larger than that goes alone. One of more than
    `fragment=N` bytes is cut. `fast=0`: nothing goes past the layers below.
    """

    name = "PACK"
    needs = frozenset({"TOTAL_ORDER", "ANY_SIZE"})  # this member's own casts come back
    gives = frozenset({"PACKED"})

    def __init__(self, Core core, config, me, size=16384, messages=65536, bytes=8388608,
                 fragment=65536, fast=1):
        super().__init__(core)
        if size < 1 or messages < 1 or bytes < 1 or not 0 < fragment <= MESSAGE_MAX:
            raise ValueError("PACK needs a size, a number of messages and of bytes above 0")
        if size > SIZE_MAX or messages > MESSAGES_MAX or bytes > BYTES_MAX:
            raise ValueError(f"PACK takes a size of {SIZE_MAX} bytes, {MESSAGES_MAX} messages and "
                             f"{BYTES_MAX} bytes at the most")
        self.fragment = fragment
        self.allows_fast = fast
        self.partial = {}
        self.size = size
        self.window_messages = messages
        self.window_bytes = bytes
        # What is small is looked at before it is marshalled: the open packet, and what closes it,
        # have their room from the start.
        self.full_bytes = max(bytes - size - SPARE, 1)
        self.closed = Ring()
        self.degrees = DegreesOfMessages()
        self.agenda = Ring()
        self.position = self.position_above = -1

    # Filling; these call nothing below.

    cdef unsigned char* reserve(self, Py_ssize_t size) except NULL:
        """Room for a message of up to `size` bytes in the open packet."""
        if self.packet is None:         # it may stay small: a call that is waited for goes alone
            self.packet, self.kept = self.kept, None
            if self.packet is None or not self.packet.fill_again(max(FIRST, size) + HEADER + VARINT_MAX):
                self.packet = Message.new(max(FIRST, size) + HEADER + VARINT_MAX)
            store64(self.packet.base + self.packet.stop, self.ticket)
            self.packet.stop += HEADER
            self.packed = 0
            self.open_spares = ~<uint64_t>0
        elif self.packet.capacity - self.packet.stop < size + VARINT_MAX:
            if self.packed == 0:
                self.packet.room(size + VARINT_MAX)
            else:                       # others gather behind it
                self.packet.room(max(size + VARINT_MAX, self.size + SPARE - self.packet.size()))
        return self.packet.base + self.packet.stop + 1

    cdef int commit(self, unsigned char* stop) except -1:
        """The message that was marshalled from where `reserve` said up to `stop` is complete."""
        stop = end_message(self.packet.base + self.packet.stop, stop)
        self.packet.stop = stop - self.packet.base
        self.note_degree(self.next_degree)
        self.next_degree = 0
        self.open_spares &= self.next_spares
        self.next_spares = 0
        self.packed += 1
        self.ticket += 1
        if self.packet.stop - self.packet.start >= self.size:
            self.close()
        elif self.under_way == 0:
            self.ready = self.core.order is NULL or self.leaves_now()
        return 0

    cdef bint leaves_now(self) noexcept:
        """Whether the open packet is to leave, where the order is in memory, and each packet comes back at once.

        It takes more messages while others have not applied the one before; the driver has it leave soon.
        """
        if self.packed == 1:
            self.gathers = ring_is_behind(self.core.order)
        return not self.gathers or self.packed >= GATHERED

    cdef bint has_other_kind(self, unsigned char degree) noexcept:
        """Whether the open packet has a degree, which has no place beside this one."""
        return (self.packet is not None and self.packed > 0
                and self.open_degree != ALL and degree != ALL
                and (self.open_degree == MAJORITY) != (degree == MAJORITY))

    cdef int raise_degree(self, unsigned char degree) except -1:
        """The message that is committed next has a degree, which is not 0."""
        if self.mixes(degree):
            self.close()
        if degree > self.open_degree:
            self.open_degree = degree
        self.next_degree = degree
        return 0

    cpdef bint has_room_for(self, Py_ssize_t size):
        """Whether a message of `size` bytes fits into what may be under way, or would be alone."""
        cdef Py_ssize_t taken = self.under_way + self.gathered
        if self.packet is not None and self.packed:
            taken += self.packet.size()
        if <Py_ssize_t>(self.ticket - self.returned) >= self.window_messages:
            return False
        return taken == 0 or taken + size + HEADER + VARINT_MAX <= self.window_bytes

    cdef int claim(self) except -1:
        """A message waits for much room: small ones are not to take it."""
        self.claims += 1
        self.full_bytes = 0
        return 0

    cdef int unclaim(self) except -1:
        """It waits no longer."""
        self.claims -= 1
        if self.claims == 0:
            self.full_bytes = max(self.window_bytes - self.size - SPARE, 1)
        return 0

    cdef bint has_ample_room(self) noexcept:
        """Whether it has half of that at the most: when to wake those that wait for room."""
        return (<Py_ssize_t>(self.ticket - self.returned) <= self.window_messages // 2
                and self.under_way + self.gathered <= self.window_bytes // 2)

    cdef Message take_open(self):
        """The open packet, which takes no more messages."""
        cdef Message packet = self.packet
        store32(packet.data() + 8, <uint32_t>self.packed)
        packet.count = <uint32_t>self.packed
        packet.degree = self.open_degree
        packet.spares = self.open_spares
        self.open_degree = 0
        self.packet = None
        return packet

    cdef int close(self) except -1:
        """The open packet is full: it leaves as soon as it may."""
        cdef Message packet = self.take_open()
        self.gathered += packet.size()
        self.closed.put(packet)
        self.ready = True
        return 0

    # Downcalls.

    cpdef cast(self, Message message):
        if self.cast_fast(message.data(), message.size(), message.degree, message.spares):
            self.fast_comes = True
            self.announce()
            self.core.schedule(self.way)
            return
        self.put(message.data(), message.size(), message.degree, message.spares)
        if self.ready or self.gathers:
            self.core.again(self)

    cdef int put(self, const unsigned char* message, Py_ssize_t size, unsigned char degree, uint64_t spares) except -1:
        """Put a message into the open packet; `spares`: as a message's."""
        cdef unsigned char* p
        if degree:
            self.raise_degree(degree)
        p = self.reserve(size)
        memcpy(p, message, size)
        self.next_spares = spares
        return self.commit(p + size)

    cdef bint has_packets(self) noexcept:
        return self.packet is not None or self.closed.count or self.large is not None

    cpdef cast_packets(self):
        """Cast what is full, and what is not where nothing is under way."""
        cdef Message packet
        self.ready = False
        while True:
            if self.large is not None:
                if not self.cast_parts():
                    return              # it goes on when a part has come back
            if self.closed.count:
                packet = <Message>self.closed.take()
                self.gathered -= packet.size()
            elif self.under_way or self.packet is None:
                return
            else:
                packet = self.take_open()
            self.under_way += packet.size()
            if packet.size() > self.fragment + HEADER:
                self.large, self.sent = packet, HEADER
            else:
                self.below.cast(packet)
                if Py_REFCNT(<PyObject*>packet) == 1:
                    self.kept = packet  # the next one: to make another takes longer

    cdef bint cast_parts(self) except -1:
        """Cast more of a large packet; whether that was all."""
        cdef Message whole = self.large
        cdef Message part
        cdef Py_ssize_t size
        while self.parts_under_way < PARTS_AHEAD:
            size = min(self.fragment, whole.size() - self.sent)
            part = Message.new(PART_HEADER + size)
            memcpy(part.room(PART_HEADER + size), whole.data(), 8)
            store32(part.data() + 8, PART)
            store32(part.data() + 12, <uint32_t>(self.sent - HEADER))
            memcpy(part.data() + PART_HEADER, whole.data() + self.sent, size)
            part.stop += PART_HEADER + size
            part.count = NO_MESSAGES
            self.sent += size
            self.parts_under_way += 1
            if self.sent == whole.size():
                store32(part.data() + 8, PART | whole.count)
                part.count = whole.count
                part.degree = whole.degree
                self.large = None
                self.below.cast(part)
                return True
            self.below.cast(part)
        return False

    cpdef proceed(self):
        self.cast_packets()

    cpdef bint take_back(self, uint64_t ticket, bytes instead):
        """Have a message of this member never leave: these bytes stand in its place, without a degree.

        False if it has left, or is so large that parts of it may have.
        """
        cdef list packets = self.below.unsent()
        cdef Py_ssize_t below = len(packets)
        cdef Py_ssize_t i
        cdef Message packet
        cdef Message found
        packets += self.closed.all()
        if self.packet is not None:
            store32(self.packet.data() + 8, <uint32_t>self.packed)
            packets.append(self.packet)
        for i in range(len(packets)):
            packet = packets[i]
            found = message_in(packet, ticket)
            if found is not None:
                found.overwrite(instead)
                self.degrees.clear(ticket)
                packet.degree = self.degrees.largest(load64(packet.data()), load32(packet.data() + 8))
                if packet is self.packet:
                    self.open_degree = packet.degree
                elif i < below:
                    self.below.lower(packet)
                return True
        return False

    # Upcalls.

    cpdef up_cast(self, Message packet):
        """Put a packet on the agenda; it is handed up when the upcalls of this input have returned."""
        cdef Py_ssize_t whole = packet.size()
        cdef unsigned char* header = packet.pop(HEADER)
        cdef uint32_t count
        if header is NULL:
            self.complain(packet, f"a packet of {whole} bytes")
            return
        packet.ticket = load64(header)
        packet.count = count = load32(header + 8)
        if is_part(count):
            self.up_part(packet, count & ~PART)
            return
        if packet.source < 0:
            self.put_off((self, packet, self.core.departed))
        elif self.hands_up:
            self.put_off(packet)
        else:
            self.open(packet)
            self.announce()

    cdef int put_off(self, object item) except -1:
        """Put it at the end of the agenda."""
        self.agenda.put(item)
        if not self.hands_up:
            self.announce()
        return 0

    cdef int announce(self) except -1:
        """There is something to hand up, where there was nothing."""
        self.hands_up = True
        self.next_handing, self.core.handing = self.core.handing, self
        return 0

    cdef int open(self, Message packet) except -1:
        """Begin to hand up a packet."""
        self.opened = packet
        self.unpacked = 0
        self.number = packet.ticket
        self.begin = self.at = packet.start
        self.end = packet.stop
        return 0

    cdef int hand_up(self) except -1:
        """Hand up what is on the agenda, in its order."""
        if self.fast_comes:
            self.fast_comes = False
            self.hand_up_fast()
        while True:
            if self.opened is not None:
                self.hand_up_messages()
            if not self.agenda.count:
                break
            self.hand_up_next(self.agenda.take())
        if self.core.handing is self:
            self.core.handing, self.next_handing = self.next_handing, None
            self.hands_up = False
        return 0

    cdef int hand_up_messages(self) except -1:
        """Hand up the messages of the open packet one by one: the same object, moved along.

        How far it has come is noted before each message: should that one's operation not end, another
        thread goes on from here.
        """
        cdef Message packet = self.opened
        cdef const unsigned char* p
        cdef uint32_t size
        while self.unpacked < packet.count:
            p = get_varint(packet.base + self.at, packet.base + self.end, &size)
            if p is NULL or size > <size_t>(packet.base + self.end - p):
                self.unpacked = packet.count
                self.accuse(packet)
                break
            packet.start = p - packet.base
            packet.stop = self.at = packet.start + size
            packet.index = self.unpacked
            packet.ticket = self.number + self.unpacked
            self.unpacked += 1
            self.above.up_cast(packet)
        return self.close_opened()

    cdef int hand_up_next(self, object item) except -1:
        """Hand up what is no packet, and open what is one."""
        if isinstance(item, Message):
            self.open(<Message>item)
        elif item[0] is self:           # of a sender that has left
            self.departed, self.core.departed = self.core.departed, item[2]
            self.open(<Message>item[1])
        else:
            item[0](*item[1:])
        return 0

    cdef int close_opened(self) except -1:
        """The packet that was open has been handed up."""
        cdef Message packet = self.opened
        self.opened = None
        if self.departed is not None:
            self.core.departed, self.departed = self.departed, None
        if packet.source == self.position_above:
            self.come_back(self.end - self.begin + HEADER, packet.count)
        return 0

    cdef complain(self, Message packet, str why):
        """A packet in the order that its sender cannot have made so: go on without that member."""
        self.above.up_system_error(f"member {packet.source}: {why}")
        if packet.source >= 0:
            self.below.flush((packet.source,))

    cdef int accuse(self, Message packet) except -1:
        """The same where the view may be another one by now."""
        cdef str why = f"member {packet.source}: a packet cut short"
        self.above.up_system_error(why)
        if packet.source >= 0 and self.members_above[packet.source] in self.members:
            self.below.flush((self.members.index(self.members_above[packet.source]),))
        return 0

    cdef int up_part(self, Message part, uint32_t count) except -1:
        """A part of a packet: hand the messages up with the last one."""
        cdef unsigned char* where = part.pop(PART_HEADER - HEADER)
        cdef object sender = self.sender_of(part.source)
        cdef bint mine = part.source == self.position
        cdef Message whole = self.partial.get(sender)
        cdef Py_ssize_t size = part.size()
        if where is NULL or load32(where) != (0 if whole is None else whole.size() - HEADER):
            self.partial.pop(sender, None)
            self.complain(part, "a part of a packet that did not come")
            return 0
        if whole is None:
            whole = self.partial[sender] = Message.new(HEADER + size)
            memset(whole.room(HEADER), 0, HEADER)
            whole.stop += HEADER
        if whole.size() + size > MESSAGE_MAX + SPARE:
            del self.partial[sender]
            self.complain(part, "a packet of more than 16 MiB")
            return 0
        memcpy(whole.room(size), part.data(), size)
        whole.stop += size
        if mine:
            self.parts_under_way -= 1
            self.ready = self.ready or self.large is not None
        if count == 0:
            if mine:
                self.come_back(size, 0)
            return 0
        del self.partial[sender]
        store64(whole.data(), part.ticket)
        store32(whole.data() + 8, count)
        whole.source, whole.link, whole.seqno = part.source, part.link, part.seqno
        whole.stamp, whole.degree = part.stamp, part.degree
        if mine:
            self.under_way += whole.size() - size - HEADER  # `come_back` had the other parts
        self.up_cast(whole)
        return 0

    cdef object sender_of(self, int position):
        """The incarnation of a packet's sender, which may have left."""
        if position >= 0:
            return self.members[position].incarnation
        return self.core.departed[-2 - position].incarnation

    cdef int come_back(self, Py_ssize_t size, uint32_t count) except -1:
        """A packet of this member's own was ordered and handed up: there is room again."""
        self.under_way -= size
        self.returned += count
        if self.under_way == 0 and self.packet is not None:
            self.ready = True
        if self.ready:
            self.core.again(self)
        return 0

    cpdef up_view(self, object view, bytes cut):
        self.has_asked, self.way = False, None
        self.position = view.position(self.core.me.incarnation)
        self.members = view.members
        if self.partial:
            stay = {member.incarnation for member in view.members}
            if cut:
                stay |= {member.incarnation for member in Cut.unpack(cut).senders}
            self.partial = {sender: part for sender, part in self.partial.items() if sender in stay}
        if self.hands_up:
            self.put_off((self.hand_up_view, view, cut, self.position))
        else:
            self.hand_up_view(view, cut, self.position)

    def hand_up_view(self, view, bytes cut, int position):
        """What comes from here on was sent in this view."""
        self.position_above, self.members_above = position, view.members
        self.above.up_view(view, cut)

    # What happens to the group keeps its place among the views, and so behind what is on the agenda.

    cpdef up_problem(self, object member, str why):
        if self.hands_up:
            self.put_off(((<object>self.above).up_problem, member, why))
        else:
            self.above.up_problem(member, why)

    cpdef up_blocked(self, object missing, str rule):
        if self.hands_up:
            self.put_off(((<object>self.above).up_blocked, missing, rule))
        else:
            self.above.up_blocked(missing, rule)

    cpdef up_reset_failed(self, str why):
        if self.hands_up:
            self.put_off(((<object>self.above).up_reset_failed, why))
        else:
            self.above.up_reset_failed(why)

    cpdef up_exit(self, str why):
        if self.hands_up:
            self.put_off(((<object>self.above).up_exit, why))
        else:
            self.above.up_exit(why)

    # State: what has come of large packets.

    cpdef object up_give_state(self):
        parts = [(sender, (<Message>part).body[HEADER:]) for sender, part in self.partial.items()]
        if not self.hands_up:
            return PackPieces(parts, self.above.up_give_state())
        others = PiecesToCome()
        self.put_off((self.hand_up_giving, others))
        return PackPieces(parts, others)

    def hand_up_giving(self, others):
        """State is to be given as it is here, after what was on the agenda before."""
        others.begin((<object>self.above).up_give_state)
        self.core.again(self.focus("XFER"))

    cpdef up_begin_state(self):
        self.partial = {}
        self.coming = None
        self.above.up_begin_state()

    cpdef up_take_state(self, bytes piece):
        """First a list of (sender, size), then their bytes, then what is not this layer's."""
        cdef Message part
        if self.coming is None:
            self.coming = unpack_sizes(piece, MESSAGE_MAX)
            return
        if not self.coming:
            self.above.up_take_state(piece)
            return
        sender, size = self.coming[0]
        part = self.partial.get(sender)
        if part is None:
            part = self.partial[sender] = Message.new(HEADER + len(piece))
            memset(part.room(HEADER), 0, HEADER)
            part.stop += HEADER
        memcpy(part.room(len(piece)), <const unsigned char*>piece, len(piece))
        part.stop += len(piece)
        if part.size() - HEADER > size:
            raise ProtocolError("more of a large packet than there is")
        if part.size() - HEADER == size:
            del self.coming[0]

    cpdef up_end_state(self):
        if self.coming:
            raise ProtocolError("less of a large packet than there is")
        self.above.up_end_state()

    cpdef dict dump(self):
        return {"messages": self.ticket - self.returned, "gathered": self.gathered,
                "under_way": self.under_way, "partial": len(self.partial),
                "past the layers": self.fast_casts}
