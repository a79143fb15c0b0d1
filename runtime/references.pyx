"""References: shared objects among what travels, by the numbers that they have in their group."""

from cpython.object cimport PyObject

from orcalike.runtime.errors import ObjectDropped, Unreadable
from orcalike.runtime.marshal import Codec
from orcalike.runtime.replica import dropped

from orcalike.runtime.dispatch cimport Runtime
from orcalike.runtime.replica cimport Replica, find


def codec_of(Runtime runtime not None):
    """The codec of a group, for which its shared objects are references."""

    def reference_of(value):
        cdef Replica replica = find(<PyObject*>value)
        if replica is None or replica.invoker is not runtime.sender:
            return None
        if replica.number == 0:
            raise dropped(replica)
        return replica.number

    def object_of(number):
        cdef Replica replica = runtime.replicas[number] if 0 < number < len(runtime.replicas) else None
        if replica is None:
            ended = runtime.table.ended_object(number) if number > 0 else None
            if ended is None:
                raise ObjectDropped(f"a reference to object {number}, which does not exist here")
            return ended
        if replica.object is None:
            raise Unreadable(
                f"{replica.name!r} is referred to, and {replica.class_name} is not declared here, "
                "or in another version: import its module before joining")
        return replica.object

    return Codec(reference_of, object_of)
