/* The memory in which the members of one host order their packets: its parts, and the words in them.
 *
 * One order segment, which all members write, and a lane for each member, which only that member
 * writes. A packet's bytes lie in the lane of its sender; the packet is in the order when a word that
 * leads to it has been swapped into the next slot. Nothing here is trusted when it is read: sizes are
 * copied once, when a segment is mapped, and each word is bounded before it is used.
 *
 * The rest of the protocol: member.h, waking.h, views.h, order.h. docs/internals/ring.md says why.
 */
#ifndef ORCALIKE_RING_LAYOUT_H
#define ORCALIKE_RING_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The simulator makes each atomic step a point at which to switch, to kill, and to stop. */
#ifndef RING_STEP
#define RING_STEP() ((void)0)
#endif

/* What packets are about, and what a sleeper is to be woken by: a bit for each 64th object. */
#define RING_ANYTHING (~0ull)

#define RING_MAGIC 0x676e6972616372ffull /* no text file begins so */
#define RING_VERSION 5u
#ifndef RING_ROWS              /* the simulator has fewer, which are used again sooner */
#define RING_ROWS 64u         /* members at most */
#define RING_HALF 32u         /* a futex can tell 32 sleepers apart, so there are two alarms */
#endif
#define RING_ALL_ROWS (~0ull >> (64 - RING_ROWS))
#define RING_MARKS 1024u      /* marks of digests that are kept */
#define RING_MARK_EVERY 1024u /* slots from one mark to the next */
#define RING_SLOTS_LOG_MIN 3u
#define RING_SLOTS_LOG_MAX 22u
#define RING_LANE_MIN 512u
#define RING_LANE_MAX (1u << 27) /* what 24 bits lead to, in units of 8 bytes */
#define RING_ID_SIZE 16u

#define ring_get_relaxed(p) (RING_STEP(), atomic_load_explicit(p, memory_order_relaxed))
#define ring_get_acquire(p) (RING_STEP(), atomic_load_explicit(p, memory_order_acquire))
#define ring_get_ordered(p) (RING_STEP(), atomic_load_explicit(p, memory_order_seq_cst))
#define ring_put_relaxed(p, v) (RING_STEP(), atomic_store_explicit(p, v, memory_order_relaxed))
#define ring_put_release(p, v) (RING_STEP(), atomic_store_explicit(p, v, memory_order_release))
#define ring_add(p, v) (RING_STEP(), atomic_fetch_add_explicit(p, v, memory_order_seq_cst))
#define ring_or(p, v) (RING_STEP(), atomic_fetch_or_explicit(p, v, memory_order_seq_cst))
#define ring_and(p, v) (RING_STEP(), atomic_fetch_and_explicit(p, v, memory_order_seq_cst))
#define ring_swap(p, v) (RING_STEP(), atomic_exchange_explicit(p, v, memory_order_seq_cst))
#define ring_swap_if(p, found, v)                                                                  \
    (RING_STEP(), atomic_compare_exchange_strong_explicit(p, found, v, memory_order_seq_cst,       \
                                                          memory_order_acquire))
/* Between a store and a load of another word, where two members do so crosswise (Dekker). */
#define ring_fence() atomic_thread_fence(memory_order_seq_cst)

/* A slot's word: lap (31 bits) | is it a view (1) | 32 bits of a packet or of a view.
 * A packet: row (8) | offset in the lane, in units of 8 bytes (24).
 * A view:   kind (2) | row (8) | incarnation (22). It has no bytes in a lane, so that it can be read
 *           before the lane of its sender is mapped, and put when the lane of its sender is full.
 * A fence:  kind 0 (2) | number of the view that ends there (30): see fence.h. */
#define RING_LAP_MASK 0x7fffffffull
#define RING_OFFSET_MASK 0xffffffull
#define RING_INCARNATION_MASK 0x3fffffu
#define RING_FENCE_MASK 0x3fffffffu
#define RING_IS_VIEW (1ull << 32)

enum ring_view_kind { RING_FENCE = 0, RING_JOIN = 1, RING_LEAVE = 2, RING_EXPEL = 3 };

static inline uint64_t ring_lap_of(uint64_t word) { return word >> 33; }
static inline unsigned ring_row_of(uint64_t word) { return word >> 24 & 0xff; }
static inline uint64_t ring_offset_of(uint64_t word) { return (word & RING_OFFSET_MASK) * 8; }
static inline uint64_t ring_packet_word(unsigned row, uint64_t offset)
{
    return (uint64_t)row << 24 | offset / 8;
}

static inline unsigned ring_view_kind_of(uint64_t word) { return word >> 30 & 3; }
static inline unsigned ring_view_row_of(uint64_t word) { return word >> 22 & 0xff; }
static inline uint32_t ring_view_incarnation_of(uint64_t word)
{
    return (uint32_t)word & RING_INCARNATION_MASK;
}
static inline uint64_t ring_view_word(unsigned kind, unsigned row, uint32_t incarnation)
{
    return RING_IS_VIEW | (uint64_t)kind << 30 | (uint64_t)row << 22 | incarnation;
}

/* The number of a view as a fence has it: not 0, which is of a member that expects no fence. */
static inline uint32_t ring_fence_number(uint32_t view)
{
    return (view - 1) % RING_FENCE_MASK + 1;
}
static inline uint64_t ring_fence_word(uint32_t number)
{
    return RING_IS_VIEW | (number & RING_FENCE_MASK);
}
static inline uint32_t ring_fence_number_of(uint64_t word)
{
    return (uint32_t)word & RING_FENCE_MASK;
}

/* A row's state: incarnation (22) | the member that has offered it, its sponsor (8) | one of these (2).
 * With the incarnation in the same word, a late helper cannot strike the row's next holder. The sponsor,
 * its row (6) and its incarnation's last bits (2), is there so that a row does not stay offered when it
 * dies. */
enum ring_state { RING_FREE = 0, RING_JOINING = 1, RING_IN = 2, RING_STRUCK = 3 };

static inline unsigned ring_state_of(uint32_t word) { return word & 3; }
static inline unsigned ring_sponsor_of(uint32_t word) { return word >> 2 & 0xff; }
static inline uint32_t ring_incarnation_of(uint32_t word) { return word >> 10; }
static inline unsigned ring_sponsor(unsigned row, uint32_t incarnation)
{
    return (incarnation & 3) << 6 | row;
}
static inline uint32_t ring_state_word(uint32_t incarnation, unsigned sponsor, unsigned state)
{
    return incarnation << 10 | sponsor << 2 | state;
}
/* Whether the holder counts: what it must still read may not be overwritten. */
static inline int ring_counts(uint32_t word)
{
    return ring_state_of(word) == RING_JOINING || ring_state_of(word) == RING_IN;
}
static inline uint32_t ring_next_incarnation(uint32_t incarnation)
{
    return incarnation == RING_INCARNATION_MASK ? 1 : incarnation + 1;
}
/* Whether an incarnation comes after another, half of all of them ahead at most. 0 is of no member, and before all. */
static inline int ring_is_later(uint32_t incarnation, uint32_t than)
{
    uint32_t ahead = (incarnation - than) & RING_INCARNATION_MASK;
    if (incarnation == 0 || than == 0)
        return incarnation != 0;
    return ahead != 0 && ahead <= RING_INCARNATION_MASK / 2;
}

struct ring_header {
    uint64_t magic;
    uint32_t version;
    uint32_t rows;
    uint32_t slots_log;
    uint32_t lane_size;
    uint64_t size; /* of the whole segment */
    unsigned char group[RING_ID_SIZE];
    unsigned char boot[RING_ID_SIZE]; /* of the host: a segment does not outlive it */
};

/* A row's holder: incarnation (22) | is its eventfd armed (1) | has it one (1) | process number (32). A member
 * that disarms an eventfd must have that eventfd, and not the one of the row's last holder. */
#define RING_HAS_EVENTFD (1ull << 32)
#define RING_IS_ARMED (1ull << 33)

static inline uint64_t ring_holder_word(uint32_t incarnation, uint64_t flags, uint32_t pid)
{
    return (uint64_t)incarnation << 34 | flags | pid;
}
static inline uint32_t ring_holder_incarnation(uint64_t holder) { return (uint32_t)(holder >> 34); }

/* The view that a row's holder has begun: incarnation (32) | can it read the lanes of all in it (1) | 0 (1) | number of
 * the view (30). */
#define RING_READS_ALL (1u << 31)

/* Of `alone`: in this view the holder took the row. */
#define RING_SINCE (1u << 30)

static inline uint64_t ring_begun_word(uint32_t incarnation, uint32_t view)
{
    return (uint64_t)incarnation << 32 | view;
}
static inline uint32_t ring_begun_incarnation(uint64_t begun) { return (uint32_t)(begun >> 32); }

/* What is to wake a row's holder: incarnation (22) | bits of objects (42). Of the 64 bits the last 22 fall on the first ones. */
#define RING_OBJECTS_MASK 0x3ffffffffffull

static inline uint64_t ring_objects_of(uint64_t news) { return (news | news >> 42) & RING_OBJECTS_MASK; }
static inline uint64_t ring_interest_word(uint32_t incarnation, uint64_t news)
{
    return (uint64_t)incarnation << 42 | ring_objects_of(news);
}
static inline uint32_t ring_interest_incarnation(uint64_t interest) { return (uint32_t)(interest >> 42); }

struct ring_row {
    _Alignas(64) _Atomic uint64_t applied; /* the member has applied all slots below */
    _Alignas(64) _Atomic uint32_t state;
    _Atomic uint64_t holder;
    _Atomic uint64_t begun;
    /* The last view that the holder has ended without the acceptance of all that may live, or in which it took the row, with
     * none ended so since: incarnation (32) | 0 (1) | is it the latter (1) | number (30). What it did in views before that is
     * not known here. And the rows of those that had not accepted, ever. */
    _Atomic uint64_t alone;
    _Atomic uint64_t left_out;
    /* What the holder is to be woken by while its bit in `sleepers` is set, or its eventfd armed: see `ring_interest_word`. */
    _Atomic uint64_t interest;
};

struct ring_order {
    struct ring_header header;
    _Alignas(64) _Atomic uint64_t sleepers; /* a bit for each row that is to be woken by news */
    _Atomic uint64_t loops; /* a bit for each row that has, or had, an eventfd */
    _Alignas(64) _Atomic uint32_t alarms[2]; /* futexes: rows 0 to 31, rows 32 to 63 */
    _Alignas(64) _Atomic uint64_t room_waiters; /* a bit for each row that waits for room */
    _Atomic uint32_t room_alarm; /* the futex of these */
    struct ring_row rows[RING_ROWS];
    _Alignas(64) _Atomic uint64_t marks[RING_MARKS];
    _Alignas(64) _Atomic uint64_t slots[];
};

/* What a packet in a lane begins with; its bytes follow. */
struct ring_packet {
    uint32_t size;
    uint32_t count; /* of messages in it: not used here */
    uint64_t ticket; /* 1, 2, ... in each incarnation of a row */
};
enum { RING_HEAD = sizeof(struct ring_packet) };

static inline uint64_t ring_order_size(uint32_t slots_log)
{
    return sizeof(struct ring_order) + (sizeof(uint64_t) << slots_log);
}

/* What calls return instead of a slot, or of 0. */
enum ring_fault {
    RING_FULL = -1,       /* others must apply first: `ring_wait_for_room` */
    RING_OUT = -2,        /* this member is expelled, or has left */
    RING_TOO_LARGE = -3,  /* a packet over a quarter of the lane, or over the room that was taken */
    RING_BAD_LAP = -4,    /* a slot of the wrong round */
    RING_BAD_ROW = -5,    /* a packet of a row that no member has */
    RING_NO_LANE = -6,    /* the lane of a member is not mapped yet */
    RING_BAD_OFFSET = -7, /* a packet that begins outside of its lane */
    RING_BAD_SIZE = -8,   /* a packet that ends outside of its lane, or is too large */
    RING_BAD_TICKET = -9, /* a packet of a member that is not its next one */
    RING_BAD_VIEW = -10,  /* a view that is none */
    RING_NO_ROW = -11,    /* all rows are taken */
    RING_LOST = -12,      /* a row is no longer offered to this joiner */
    RING_FENCED = -13,    /* the view ends at this slot: `ring_pass_fence` */
};

#endif
