/* What Cython has no words for: classes whose instances are called without a tuple of arguments,
 * and methods that take their arguments from a C array. */

#ifndef ORCALIKE_VECTORCALL_H
#define ORCALIKE_VECTORCALL_H

#include <Python.h>

typedef PyObject *(*orcalike_fastcall)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* Instances of `type` are called through the vectorcall pointer at `offset`. With `method`, a
 * method call on an object passes the object as the first argument and binds nothing. */
static inline void orcalike_enable_vectorcall(PyTypeObject *type, Py_ssize_t offset, int method)
{
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    if (method)
        type->tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    type->tp_vectorcall_offset = offset;
    type->tp_call = PyVectorcall_Call;
    PyType_Modified(type);
}

/* Give `type` a method that takes its arguments from an array. `def` must live forever. */
static inline int orcalike_add_fastcall(PyTypeObject *type, PyMethodDef *def, const char *name,
                                        orcalike_fastcall function, const char *doc)
{
    def->ml_name = name;
    def->ml_meth = (PyCFunction)(void (*)(void))function;
    def->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    def->ml_doc = doc;
    PyObject *descriptor = PyDescr_NewMethod(type, def);
    if (descriptor == NULL)
        return -1;
    int failed = PyDict_SetItemString(type->tp_dict, name, descriptor);
    Py_DECREF(descriptor);
    PyType_Modified(type);
    return failed;
}

#endif
