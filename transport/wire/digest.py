"""BLAKE2b, which `hashlib` has too: that loads OpenSSL, 2 ms and half a megabyte in each process."""

from _blake2 import blake2b

__all__ = ["blake2b"]
