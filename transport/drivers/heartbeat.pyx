"""Heartbeats: datagrams that say that a process runs (A45, H65; H13, G13, G14).

They come from a native thread that needs no interpreter lock: a program that computes for long
without letting the lock go is slow, not dead, and to suspect it would be wrong. The thread
touches nothing but a table (`heartbeat_table.pyx`), under its mutex; it sleeps until the next beat is due, and for
an hour if no endpoint has heartbeat peers.

A beat is 56 bytes, little-endian:

    magic (4) | version | kind | 0 (2) | group (8) | sender (8) | target (8) | sent (8) | echo (8)
    | lease (8)

`group` is a digest of the group's name; sender and target are incarnations. `sent` is the sender's
monotonic clock, which serves as the beat's number: it grows with each beat. `echo` is the
latest `sent` that the sender has from the target, 0 if there is none. So a process that gets its own time
back knows that both directions worked then, and that it took the other no longer than one period
to say so: contact is known up to the echo plus one period, or up to now if that is less. If
one direction is cut the echoes stop, and contact with them, at both ends.

`lease` is the key of the view in which the beat grants its target a lease, or 0 (`membership/lease.py`):
a beat grants one only while the endpoint grants any, and had contact with the target lately.

Where TCP connections are under a key, a beat by UDP has 16 bytes more: a tag under a key that is derived
from that (`siphash.pyx`, S4). It covers sender, target and number, so one that was recorded is stale.

A view is installed everywhere at once, and a Unix socket queues few datagrams (10, as kernels
come). So that not the same beats find it full each time, a period is cut short by up to a quarter
of it, at random; and what did not go is tried a few times more within the period.

A beat from an endpoint that is no heartbeat peer is answered, once: its view may be newer than
ours, and a program that keeps the interpreter lock cannot tell this thread of the new view. So is
one to an endpoint that asks to be let in (`answer`). An answer is a beat of another kind, which is
not answered. Anything else that is not a beat for one of the stacks here is counted by its reason,
and dropped.

On a busy machine this thread can be late itself. What it does not send then cannot be answered, and
it takes nothing: it keeps account of how late it was, so that the silence of the others meanwhile,
and before the first heartbeat for them, is not held against them (`excuses`).

The thread also looks, with each beat, whether what is dispatched in this process has run for long
(`watch_running`), and says so on an eventfd: no thread that runs Python can be trusted with that.
If there are no beats, as in a group of one, it looks once a thread has to wait for another (`look_later`).

In a child after fork() there is no thread, and its mutex may be held for ever: there every method
leaves the table alone.
"""
from libc.errno cimport errno
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import os
from orcalike.transport.wire.digest import blake2b

from orcalike.transport.drivers import addresses, sockets
from orcalike.transport.errors import OrcalikeError

from orcalike.transport.degree cimport MEMBERS_MAX
from orcalike.transport.drivers.driver cimport monotonic
from orcalike.transport.drivers.heartbeat_table cimport (
    BEAT_KEYS_MAX, ENDPOINTS_MAX, LONG, SOCKETS_MAX, WATCHES_MAX, Contact, EndpointSlot, Table, Watch,
    contact_of, lateness, place, pthread_mutex_t, pthread_t, slot_of, socklen_t, take_slot,
)
from orcalike.transport.drivers.heartbeat_thread cimport run, wake_thread
from orcalike.transport.drivers.siphash cimport SIP_KEY_SIZE
from orcalike.transport.drivers.timers cimport close_once
from orcalike.transport.wire.bytes cimport load64

cdef extern from "<pthread.h>" nogil:
    int pthread_create(pthread_t* thread, const void* attributes,
                       void* (*function)(void*) noexcept nogil, void* argument)
    int pthread_join(pthread_t thread, void** result)
    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int sigfillset(sigset_t* signals)
    int pthread_sigmask(int how, const sigset_t* signals, sigset_t* old)
    enum:
        SIG_SETMASK

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int value, int flags)
    enum:
        EFD_CLOEXEC
        EFD_NONBLOCK

cdef extern from "<unistd.h>" nogil:
    int getpid()

COUNTED = ("sent", "unsent", "taken", "answered", "size", "header", "target", "stale", "tag")


cdef class Heartbeat:
    """The beats of one process: its sockets, its thread, and the heartbeat peers of its stacks."""

    def __cinit__(self):
        self.sockets = []
        self.table = <Table*>calloc(1, sizeof(Table))
        if self.table is NULL:
            raise MemoryError
        pthread_mutex_init(&self.table.mutex, NULL)
        self.table.owner = getpid()
        self.table.rng = <uint64_t>monotonic() ^ <uint64_t>getpid() << 40 | 1
        self.table.wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if self.table.wakeup < 0:
            raise OSError(errno, os.strerror(errno))

    def __dealloc__(self):
        cdef int i
        if self.table is NULL:
            return
        self.stop()
        close_once(&self.table.wakeup)
        if self.is_mine():
            pthread_mutex_destroy(&self.table.mutex)
        for i in range(self.table.slot_count):
            free(self.table.slots[i].contacts)
        free(self.table)

    cdef bint is_mine(self) noexcept:
        """Whether this is the process that made it, and no child after fork()."""
        return self.table.owner == getpid()

    def listen(self, sock):
        """Beat from, and to, a datagram socket too; it is closed by `close`.

        Raises OrcalikeError if there are too many.
        """
        cdef Table* table = self.table
        cdef int fd = sock.fileno()
        cdef unsigned short family = sock.family
        if not self.is_mine() or table.fd_count == SOCKETS_MAX:
            raise OrcalikeError(f"heartbeats from more than {SOCKETS_MAX} sockets")
        self.sockets.append(sock)
        with nogil:
            pthread_mutex_lock(&table.mutex)
            table.fds[table.fd_count] = fd
            table.families[table.fd_count] = family
            table.fd_count += 1
            pthread_mutex_unlock(&table.mutex)
        wake_thread(table)

    def set_keys(self, keys):
        """Have beats by UDP carry a tag under the first of these keys, 16 bytes each.

        Beats under the others are taken too, and under the keys that were given before: a member may
        use one for longer. Nothing is taken without a tag from now on. Raises ValueError for other keys.
        """
        cdef Table* table = self.table
        cdef list kept = list(keys)
        cdef bytes key
        cdef int i
        if not self.is_mine():
            return
        kept += [each for each in [table.keys[i][:SIP_KEY_SIZE] for i in range(table.key_count)]
                 if each not in kept]
        if not keys or any(len(key) != SIP_KEY_SIZE for key in kept):
            raise ValueError(f"keys of heartbeats have {SIP_KEY_SIZE} bytes")
        with nogil:
            pthread_mutex_lock(&table.mutex)
        for i, key in enumerate(kept[:BEAT_KEYS_MAX]):
            memcpy(table.keys[i], <const char*>key, SIP_KEY_SIZE)
        table.key_count = min(len(kept), BEAT_KEYS_MAX)
        with nogil:
            pthread_mutex_unlock(&table.mutex)

    def beat(self, incarnation, str group, int64_t period, members, uint64_t lease=0,
             int64_t window=0, cut=(), unleased=()):
        """Send heartbeats of endpoint `incarnation` to these members of its group only, each `period` ns.

        The beats grant a `lease` to each member that there was contact with within `window` ns, none
        if it is 0, and none to those that are `unleased`. From members that are `cut` off none count,
        and none go there. What is known of those that stay is kept. A beat goes to all at once if there are
        new ones, or the lease is new. With no members the endpoint has no slot here. Returns
        (incarnation, when) of each member that was granted a lease, ever. Raises ValueError for too
        many, OrcalikeError for too many endpoints.
        """
        cdef Table* table = self.table
        cdef EndpointSlot* slot
        cdef list granted = []
        cdef Contact* contacts = NULL
        cdef int64_t leases[MEMBERS_MAX]
        cdef bytes address
        cdef bint placed
        cdef int i, count
        cdef uint64_t me = incarnation
        cdef uint64_t hashed = load64(blake2b(group.encode(), digest_size=8).digest())
        members = tuple(members)
        count = len(members)
        if count > MEMBERS_MAX or period <= 0:
            raise ValueError(f"heartbeats for {count} members each {period} ns")
        if not self.is_mine():
            return granted
        if count:
            contacts = <Contact*>calloc(count, sizeof(Contact))
            if contacts is NULL:
                raise MemoryError
        try:
            for i in range(count):
                contacts[i].incarnation = members[i].incarnation
                address = addresses.datagram_address(members[i].address, beyond=self.beyond)
                contacts[i].length = <socklen_t>len(address)
                contacts[i].cut = members[i] in cut
                contacts[i].unleased = members[i] in unleased
                memcpy(&contacts[i].address, <const char*>address, len(address))
            with nogil:
                pthread_mutex_lock(&table.mutex)
                placed = place(table, me, hashed, period, &contacts, count, lease, window)
                # Only beats grant, and none does that the slot does not say.
                slot = slot_of(table, me) if placed else NULL
                if slot is not NULL:
                    for i in range(count):
                        leases[i] = slot.contacts[i].granted
                pthread_mutex_unlock(&table.mutex)
            granted = [(members[i].incarnation, leases[i]) for i in range(count) if placed and leases[i]]
        finally:
            free(contacts)
        if not placed:
            raise OrcalikeError(f"heartbeats of more than {ENDPOINTS_MAX} endpoints")
        if count:
            self.start()
        if table.running:
            wake_thread(table)
        return granted

    def leased(self, incarnation, other):
        """(key, when) of the last lease that endpoint `incarnation` has from `other`, or (0, 0).

        `when`, ns, is the time of the beat of this endpoint that the lease answers.
        """
        cdef Table* table = self.table
        cdef EndpointSlot* slot
        cdef Contact* contact = NULL
        cdef uint64_t me = incarnation, there = other, lease = 0
        cdef int64_t when = 0
        if not self.is_mine():
            return 0, 0
        with nogil:
            pthread_mutex_lock(&table.mutex)
            slot = slot_of(table, me)
            if slot is not NULL:
                contact = contact_of(slot, there)
            if contact is not NULL:
                lease, when = contact.lease, contact.leased
            pthread_mutex_unlock(&table.mutex)
        return lease, when

    def answer(self, incarnation, str group):
        """Endpoint `incarnation` answers beats from now on, until `beat` says which it sends.

        Nothing happens without a socket, where none can come. Raises OrcalikeError for too many
        endpoints.
        """
        cdef Table* table = self.table
        cdef uint64_t me = incarnation
        cdef uint64_t hashed = load64(blake2b(group.encode(), digest_size=8).digest())
        cdef bint placed
        if not self.is_mine() or not table.fd_count:
            return
        with nogil:
            pthread_mutex_lock(&table.mutex)
            placed = slot_of(table, me) is not NULL or take_slot(table, me, hashed) is not NULL
            pthread_mutex_unlock(&table.mutex)
        if not placed:
            raise OrcalikeError(f"heartbeats of more than {ENDPOINTS_MAX} endpoints")
        self.start()
        wake_thread(table)

    def excuses(self, incarnation):
        """(incarnation, until) of each heartbeat peer of endpoint `incarnation`.

        Its silence before the time `until`, ns, says nothing: no beat had gone to it yet, or for as
        long as this thread was late itself since it was heard.
        """
        cdef Table* table = self.table
        cdef EndpointSlot* slot
        cdef int64_t* found = NULL
        cdef uint64_t me = incarnation
        cdef int64_t now, late
        cdef int i, count = 0
        if not self.is_mine():
            return []
        found = <int64_t*>malloc(2 * MEMBERS_MAX * sizeof(int64_t))
        if found is NULL:
            raise MemoryError
        with nogil:
            pthread_mutex_lock(&table.mutex)
            slot = slot_of(table, me)
            if slot is not NULL:
                now = monotonic()
                late = slot.late + lateness(slot, now)
                count = slot.count
                for i in range(count):
                    found[2 * i] = <int64_t>slot.contacts[i].incarnation
                    found[2 * i + 1] = min(now, late - slot.contacts[i].late + max(
                        slot.contacts[i].known, slot.contacts[i].since))
            pthread_mutex_unlock(&table.mutex)
        try:
            return [(<uint64_t>found[2 * i], found[2 * i + 1]) for i in range(count)]
        finally:
            free(found)

    def heard(self, incarnation):
        """(incarnation, when) of each member in contact with endpoint `incarnation`, ever.

        `when` is the latest time, ns, at which contact in both directions was known.
        """
        cdef Table* table = self.table
        cdef EndpointSlot* slot
        cdef uint64_t* found = NULL
        cdef uint64_t me = incarnation
        cdef int i, count = 0
        if not self.is_mine():
            return []
        found = <uint64_t*>malloc(2 * MEMBERS_MAX * sizeof(uint64_t))
        if found is NULL:
            raise MemoryError
        with nogil:
            pthread_mutex_lock(&table.mutex)
            slot = slot_of(table, me)
            if slot is not NULL:
                for i in range(slot.count):
                    if slot.contacts[i].known:
                        found[2 * count] = slot.contacts[i].incarnation
                        found[2 * count + 1] = slot.contacts[i].known
                        count += 1
            pthread_mutex_unlock(&table.mutex)
        try:
            return [(found[2 * i], found[2 * i + 1]) for i in range(count)]
        finally:
            free(found)

    cdef int watch_running(self, const bint* busy, const int64_t* began, int wakeup) except -1:
        """Ring this eventfd once for each `began` that is `LONG` ago while `busy`; of one pump."""
        cdef Table* table = self.table
        cdef Watch* watch
        if not self.is_mine():
            return 0
        if table.watch_count == WATCHES_MAX:
            raise OrcalikeError(f"operations of more than {WATCHES_MAX} groups are watched")
        with nogil:
            pthread_mutex_lock(&table.mutex)
            watch = &table.watches[table.watch_count]
            watch.busy, watch.began, watch.reported, watch.wakeup = busy, began, 0, wakeup
            table.watch_count += 1
            pthread_mutex_unlock(&table.mutex)
        self.start()
        return 0

    cdef int watch_no_more(self, const bint* busy) except -1:
        """That pump's eventfd is not used any more."""
        cdef Table* table = self.table
        cdef int i
        if self.is_mine():
            with nogil:
                pthread_mutex_lock(&table.mutex)
                for i in range(table.watch_count):
                    if table.watches[i].busy == busy:
                        table.watch_count -= 1
                        table.watches[i] = table.watches[table.watch_count]
                        break
                pthread_mutex_unlock(&table.mutex)
        return 0

    cdef int look_later(self) noexcept:
        """A thread of this process waits for another one: look in `LONG` what runs, if no beat does."""
        cdef Table* table = self.table
        if table.beating or table.look_at or not table.watch_count or not self.is_mine():
            return 0
        with nogil:
            pthread_mutex_lock(&table.mutex)
            table.look_at = monotonic() + LONG
            pthread_mutex_unlock(&table.mutex)
        wake_thread(table)
        return 0

    @property
    def counts(self):
        """How many datagrams were sent, taken, answered, and dropped by which reason."""
        return {name: self.table.counts[i] for i, name in enumerate(COUNTED)}

    def close(self):
        """Stop the thread for good, close the sockets and remove their files; a forked child leaves those."""
        self.stop()
        close_once(&self.table.wakeup)
        self.table.fd_count = 0
        while self.sockets:
            sock = self.sockets.pop()
            if self.is_mine():
                sockets.close_datagrams(sock)
            else:
                sock.close()

    cdef int start(self) except -1:
        """Have the thread, with all signals blocked: Python's are for its own threads."""
        cdef sigset_t signals, old
        cdef int failed
        if self.table.running or self.table.wakeup < 0:
            return 0                    # once it is closed, nothing beats any more
        sigfillset(&signals)
        pthread_sigmask(SIG_SETMASK, &signals, &old)
        self.table.stopping = False
        failed = pthread_create(&self.table.thread, NULL, run, self.table)
        pthread_sigmask(SIG_SETMASK, &old, NULL)
        if failed:
            raise OSError(failed, os.strerror(failed))
        self.table.running = True
        return 0

    cdef int stop(self) noexcept:
        """End the thread, where there is one in this process."""
        cdef Table* table = self.table
        if table.running and self.is_mine():
            with nogil:
                pthread_mutex_lock(&table.mutex)
                table.stopping = True
                pthread_mutex_unlock(&table.mutex)
                wake_thread(table)
                pthread_join(table.thread, NULL)
        table.running = False
        return 0
