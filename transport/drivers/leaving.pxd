"""When what was put into PACK leaves."""

from orcalike.transport.drivers.driver cimport Driver
from orcalike.transport.layers.pack cimport Pack


cdef inline int let_leave(Driver driver, Pack pack, bint awaited) except -1:
    """What was put into PACK leaves now, or, if it is not waited for, soon, together with what comes next."""
    if pack.ready or awaited and pack.gathers:
        driver.kick()
    elif pack.gathers and pack.packed == 1:
        driver.kick_later()
    return 0
