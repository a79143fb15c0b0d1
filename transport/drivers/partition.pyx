"""Partitions: a process that is cut off from others, for tests and `orcalike chaos`."""

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.epoll_set cimport EPOLLIN
from orcalike.transport.drivers.links cimport Links

cdef extern from "<sys/epoll.h>" nogil:
    enum:
        EPOLL_CTL_ADD
        EPOLL_CTL_DEL
        EPOLLOUT


def sever(Links links not None, addresses):
    """Be cut off from the endpoints at these addresses, and from no others, until the next call.

    No beats go there, and none count. Links stay, as streams do in a partition that is not
    too long: what is under way comes when it is over. None are made meanwhile.
    """
    cdef Channel channel
    links.severed = frozenset(addresses)
    for entry in list(links.epoll.slots):
        if isinstance(entry, Channel):
            channel = <Channel>entry
            peer = links.peer_of(channel)
            address = peer.address if peer is not None else channel.address
            if channel.severed != (address in links.severed):
                set_severed(links, channel, not channel.severed)
    links.report.clear()
    links.beat()


cdef int set_severed(Links links, Channel channel, bint severed) except -1:
    channel.severed = severed
    channel.waits_for_room = True       # so nothing is written
    try:
        links.epoll.watch(channel.fd, channel.link, EPOLLIN | EPOLLOUT, EPOLL_CTL_DEL if severed else EPOLL_CTL_ADD)
    except OSError as error:
        links.refuse(channel, f"it cannot be watched: {error.strerror}")
    return 0
