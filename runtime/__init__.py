"""Shared objects: replicas, guards, invocations, state. It knows no sockets."""
