/* What Cython has no words for: a class whose instances are awaited without an exception for what comes of it. */

#ifndef ORCALIKE_SENDING_H
#define ORCALIKE_SENDING_H

#include <Python.h>

typedef int (*orcalike_send)(PyObject *, PyObject *, PyObject **);

/* Instances of `type`, which has `__await__`, are sent values through `function` (the slot am_send). */
static inline void orcalike_enable_sending(PyTypeObject *type, orcalike_send function)
{
    type->tp_as_async->am_send = (sendfunc)(void (*)(void))function;
    PyType_Modified(type);
}

#endif
