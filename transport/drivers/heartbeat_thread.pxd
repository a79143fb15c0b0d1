"""The thread of the heartbeats: it sends the beats that are due and takes those that come."""

from orcalike.transport.drivers.heartbeat_table cimport Table

cdef void wake_thread(Table* table) noexcept nogil
cdef void* run(void* argument) noexcept nogil
