"""Taking what a listener has accepted: connections of non-members, which have greeted."""

import logging

from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.links import CUT_OFF
from orcalike.transport.errors import OrcalikeError
from orcalike.transport.layers.com import greeting_of

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.epoll_set cimport EPOLLIN
from orcalike.transport.drivers.links cimport LOOK, Links, check_room
from orcalike.transport.stack cimport Stack


cdef int look(Links links, bint thoroughly) except -1:
    """Look what the listener has, and take what is for this pump."""
    if links.listener is not None:
        links.listener.look(links.now, thoroughly)
        links.set_links_until()
    return take_handed_over(links)


cdef int take_handed_over(Links links) except -1:
    while links.handed_over:
        connection = links.handed_over.pop(0)
        if connection is None:
            links.set_links_until()
        else:
            channel, sock, greeting = connection
            adopt(links, channel, sock, greeting)
    return 0


cdef int adopt(Links links, Channel channel, object sock, bytes greeting) except -1:
    """A non-member has greeted: its connection is for one of the stacks here."""
    cdef Stack stack = None
    group, address, _ = greeting_of(greeting)
    try:
        links.own_process(sock)
        check_room(sock, LOOK)
        channel.link = links.epoll.add(sock.fileno(), channel, EPOLLIN)
    except (OSError, OrcalikeError) as error:
        links.complain(logging.WARNING, f"a connection was refused: {error}")
        sock.close()
        return 0
    links.sockets[sock.fileno()] = sock
    channel.claimed = True
    why = CUT_OFF if address in links.severed else links.lie_of(channel, greeting)
    if why is not None:
        links.refuse(channel, why)
        return 0
    stack = links.stack_for(group, address) if links.stack_for else links.stacks[0]
    if stack is None:
        links.refuse(channel, "it asks for a group that is not here")
        return 0
    channel.stack = stack
    sockets.outlast(sock, stack.config.slow)
    stack.link_up(channel.link, "", links.now)
    links.handle_channel(channel, 0)
    return 0


cdef int expire_links(Links links) except -1:
    """A greeting is due, or what was not logged is to be counted in a line."""
    if links.listener is not None:
        links.listener.expire(links.now)
    links.complaints.count(links.now)
    links.set_links_until()
    return take_handed_over(links)
