# cython: allow_none_for_extension_args=False
"""COM: links to peers, as reliable FIFO channels (Horus 4.1: H56, H59).

Promises: what is sent to a peer arrives whole, once, and in order, or the link goes down. A cast
goes to all others of the view: the sender has the message already. Any size to 16 MiB.

COM runs no protocol but a greeting: the first frame of each link says which group, which
endpoint and which incarnation speaks. The driver makes the links: `out.connects` names the
addresses that one is wanted to. What is sent to a peer whose link is not up yet waits for it,
within a bound: beyond that it is lost, as if a link had broken. Where the peer has not greeted yet
no other link is made, and the one that there is is tried. Each of two peers may make one at the same
moment, and both stay: to close one without losing what is under way would hold up all that is sent
there until the other end has answered. The first that greets carries all that is sent there, and is
tried when the second greets: the peer may have lost it. A link to a member of the view that went down
is made again, with growing pauses; what was under way on it is lost, and the layers above are
notified. A link to an endpoint that MBRSHIP seeks is made again, too.

A frame is  length of the rest (4) | magic | version | kind | 0 | body.  Nothing of it is believed
before length, magic, version and kind are checked, and nothing but a greeting from a non-member.
"""

import msgpack

from orcalike.transport.errors import OTHER_VERSION, ProtocolError
from orcalike.transport.view import is_address
from orcalike.transport.wire.control import unpack

cimport cython
from libc.stdint cimport int64_t

from orcalike.transport.layers.base cimport NEVER, Core, Layer
from orcalike.transport.wire.bytes cimport load32, store32
from orcalike.transport.wire.message cimport Message

cdef enum:
    HELLO = 1       # the greeting
    CAST = 2        # to the view
    SEND = 3        # to some of the view
    CONTACT = 4     # to an endpoint that need not be in the view
    QUEUED_MAX = 67108864       # bytes that wait for one link
    LINKS_MAX = 4096
    PAUSE_LEAST = 10000000      # ns
    PAUSE_OLDER = 100000000     # before the older of two members makes their link
    PAUSE_MOST = 1000000000     # or 2 D, where that is less


WIRE_VERSION = VERSION


cdef class Peer:
    """An endpoint that there is, was, or will be a link to."""

    def __cinit__(self, str address):
        self.address = address
        self.reached_at = ""
        self.link = -1
        self.position = -1
        self.queue = []

    cdef give_up(self):
        """Messages that wait for a link will not be sent."""
        self.missed |= bool(self.queue)
        self.queue, self.queued = [], 0

    cdef list take_contacts(self):
        """The messages to whichever endpoint is at the address; they wait here no longer."""
        cdef list contacts = [entry for entry in self.queue if entry[0] == CONTACT]
        self.queue = [entry for entry in self.queue if entry[0] != CONTACT]
        self.queued = sum([(<Message>message).size() for _, message in self.queue])
        return contacts


def answer_to(bytes greeting not None):
    """What one is answered whose greeting is of another wire version, so that it can say so as well; b"" for all others."""
    if len(greeting) >= FRAME_HEADER and greeting[4] == MAGIC and greeting[5] != VERSION:
        return bytes([FRAME_HEADER - 4, 0, 0, 0, MAGIC, VERSION, HELLO, 0])
    return b""


def greeting_of(bytes frame not None):
    """(group, address, incarnation) of a greeting; raises ProtocolError for anything else."""
    if not FRAME_HEADER <= len(frame) <= GREETING_MAX:
        raise ProtocolError(f"a greeting of {len(frame)} bytes")
    if frame[4] != MAGIC:
        raise ProtocolError("the first bytes are not orcalike's")
    if frame[5] != VERSION:
        raise ProtocolError(f"it speaks wire version {frame[5]}, and this process {VERSION}: {OTHER_VERSION}")
    if frame[6] != HELLO:
        raise ProtocolError(f"a frame of kind {frame[6]} before the greeting")
    match unpack(frame[FRAME_HEADER:], "a greeting", depth=1, elements=3):
        case [str(group), str(address), int(incarnation)]:
            if 0 <= incarnation < 1 << 64 and (not address or is_address(address)):
                return group, address, incarnation
    raise ProtocolError("a greeting with other fields")


cdef inline int make_frame(Message message, int kind) except -1:
    """Put in front of a message what makes a frame of it."""
    cdef unsigned char* header = message.push(FRAME_HEADER)
    store32(header, <unsigned int>(message.size() - 4))
    store32(header + 4, MAGIC | VERSION << 8 | <unsigned int>kind << 16)
    return 0


cdef inline int route(Com com, Peer peer, Message frame, int kind) except -1:
    """Send now, or keep for a link that is still to come."""
    return com.core.out.put(peer.link, frame) if peer.link >= 0 else com.keep(peer, frame, kind)


@cython.final
cdef class Com(Layer):
    """Links to peers, as reliable FIFO channels."""

    name = "COM"
    gives = frozenset({"FIFO", "ANY_SIZE"})

    def __init__(self, Core core, config, me):
        super().__init__(core)
        self.me = me
        self.group = config.group
        self.peers = {}
        self.links = []
        self.greeted = []
        self.by_position = []
        self.counters = {}
        self.whys = {}
        self.sought = ()
        self.overrun = []
        self.pause = PAUSE_LEAST
        self.pause_max = min(PAUSE_MOST, 2 * config.detection)

    # What the driver tells.

    cpdef link_up(self, int link, str address):
        """A link stands: to `address` if this end asked for it, else from a non-member ("")."""
        cdef Peer peer
        if not 0 <= link < LINKS_MAX:
            self.core.out.closes.append(link)
            return
        while len(self.links) <= link:
            self.links.append(None)
            self.greeted.append(None)
        self.links[link] = self.peer(address) if address else Peer("")
        self.greeted[link] = None
        self.say_hello(link)

    cdef int say_hello(self, int link) except -1:
        """The greeting; once more on a link that has it, nothing but to see whether it stands."""
        body = msgpack.packb([self.group, self.me.address, self.me.incarnation])
        self.transmit(link, Message(body), HELLO)
        return 0

    def link_anew(self, int link):
        """The driver makes a link anew that it was asked for, before the other end has greeted: nothing but a greeting was sent by it."""
        cdef Peer peer = self.links[link] if 0 <= link < len(self.links) else None
        if peer is not None:
            self.links[link] = None
            peer.connecting = True

    cpdef link_down(self, int link, str why):
        """The link is gone, and what was under way on it."""
        cdef Peer peer = self.links[link] if 0 <= link < len(self.links) else None
        cdef bint greeted
        if peer is None:
            return
        greeted = self.greeted[link] is not None
        self.links[link] = self.greeted[link] = None
        if not greeted:
            peer.connecting = False
            if peer.probed and peer.link < 0:   # nothing was sent by it: messages go by the next one
                self.want(peer)
                return
        if peer.link == link or peer.link < 0:
            peer.link = self.other_link(peer)
            peer.give_up()
        if peer.link < 0 and peer.position < 0 and self.peers.get(peer.address) is peer:
            del self.peers[peer.address]    # it greets again when it comes back, or is contacted now
        if greeted or peer.address:
            self.above.up_problem(peer, why)
        peer.broke = peer.link < 0
        if peer.link < 0 and (peer.position >= 0 or self.sought):
            self.retry()

    def other_link(self, Peer peer):
        """Another link to the same peer, where one stands; else -1."""
        for link, other in enumerate(self.greeted):
            if other is peer:
                return link
        return -1

    cdef retry(self):
        """Try again, after a pause, to link with the members of the view."""
        if self.deadline == NEVER:
            self.deadline = self.core.now + self.pause
            self.pause = min(2 * self.pause, self.pause_max)

    cpdef expire(self):
        cdef Peer peer
        cdef bint missing = False
        self.deadline = NEVER
        for peer in self.by_position:
            if peer is not None and peer.link < 0 and peer.position >= 0 and not peer.replaced:
                missing = True
                self.want(peer)
        for member in self.sought:
            if not self.is_found(member):
                missing = True
                self.want(self.peer(member.address))
        if missing:
            self.retry()
            return
        self.pause = PAUSE_LEAST
        for peer in self.by_position:
            if peer is not None:
                peer.broke = False

    def seek(self, tuple members):
        """Make links to these endpoints outside of the view, and no others, until they stand."""
        if members != self.sought:
            self.sought = members
            self.retry()

    def is_found(self, member):
        """Whether a link to a sought endpoint stands, or to another one that has its address."""
        for peer in self.greeted:
            if peer is not None and (
                    peer.incarnation == member.incarnation or peer.address == member.address):
                return True
        return False

    def connect_failed(self, str address, str why):
        """No link to `address` could be made."""
        cdef Peer peer = self.peers.get(address)
        if peer is None:
            return
        peer.connecting = False
        peer.broke = True
        if peer.link < 0:
            peer.give_up()
            if peer.position < 0:
                self.peers.pop(address, None)
            self.above.up_problem(peer, why)
            if peer.position >= 0 or self.sought:
                self.retry()

    cpdef receive(self, int link, Message frame):
        """One whole frame; its length was checked when it was cut from the stream."""
        cdef Peer peer = None
        cdef unsigned char* header
        if 0 <= link < len(self.greeted):
            peer = <Peer>self.greeted[link]
        if peer is None:
            self.receive_first(link, frame)
            return
        header = frame.pop(FRAME_HEADER)
        if header is NULL or header[4] != MAGIC or header[5] != VERSION:
            self.refuse(link, "a frame with a wrong header")
            return
        frame.link = link
        if header[6] == CAST or header[6] == SEND:
            frame.source = peer.position
            if header[6] == CAST:
                self.above.up_cast(frame)
            else:
                self.above.up_send(frame)
        elif header[6] == CONTACT:
            frame.source = -1
            self.above.up_send(frame)
        elif header[6] != HELLO:
            self.refuse(link, f"a frame of unknown kind {header[6]}")

    cdef receive_first(self, int link, Message frame):
        """A frame on a link on which the other end has not greeted."""
        cdef Peer peer = self.links[link] if 0 <= link < len(self.links) else None
        if peer is None:
            self.refuse(link, "a frame on no link")
        else:
            self.greet(link, peer, frame)

    cdef greet(self, int link, Peer peer, Message frame):
        """The first frame of a link: which endpoint is it?"""
        cdef Peer known
        cdef list waiting = []
        try:
            group, address, incarnation = greeting_of(frame.body)
            if group != self.group:
                raise ProtocolError(f"it speaks for another group than {self.group!r}")
            if peer.incarnation is not None and peer.address and address not in ("", peer.address):
                raise ProtocolError(f"another address answers where {peer.address} should be")
        except ProtocolError as error:
            self.refuse(link, str(error))
            return
        peer.connecting = False
        known = self.known(address or f"link:{link}:{incarnation}", incarnation)
        if known is not peer:
            if peer.link < 0:
                waiting = peer.take_contacts()
                if peer.address and peer.incarnation is None:
                    # What was asked for is one way to it, and it has another address for all.
                    known.reached_at = peer.address
                    if self.peers.get(peer.address) is peer:
                        del self.peers[peer.address]
                elif peer.address:
                    # Another endpoint answers where this peer was: it is gone.
                    peer.replaced = True
                    self.above.up_problem(peer, "another endpoint has its address")
            self.links[link] = peer = known
        self.greeted[link] = peer
        peer.incarnation = incarnation
        peer.greeted = True
        if peer.link < 0:
            peer.link = link
            if self.installed is not None:
                position = self.installed.position(incarnation)
                if position >= 0 and self.by_position[position] is peer:
                    peer.position = position
            for kind, message in peer.queue:
                self.transmit(link, message, kind)
            peer.queue, peer.queued = [], 0
            self.above.up_linked(peer)
        elif peer.link != link:
            # The other end has made a second link: it may have lost the first one, on which all is
            # sent from here. If it has, this breaks it here too, and what was lost is said again.
            self.say_hello(peer.link)
        for kind, message in waiting:
            self.transmit(peer.link, message, kind)

    cdef Peer known(self, str address, object incarnation):
        """The peer with that incarnation; another one that had the address before has lost it."""
        cdef Peer peer
        for peer in (*self.by_position, *self.links):
            if peer is not None and peer.incarnation == incarnation:
                return peer
        peer = self.peers.get(address)
        if peer is None or peer.incarnation is not None and peer.incarnation != incarnation:
            peer = self.peers[address] = Peer(address)
        return peer

    # Downcalls.

    cpdef view(self, object view):
        """Links and positions follow the view; the younger of two members makes the link.

        The older one makes it if none stands after a pause: the younger may believe that one does. A link that broke,
        or could not be made, is made after a pause, too: views may come as often as it breaks.
        """
        cdef Peer peer
        cdef bint missing = False
        cdef int mine = view.position(self.me.incarnation)
        for peer in self.by_position:
            if peer is not None:
                peer.position = -1
        self.by_position = []
        self.installed = view
        for position, member in enumerate(view.members):
            if position == mine:
                self.by_position.append(None)
                continue
            peer = self.member(member)
            peer.incarnation = member.incarnation
            peer.position = position
            peer.missed = False
            self.by_position.append(peer)
            if peer.link < 0:
                missing = True
                if position < mine and not peer.broke:
                    self.want(peer)
        # To the others nothing leads, and messages that wait for them are of views that they are out of.
        self.peers = {address: peer for address, peer in self.peers.items()
                      if peer.position >= 0 or peer.link >= 0 or peer.connecting}
        if missing:
            self.pause = max(self.pause, PAUSE_OLDER)
            self.retry()

    def member(self, member):
        """The peer that a member of the view is."""
        cdef Peer peer
        for peer in self.links:
            if peer is not None and peer.greeted and peer.incarnation == member.incarnation:
                return peer
        peer = self.peers.get(member.address)
        if peer is None or peer.incarnation not in (None, member.incarnation):
            before, peer = peer, Peer(member.address)
            if before is None or before.link < 0:
                self.peers[member.address] = peer
                if before is not None:          # messages to the address are for this one now
                    peer.queue = before.take_contacts()
                    peer.queued = sum([(<Message>message).size() for _, message in peer.queue])
                    peer.connecting, before.connecting = before.connecting, False
                    peer.probed = before.probed
                    for link, other in enumerate(self.links):
                        if other is before:     # one on which the other end has not greeted
                            self.links[link] = peer
        return peer

    cpdef cast(self, Message message):
        """To all others of the view; first to the message's sender, which may wait for it."""
        cdef Py_ssize_t count = len(self.by_position)
        cdef Py_ssize_t first = message.source if 0 <= message.source < count else 0
        cdef Py_ssize_t i
        cdef Peer peer
        make_frame(message, CAST)
        for i in range(count):
            peer = <Peer>self.by_position[(first + i) % count]
            if peer is not None:
                route(self, peer, message, CAST)

    cpdef send(self, Message message, tuple members):
        """To some of the view."""
        cdef Py_ssize_t count = len(self.by_position)
        cdef Py_ssize_t i, position
        cdef Peer peer
        make_frame(message, SEND)
        for i in range(len(members)):
            position = members[i]
            if not 0 <= position < count:
                raise IndexError("list index out of range")
            peer = <Peer>self.by_position[position]
            if peer is None:
                raise ValueError("a message to oneself")
            route(self, peer, message, SEND)

    cpdef contact(self, Message message, str address):
        """To an endpoint that need not be in the view; a link is made where there is none."""
        cdef Peer peer, other
        if address.startswith("link:") and address not in self.peers:
            return      # it listens nowhere, and its link is gone: no message reaches it
        peer = self.peer(address)
        if peer.link < 0:                   # perhaps another that was there, or is there now
            for other in self.links:
                if other is not None and other.link >= 0 and address in (other.address, other.reached_at):
                    peer = other
        if peer.link < 0:
            self.want(peer)
        make_frame(message, CONTACT)
        route(self, peer, message, CONTACT)

    def is_linked(self):
        """Whether any link stands."""
        return any([peer is not None for peer in self.links])

    def reaches(self, Py_ssize_t position):
        """Whether a link stands to the member at a position of the view."""
        cdef Peer peer = self.by_position[position]
        return peer is None or peer.link >= 0

    def non_members(self):
        """The addresses of those that a link stands to, and that are not in the view."""
        found = [peer.address for peer in self.links
                 if peer is not None and peer.greeted and peer.position < 0 and peer.address]
        return list(dict.fromkeys(found))

    def peer_at(self, int link):
        """The peer at the other end of a link; None if the link is gone."""
        return self.links[link] if 0 <= link < len(self.links) else None

    # Within.

    cpdef proceed(self):
        """What waited for a link was too much, and is gone like what is under way on one that breaks."""
        cdef Peer peer
        overrun, self.overrun = self.overrun, []
        for peer in overrun:
            self.above.up_problem(peer, f"it is not reached, and {QUEUED_MAX} bytes waited for it")

    cdef Peer peer(self, str address):
        cdef Peer peer = self.peers.get(address)
        if peer is None:
            peer = self.peers[address] = Peer(address)
        return peer

    cdef want(self, Peer peer):
        """Make a link, or, if one was made on which the other end has not greeted, see whether that stands."""
        if peer.connecting:
            for link, other in enumerate(self.links):
                if other is peer and self.greeted[link] is None:
                    peer.probed = True
                    self.say_hello(link)
        elif not peer.address.startswith("link:"):
            peer.connecting, peer.probed = True, False
            self.core.out.connects.append(peer.address)

    cdef int keep(self, Peer peer, Message frame, int kind) except -1:
        """Have the message of a frame wait for a link."""
        cdef Message message = frame.copy()
        message.pop(FRAME_HEADER)
        if peer.queued + message.size() > QUEUED_MAX:
            peer.give_up()
            self.overrun.append(peer)
            self.core.again(self)
        peer.queued += message.size()
        peer.queue.append((kind, message))
        return 0

    cdef int transmit(self, int link, Message message, int kind) except -1:
        make_frame(message, kind)
        return self.core.out.put(link, message)

    def is_non_member(self, int link):
        """Whether what comes by a link is from no member of the view."""
        cdef Peer peer = self.peer_at(link)
        return peer is None or peer.position < 0

    def take_why(self, int link):
        """Why the link of a non-member was refused; "" if there is nothing to say."""
        return self.whys.pop(link, "")

    def refuse_peer(self, Peer peer, str why):
        """Close the links of a peer that cannot be believed, or sends too much; say so."""
        for link, other in enumerate(self.links):
            if other is peer:
                self.refuse(link, why)

    cpdef refuse(self, int link, str why):
        """Close a link whose other end cannot be believed, or sends too much; say so."""
        cdef Peer peer = self.peer_at(link)
        if why in self.counters or len(self.counters) < 256:
            self.counters[why] = self.counters.get(why, 0) + 1
        if link not in self.core.out.closes:
            self.core.out.closes.append(link)
        if peer is None or peer.position < 0:
            self.whys[link] = why      # the driver says it, seldom enough
        else:
            whose = f"link {link} of member {peer.position} ({peer.address})"
            self.above.up_system_error(f"{whose} refused: {why}")

    cpdef dict dump(self):
        return {"peers": {address: peer.link for address, peer in self.peers.items()},
                "refused": dict(self.counters)}
