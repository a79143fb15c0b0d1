"""PACK: many small messages in one packet (in-coprocessor 3.3, F12; Horus 4.5, H70).

Promises: what is cast comes out as it went in, message by message, in order; a lone message
leaves at once. No timer delays anything: while a packet of this member is under way, what is cast
meanwhile gathers in the next one, which leaves when it is full or when the other has come back.

A message is marshalled in place: `reserve` gives room in the open packet, `commit` ends the
message there; `cast` does both for a message that exists. Neither calls anything below, so they
may run while an upcall runs; `cast_packets` is the downcall that sends.

A packet has the largest degree of its messages. A number and a majority do not mix: which is larger
depends on the view.

A packet is  number of its first message (8) | messages (4) | then for each: length (varint), bytes.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memmove

from orcalike.transport.layers.base cimport Core, Layer
from orcalike.transport.wire.bytes cimport (
    VARINT_MAX,
    get_varint,
    load32,
    load64,
    put_varint,
    store32,
    store64,
)
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring

cdef enum:
    HEADER = 12
    MAJORITY = 254          # as in `transport.degree`
    ALL = 255
    SPARE = 1024            # room behind a packet's size, so that the last message seldom moves it


cdef class Pack(Layer):
    """Many small messages in one packet.

    `PACK(size=N)` closes a packet at N bytes; `messages=N` and `bytes=N` bound what this member
    may have under way, not ordered yet.
    """

    name = "PACK"
    needs = frozenset({"TOTAL_ORDER", "ANY_SIZE"})  # this member's own casts come back
    gives = frozenset({"PACKED"})

    def __init__(self, Core core, config, me, size=16384, messages=65536, bytes=8388608):
        super().__init__(core)
        if size < 1 or messages < 1 or bytes < 1:
            raise ValueError("PACK needs a size, a number of messages and of bytes above 0")
        self.size = size
        self.window_messages = messages
        self.window_bytes = bytes
        self.closed = Ring()
        self.place = -1

    # Filling; these call nothing below.

    cdef unsigned char* reserve(self, Py_ssize_t size) except NULL:
        """Room for a message of up to `size` bytes in the open packet."""
        if self.packet is None:
            self.packet = Message.new(max(self.size + SPARE, size) + HEADER + VARINT_MAX)
            self.packet.room(HEADER)
            store64(self.packet.data(), self.ticket)
            self.packet.stop += HEADER
            self.packed = 0
        return self.packet.room(size + VARINT_MAX) + 1

    cdef int commit(self, unsigned char* stop) except -1:
        """The message that was marshalled from where `reserve` said up to `stop` is complete."""
        cdef unsigned char* length = self.packet.base + self.packet.stop
        cdef Py_ssize_t size = stop - length - 1
        cdef unsigned char first[VARINT_MAX]
        cdef Py_ssize_t extra
        if size < 0x80:
            length[0] = <unsigned char>size
        else:
            extra = put_varint(first, <uint32_t>size) - first - 1
            memmove(length + 1 + extra, length + 1, size)
            memcpy(length, first, extra + 1)
            stop += extra
        self.packet.stop = stop - self.packet.base
        self.packed += 1
        self.ticket += 1
        if self.packet.stop - self.packet.start >= self.size:
            self.close()
        elif self.under_way == 0:
            self.ready = True
        return 0

    cdef bint mixes(self, unsigned char degree) noexcept:
        """Whether a message of that degree has no place among those of the open packet."""
        return (self.packet is not None and self.packed > 0 and self.open_degree != 0
                and self.open_degree != ALL and degree != ALL
                and (self.open_degree == MAJORITY) != (degree == MAJORITY))

    cdef int raise_degree(self, unsigned char degree) except -1:
        """The message that is committed next has a degree, which is not 0."""
        if self.mixes(degree):
            self.close()
        if degree > self.open_degree:
            self.open_degree = degree
        return 0

    cdef bint is_full(self) noexcept:
        """Whether this member has as much under way as it may."""
        return (<Py_ssize_t>(self.ticket - self.returned) >= self.window_messages
                or self.under_way + self.gathered >= self.window_bytes)

    cdef bint has_ample_room(self) noexcept:
        """Whether it has half of that at the most: when to wake those who wait for room."""
        return (<Py_ssize_t>(self.ticket - self.returned) <= self.window_messages // 2
                and self.under_way + self.gathered <= self.window_bytes // 2)

    cdef int close(self) except -1:
        store32(self.packet.data() + 8, <uint32_t>self.packed)
        self.packet.count = <uint32_t>self.packed
        self.packet.degree = self.open_degree
        self.open_degree = 0
        self.gathered += self.packet.size()
        self.closed.put(self.packet)
        self.packet = None
        self.ready = True
        return 0

    # Downcalls.

    cpdef cast(self, Message message):
        cdef Py_ssize_t size = message.size()
        cdef unsigned char* p
        if message.degree:
            self.raise_degree(message.degree)
        p = self.reserve(size)
        memcpy(p, message.data(), size)
        self.commit(p + size)
        if self.ready:
            self.core.again(self)

    cpdef cast_packets(self):
        """Cast what is full, and what is not where nothing is under way."""
        cdef Message packet
        self.ready = False
        while True:
            if self.closed.count == 0:
                if self.under_way or self.packet is None:
                    return
                self.close()
                self.ready = False
            packet = <Message>self.closed.take()
            self.gathered -= packet.size()
            self.under_way += packet.size()
            self.below.cast(packet)

    cpdef proceed(self):
        self.cast_packets()

    # Upcalls.

    cpdef up_cast(self, Message packet):
        """Hand up the messages of a packet one by one: the same object, moved along."""
        cdef Py_ssize_t whole = packet.size()
        cdef unsigned char* header = packet.pop(HEADER)
        cdef const unsigned char* p
        cdef const unsigned char* end
        cdef uint32_t count, size, i
        if header is NULL:
            self.above.up_system_error(f"member {packet.source}: a packet of {whole} bytes")
            return
        packet.ticket = load64(header)
        packet.count = count = load32(header + 8)
        p = packet.data()
        end = packet.base + packet.stop
        for i in range(count):
            p = get_varint(p, end, &size)
            if p is NULL or size > <size_t>(end - p):
                self.above.up_system_error(f"member {packet.source}: a packet cut short")
                break
            packet.start = p - packet.base
            packet.stop = packet.start + size
            packet.index = i
            p += size
            self.above.up_cast(packet)
            packet.ticket += 1
        if packet.source == self.place:
            self.come_back(whole, count)

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
        self.place = view.place(self.core.me.incarnation)
        self.above.up_view(view, cut)

    cpdef dict dump(self):
        return {"messages": self.ticket - self.returned, "gathered": self.gathered,
                "under_way": self.under_way}
