"""The table of the heartbeats: what the endpoints of a process and the thread share, under its mutex."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.siphash cimport SIP_KEY_SIZE

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_mutex_t:
        pass

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned int socklen_t
    struct sockaddr_storage:
        unsigned short ss_family

cdef enum:
    SOCKETS_MAX = 4
    ENDPOINTS_MAX = 256
    BEAT_KEYS_MAX = 32
    WATCHES_MAX = ENDPOINTS_MAX
    LONG = 500000000            # ns: what has been dispatched for so long is reported

cdef enum:                      # what is counted
    SENT
    UNSENT
    TAKEN
    ANSWERED
    WRONG_SIZE
    WRONG_HEADER
    NOT_FOR_US
    STALE
    WRONG_TAG
    REASONS


cdef struct Contact:            # a heartbeat peer
    uint64_t incarnation
    sockaddr_storage address
    socklen_t length            # 0: it takes no datagrams
    bint blocked                # its socket was full
    bint cut                    # cut off on purpose: no beats go there, and none count
    bint unleased               # it learns of no death for certain, and so needs no lease
    uint64_t latest             # what its latest beat gave as `sent`
    int64_t known               # contact in both directions was known then; 0 for never
    int64_t since               # when its first heartbeat was due
    int64_t late                # the slot's `late` at the time `known`, or `since`
    int64_t granted             # when it got its last lease; 0 for never
    uint64_t lease              # key of the last lease that it gave
    int64_t leased              # the echo that came with that

cdef struct EndpointSlot:       # a stack that beats
    uint64_t group
    uint64_t incarnation
    int64_t period
    uint64_t lease              # what its beats grant, or 0
    int64_t window              # how old contact may be for that, ns
    int64_t due                 # when the next heartbeats to all are due
    int64_t wake                # when that is, or when those are tried again whose sockets were full
    int64_t late                # how late the thread was for the beats so far, in all
    int tries
    Contact* contacts
    int count

cdef struct Watch:              # of what is dispatched in one pump
    const bint* busy            # whether packets are being dispatched
    const int64_t* began        # since when
    int64_t reported            # the `began` that was reported last
    int wakeup                  # an eventfd that is written to for what runs for long

cdef struct Table:
    pthread_mutex_t mutex
    pthread_t thread
    int owner                   # the process that made it
    bint running
    bint stopping
    int wakeup                  # an eventfd that wakes the thread
    int fds[SOCKETS_MAX]
    unsigned short families[SOCKETS_MAX]
    int fd_count
    unsigned char keys[BEAT_KEYS_MAX][SIP_KEY_SIZE]    # of beats by UDP: the first makes the tags
    int key_count
    EndpointSlot slots[ENDPOINTS_MAX]
    int slot_count
    int beating                 # slots with heartbeat peers; read without the mutex, too
    uint64_t rng
    uint64_t counts[REASONS]
    Watch watches[WATCHES_MAX]
    int watch_count
    int64_t look_at             # when to look what runs, although no beat is due then; 0: with the beats


# The caller of these holds the mutex of the table.

cdef EndpointSlot* slot_of(Table* table, uint64_t incarnation) noexcept nogil
cdef Contact* contact_of(EndpointSlot* slot, uint64_t incarnation) noexcept nogil
cdef EndpointSlot* take_slot(Table* table, uint64_t me, uint64_t group) noexcept nogil
cdef bint place(Table* table, uint64_t me, uint64_t group, int64_t period, Contact** given,
                int count, uint64_t lease, int64_t window) noexcept nogil
cdef int64_t lateness(EndpointSlot* slot, int64_t now) noexcept nogil
