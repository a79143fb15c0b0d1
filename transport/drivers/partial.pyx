"""Sending a part of what a stack puts out: what a failpoint asks of the driver (docs/internals/failpoints.md)."""

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.pump cimport Pump
from orcalike.transport.layers.base cimport Outbox
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.message cimport Message

cdef enum:
    TRIES = 1000            # times that a full socket is tried


def pending(Stack stack):
    """How many frames the stack has put out that are not with the driver yet."""
    return stack.out.count


def send_part(Pump pump, Stack stack, Py_ssize_t count):
    """Send the first `count` frames that the stack has put out, and what was queued before them.

    For within an input: a link that turns out to be broken is left for the pump to find. Returns a
    function that puts out the rest, in its order.
    """
    cdef Outbox out = stack.out
    cdef Py_ssize_t i
    frames = [(out.items[i].link, <Message>out.items[i].message) for i in range(out.count)]
    out.clear()
    for link, message in frames[:count]:
        entry = pump.epoll.slots[link]
        if isinstance(entry, Channel):
            send_one(pump, <Channel>entry, <Message>message)
    return lambda: put_out(out, frames[count:])


cdef send_one(Pump pump, Channel channel, Message message):
    cdef int i
    channel.put(message)
    if not channel.dirty:
        channel.dirty = True
        pump.dirty.put(channel)         # where something stays, the pump goes on with it
    for i in range(TRIES):
        if channel.connecting or channel.flush() != 0:
            return


cdef put_out(Outbox out, list frames):
    for link, message in frames:
        out.put(link, <Message>message)
