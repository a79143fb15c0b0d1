"""Deaths of members: their stacks are notified of one after all that the member had sent (H13).

The process of a peer on this host was seen to end, or a launcher says so of its own processes: then it is certain.
That a launcher says so of a process on another host is a reason to suspect it.
"""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.accepting cimport look
from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.driver cimport monotonic
from orcalike.transport.drivers.epoll_set cimport EPOLLIN
from orcalike.transport.drivers.links cimport Links
from orcalike.transport.stack cimport Stack


cdef int ended(Links links, object process) except -1:
    """A process has ended, unless the event was for what the slot held before."""
    if process.has_ended():
        links.processes.forget(process)
        try:
            died(links, process.stack, process.incarnation, True)
        finally:
            links.processes.ended(process.incarnation)
    return 0


cdef int died(Links links, Stack stack, object incarnation, bint is_certain) except -1:
    """A member is dead, or gone by a launcher's word: its stack is to know, whichever thread says so."""
    links.deaths.append((stack, incarnation, is_certain))
    return tell_deaths(links)


cdef int tell_deaths(Links links) except -1:
    """Tell of all that have died, or are gone."""
    while links.deaths:
        stack, incarnation, is_certain = links.deaths[0]
        tell_death(links, stack, incarnation, is_certain)
        del links.deaths[0]
    return 0


cdef int tell_death(Links links, Stack stack, object incarnation, bint is_certain) except -1:
    """Hand in all that has come from a member, then say that it is dead if that is certain."""
    cdef int64_t seen = monotonic()
    take_rest(links, stack, incarnation, "its process has ended" if is_certain
              else "a launcher says that its process is gone")
    if is_certain:
        lease, leased = links.heartbeat.leased(stack.me.incarnation, incarnation)
        stack.died(incarnation, links.now, lease, seen - leased)
    return 0


cdef int take_rest(Links links, Stack stack, object incarnation, str why) except -1:
    """Hand in what has come from a member, if by a connection that has not greeted; close its links."""
    cdef Channel channel
    look(links, True)
    for entry in list(links.epoll.slots):
        if not isinstance(entry, Channel) or (<Channel>entry).connecting:
            continue
        channel = <Channel>entry
        while may_be(links, channel, stack, incarnation):
            if not links.handle_channel(channel, EPOLLIN):
                break
        peer = links.peer_of(channel)
        if peer is not None and channel.stack is stack and peer.incarnation == incarnation:
            links.close(channel, why)
    return 0


cdef bint may_be(Links links, Channel channel, Stack stack, object incarnation) except -1:
    """Whether a channel is open, and of that member of that stack as far as is known."""
    if not links.is_open(channel) or channel.stack is not stack:
        return False
    peer = links.peer_of(channel)
    return peer is None or peer.incarnation == incarnation
