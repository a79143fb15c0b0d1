"""Which thread this is, found without a call of a function."""

cdef extern from *:
    """
    #include "pythread.h"

    /* The interpreter's function is called once by each thread and module. */
    static inline unsigned long orcalike_this_thread(void)
    {
        static __thread unsigned long known;
        if (!known)
            known = PyThread_get_thread_ident();
        return known;
    }
    """
    unsigned long this_thread "orcalike_this_thread"() noexcept nogil
