"""Exchanges texts among the processes of Open MPI's `mpiexec`: PMIx, by the library that Open MPI brings.

It runs in a child process of a rank: if the rank itself spoke, its MPI library could not later. It is started by
its path, and imports nothing but the standard library:

    pmix_client.py RANK SIZE

Its first line says which job it is; then each line that comes is this process's text, and the answer is a line
with the texts of all, with tabs between them.
"""

from __future__ import annotations

import ctypes as c
import glob
import os
import sys

GLOBAL, STRING, BOOL = 3, 3, 1
"""Of PMIx's headers: a scope, which is all processes, and two types of values."""


class Process(c.Structure):
    """`pmix_proc_t`."""

    _fields_ = (("job", c.c_char * 256), ("rank", c.c_uint32))


class Data(c.Union):
    """The data of a `pmix_value_t`, as large as the largest of its kinds at the least."""

    _fields_ = (("string", c.c_char_p), ("flag", c.c_bool), ("bytes", c.c_byte * 64))


class Value(c.Structure):
    """`pmix_value_t`."""

    _fields_ = (("type", c.c_uint16), ("data", Data))


class Info(c.Structure):
    """`pmix_info_t`."""

    _fields_ = (("key", c.c_char * 512), ("flags", c.c_uint32), ("value", Value))


def library() -> c.CDLL:
    """The library; raises OSError if there is none."""
    for name in ("PMIX_PREFIX", "OPAL_PREFIX", "OMPI_LIBDIR_LOC"):
        folder = os.environ.get(name)
        if folder:
            for path in glob.glob(f"{glob.escape(folder)}/**/libpmix.so.2*", recursive=True):
                return c.CDLL(path)
    return c.CDLL("libpmix.so.2")


class Pmix:
    """The library, and this process's place in the job."""

    def __init__(self) -> None:
        self._library = library()
        self._library.PMIx_Put.argtypes = (c.c_uint8, c.c_char_p, c.POINTER(Value))
        self._library.PMIx_Get.argtypes = (
            *(c.POINTER(Process), c.c_char_p, c.c_void_p, c.c_size_t),
            c.POINTER(c.POINTER(Value)),
        )
        self._me = Process()
        self._call("PMIx_Init", c.byref(self._me), None, 0)
        self.name = bytes(self._me.job).decode()
        """That of the job."""

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name} returned {status}")

    def exchange(self, key: str, text: str, size: int) -> list[str]:
        """The texts of all processes, when each has given its own."""
        value = Value(type=STRING, data=Data(string=text.encode()))
        self._call("PMIx_Put", GLOBAL, key.encode(), c.byref(value))
        self._call("PMIx_Commit")
        collect = Info(key=b"pmix.collect", value=Value(type=BOOL, data=Data(flag=True)))
        self._call("PMIx_Fence", None, 0, c.byref(collect), 1)
        texts = []
        for rank in range(size):
            process, found = Process(self._me.job, rank), c.POINTER(Value)()
            self._call("PMIx_Get", c.byref(process), key.encode(), None, 0, c.byref(found))
            texts.append(found.contents.data.string.decode())
        return texts

    def close(self) -> None:
        """Tell the server that this process is done; it may come again, as the MPI library."""
        self._call("PMIx_Finalize", None, 0)


def main() -> None:
    """Exchange what comes, until no more comes."""
    size = int(sys.argv[2])
    try:
        pmix = Pmix()
        print(pmix.name, flush=True)
        for number, line in enumerate(sys.stdin):
            print("\t".join(pmix.exchange(f"orcalike{number}", line.strip(), size)), flush=True)
        pmix.close()
    except OSError as error:
        sys.exit(f"PMIx: {error}")


if __name__ == "__main__":
    main()
