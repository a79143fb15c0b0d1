/* The system's part: memory that is shared by file descriptors, sealed and checked; futexes; eventfds.
 *
 * The order segment cannot be resized, so that no member ends by SIGBUS. A lane cannot be written but
 * through the mapping that its writer made before it was sealed. All memory is allocated when it is made.
 */
#ifndef ORCALIKE_RING_SYSTEM_H
#define ORCALIKE_RING_SYSTEM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "layout.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
enum {
    RING_ORDER_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW,
    RING_LANE_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE,
};

/* What is wrong with a segment that was given; beyond the codes of layout.h and of errno. */
enum ring_segment_fault {
    RING_SEGMENT_SEALS = -10001,
    RING_SEGMENT_MAGIC = -10002,
    RING_SEGMENT_VERSION = -10003,
    RING_SEGMENT_SIZES = -10004,
    RING_SEGMENT_GROUP = -10005,
    RING_SEGMENT_BOOT = -10006,
};

/* Sleep on a word while it has a value; until woken for one of the bits, or for `ns` (negative: for good). */
static inline long ring_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns, uint32_t bits)
{
    struct timespec until;
    RING_STEP();
    if (ns >= 0) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ns / 1000000000 + (until.tv_nsec + ns % 1000000000) / 1000000000;
        until.tv_nsec = (until.tv_nsec + ns % 1000000000) % 1000000000;
    }
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, ns < 0 ? NULL : &until, NULL, bits);
}

static inline long ring_futex_wake(_Atomic uint32_t *word, uint32_t bits)
{
    RING_STEP();
    return syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
}

static inline void ring_notify(int fd)
{
    uint64_t one = 1;
    RING_STEP();
    if (write(fd, &one, sizeof one) < 0) {
        /* full: it is to be read already */
    }
}

/* A sized memfd whose memory is there. Returns it, or -errno. */
static inline int ring_memory(const char *name, uint64_t size)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), error;
    if (fd < 0)
        return -errno;
    if (fallocate(fd, 0, 0, (off_t)size) == 0)
        return fd;
    error = errno;
    close(fd);
    return -error;
}

/* Map memory that a forked child does not get. Returns 0 or -errno. */
static inline int ring_map(int fd, uint64_t size, int protection, void **memory)
{
    void *mapped = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    if (madvise(mapped, size, MADV_DONTFORK)) {
        int error = errno;
        munmap(mapped, size);
        return -error;
    }
    *memory = mapped;
    return 0;
}

static inline int ring_sizes_are_sound(uint32_t slots_log, uint32_t lane_size)
{
    return slots_log >= RING_SLOTS_LOG_MIN && slots_log <= RING_SLOTS_LOG_MAX
           && lane_size >= RING_LANE_MIN && lane_size <= RING_LANE_MAX
           && (lane_size & (lane_size - 1)) == 0;
}

/* Make an order segment; people see its name. Returns its descriptor, and where it is mapped; or -errno. */
static inline int ring_make_order(const char *name, uint32_t slots_log, uint32_t lane_size,
                                  const unsigned char *group, const unsigned char *boot,
                                  struct ring_order **order)
{
    uint64_t size = ring_order_size(slots_log);
    void *memory = NULL;
    int fd, error;
    if (!ring_sizes_are_sound(slots_log, lane_size))
        return -EINVAL;
    fd = ring_memory(name, size);
    if (fd < 0)
        return fd;
    error = ring_map(fd, size, PROT_READ | PROT_WRITE, &memory);
    if (!error && fcntl(fd, F_ADD_SEALS, RING_ORDER_SEALS))
        error = -errno;
    if (error) {
        if (memory)
            munmap(memory, size);
        close(fd);
        return error;
    }
    *order = memory;
    (*order)->header = (struct ring_header){.magic = RING_MAGIC, .version = RING_VERSION,
                                            .rows = RING_ROWS, .slots_log = slots_log,
                                            .lane_size = lane_size, .size = size};
    memcpy((*order)->header.group, group, RING_ID_SIZE);
    memcpy((*order)->header.boot, boot, RING_ID_SIZE);
    return fd;
}

/* Check what a header says, once copied: of this version, group (any if NULL) and boot of the host, of sound
 * sizes. */
static inline int ring_check_header(const struct ring_header *header, uint64_t size,
                             const unsigned char *group, const unsigned char *boot)
{
    if (header->magic != RING_MAGIC)
        return RING_SEGMENT_MAGIC;
    if (header->version != RING_VERSION || header->rows != RING_ROWS)
        return RING_SEGMENT_VERSION;
    if (!ring_sizes_are_sound(header->slots_log, header->lane_size) || header->size != size
        || ring_order_size(header->slots_log) != size)
        return RING_SEGMENT_SIZES;
    if (group && memcmp(header->group, group, RING_ID_SIZE))
        return RING_SEGMENT_GROUP;
    if (memcmp(header->boot, boot, RING_ID_SIZE))
        return RING_SEGMENT_BOOT;
    return 0;
}

/* The size of sealed memory that was given. Returns 0, RING_SEGMENT_SEALS, or -errno. */
static inline int ring_sealed_size(int fd, int seals, uint64_t *size)
{
    struct stat status;
    int found = fcntl(fd, F_GET_SEALS);
    if (found < 0 || fstat(fd, &status))
        return -errno;
    if ((found & seals) != seals)
        return RING_SEGMENT_SEALS;
    *size = (uint64_t)status.st_size;
    return 0;
}

/* Map an order segment that was given, in one way. Returns 0, with its checked header, or what is wrong. */
static inline int ring_map_order_to(int protection, int fd, const unsigned char *group,
                                    const unsigned char *boot, struct ring_order **order,
                                    struct ring_header *header)
{
    uint64_t size = 0;
    void *memory = NULL;
    int error = ring_sealed_size(fd, RING_ORDER_SEALS, &size);
    if (error)
        return error;
    if (size < sizeof(struct ring_order))
        return RING_SEGMENT_SIZES;
    error = ring_map(fd, size, protection, &memory);
    if (error)
        return error;
    *order = memory;
    memcpy(header, &(*order)->header, sizeof *header);
    error = ring_check_header(header, size, group, boot);
    if (error)
        munmap(memory, size);
    return error;
}

/* Map it to take part. */
static inline int ring_map_order(int fd, const unsigned char *group, const unsigned char *boot,
                                 struct ring_order **order, struct ring_header *header)
{
    return ring_map_order_to(PROT_READ | PROT_WRITE, fd, group, boot, order, header);
}

/* Map that of any group to look at it. */
static inline int ring_look_at_order(int fd, const unsigned char *boot, struct ring_order **order,
                                     struct ring_header *header)
{
    return ring_map_order_to(PROT_READ, fd, NULL, boot, order, header);
}

/* Make the own lane. Returns its descriptor, which is sealed, and where it is mapped to be written. */
static inline int ring_make_lane(uint32_t lane_size, unsigned char **lane)
{
    void *memory = NULL;
    int fd = ring_memory("orcalike-lane", lane_size), error;
    if (fd < 0)
        return fd;
    error = ring_map(fd, lane_size, PROT_READ | PROT_WRITE, &memory);
    if (!error && fcntl(fd, F_ADD_SEALS, RING_LANE_SEALS))
        error = -errno;
    if (error) {
        if (memory)
            munmap(memory, lane_size);
        close(fd);
        return error;
    }
    *lane = memory;
    return fd;
}

/* Map the lane of another member. Returns 0 or what is wrong. */
static inline int ring_open_lane(int fd, uint32_t lane_size, const unsigned char **lane)
{
    uint64_t size = 0;
    void *memory = NULL;
    int error = ring_sealed_size(fd, RING_LANE_SEALS, &size);
    if (error)
        return error;
    if (size != lane_size)
        return RING_SEGMENT_SIZES;
    error = ring_map(fd, size, PROT_READ, &memory);
    *lane = memory;
    return error;
}

#endif
