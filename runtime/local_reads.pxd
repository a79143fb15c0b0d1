"""Reads that are more than a call of their function, and the arguments of a call as Python objects."""

from cpython.object cimport PyObject

from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport Replica
from orcalike.transport.drivers.driver cimport Driver
from orcalike.transport.layers.pack cimport Pack


cdef tuple given_of(PyObject* const* args, Py_ssize_t count)
cdef dict named_of(PyObject* const* args, Py_ssize_t count, PyObject* names)
cdef int catch_up(Invoker invoker, Driver driver, Pack pack) except -1
cdef bint is_free(Replica target, Operation operation, Py_ssize_t count, PyObject* names) noexcept
cdef PyObject* read_free(Replica target, Operation operation, PyObject* const* args, Py_ssize_t count,
                         PyObject* names) except? NULL
# `runtime` is `dispatch.Runtime`, whose module cimports this one by way of `sender`.
cdef Invocation begin_read(Invocation invocation, Invoker invoker, object runtime, Replica target,
                           Operation operation, PyObject* const* args, Py_ssize_t count,
                           PyObject* names, bint brief, bint on_loop, bint tried)
cdef int read_last_state(Invocation invocation, Operation operation, object target, tuple given,
                         dict named, object closed) except -1
