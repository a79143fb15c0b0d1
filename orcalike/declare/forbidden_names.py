"""What an operation may not use, because it differs at each replica, waits, or reaches outside.

Entries are dotted names; the longest that fits counts, and one whose reason is None is allowed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)

from orcalike.transport.record import Record


class Reason(Record):
    """Why a name is forbidden, as the end of "X uses time.time, ..."."""

    why: str
    remedy: str


CLOCK = Reason("which differs at each replica", "use orcalike.now()")
RANDOM = Reason("which differs at each replica", "use orcalike.random()")
WAITS = Reason("which waits, and operations never wait", "wait where you call it, or use a guard")
OUTSIDE = Reason(
    "which reaches outside of the object, at each replica again",
    "do it where you call the operation, and pass the value as an argument",
)
PRINTS = Reason(
    "which each replica would print",
    "return the value and print it where you call the operation, or use logging",
)
THREADS = Reason(
    "which operations do not need: no two of an object run at once",
    "leave it out, or use a guard to wait",
)
HASH = Reason(
    "which differs at each replica if it is a text's or an object's",
    "use zlib.crc32 of its bytes, or hashlib",
)
UNSEEN = Reason("which runs or looks up what no check can see", "write it out")
ZONE = Reason("which goes by the time zone of each process", "pass a time zone")
MEMORY = Reason("which holds whatever was in the memory of each process", "use numpy.zeros")
ENDS = Reason(
    "which ends this process's part in the group",
    "raise an exception of your own, and end the program where you call the operation",
)
IDENTITY = Reason("which differs at each replica", "give the object a number of its own")

_RULES: dict[str, Reason | None] = {
    "time": CLOCK,
    "time.sleep": WAITS,
    "time.struct_time": None,
    "datetime.datetime.now": CLOCK,
    "datetime.datetime.utcnow": CLOCK,
    "datetime.datetime.today": CLOCK,
    "datetime.date.today": CLOCK,
    "random": RANDOM,
    "secrets": RANDOM,
    "numpy.random": RANDOM,
    "uuid.uuid1": RANDOM,
    "uuid.uuid4": RANDOM,
    "uuid.uuid6": RANDOM,
    "uuid.uuid7": RANDOM,
    "uuid.getnode": OUTSIDE,
    "os": OUTSIDE,
    "os.urandom": RANDOM,
    "os.getrandom": RANDOM,
    "os.fspath": None,
    "os.fsencode": None,
    "os.fsdecode": None,
    "os.PathLike": None,
    "os.path": None,
    **{
        f"os.path.{name}": OUTSIDE
        for name in (
            *("abspath", "exists", "expanduser", "expandvars", "getatime", "getctime", "getmtime"),
            *("getsize", "isdir", "isfile", "islink", "ismount", "lexists", "realpath"),
            *("relpath", "samefile"),
        )
    },
    "pathlib.Path": OUTSIDE,
    "pathlib.PosixPath": OUTSIDE,
    "io.open": OUTSIDE,
    "io.FileIO": OUTSIDE,
    "io.TextIOWrapper": OUTSIDE,
    "io.BufferedReader": OUTSIDE,
    "io.BufferedWriter": OUTSIDE,
    "sys.stdin": OUTSIDE,
    "sys.stdout": PRINTS,
    "sys.stderr": PRINTS,
    "sys.argv": OUTSIDE,
    "builtins.open": OUTSIDE,
    "builtins.input": OUTSIDE,
    "builtins.print": PRINTS,
    "builtins.breakpoint": WAITS,
    **dict.fromkeys(("sys.exit", "_sitebuiltins.Quitter", "atexit"), ENDS),
    "builtins.id": IDENTITY,
    "builtins.hash": HASH,
    **dict.fromkeys(
        (
            *("builtins.eval", "builtins.exec", "builtins.compile", "builtins.__import__"),
            *("builtins.globals", "builtins.locals", "importlib", "runpy", "inspect", "ctypes"),
        ),
        UNSEEN,
    ),
    **dict.fromkeys(
        ("gc", "weakref", "sys._getframe", "sys.getrefcount", "sys.getsizeof"), IDENTITY
    ),
    **dict.fromkeys(("sys.path", "sys.modules", "locale", "resource", "pwd", "mmap"), OUTSIDE),
    "datetime.datetime.fromtimestamp": ZONE,
    "numpy.empty": MEMORY,
    "numpy.empty_like": MEMORY,
    **dict.fromkeys(("threading", "multiprocessing", "concurrent.futures", "queue"), THREADS),
    **dict.fromkeys(("asyncio", "select", "selectors", "signal"), WAITS),
    **dict.fromkeys(
        (
            *("aiohttp", "ftplib", "getpass", "glob", "http.client", "httpx", "platform"),
            *("requests", "shutil", "smtplib", "socket", "sqlite3", "ssl", "subprocess"),
            *("tempfile", "urllib.request"),
        ),
        OUTSIDE,
    ),
}

SEEDED = frozenset({"random.Random", "numpy.random.default_rng"})
"""Generators that are the same at each replica when they are given a seed."""

WITH_ZONE = "datetime.datetime.fromtimestamp"
"""It is the same at each replica when it is given a time zone."""

# Where C keeps what Python shows under another name.
_HOMES = {
    "posix": "os",
    "nt": "os",
    "posixpath": "os.path",
    "ntpath": "os.path",
    "genericpath": "os.path",
    "_io": "io",
    "_random": "random",
    "_socket": "socket",
    "_thread": "threading",
    "pathlib._local": "pathlib",
}

# A constant is the same wherever it comes from; an error's class is only named to catch it.
_HARMLESS = (int, float, complex, str, bytes, tuple, frozenset, type(None))


@functools.lru_cache(maxsize=1024)
def reason_against(name: str) -> Reason | None:
    """Why operations may not use what has this dotted name, or None if they may."""
    for known in _prefixes(name):
        if known in _RULES:
            return _RULES[known]
    return None


def _prefixes(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def is_harmless(value: object) -> bool:
    """Whether a value may be used although it is found in a forbidden module."""
    return isinstance(value, _HARMLESS) or (
        isinstance(value, type) and issubclass(value, BaseException)
    )


def canonical_name(value: object) -> str:
    """The dotted name under which a value is known, however the program imported it.

    A value that has no name of its own has that of its type: a global `random.Random()` is as
    forbidden as `random.random`.
    """
    if isinstance(value, ModuleType):
        return _at_home(value.__name__)
    if isinstance(value, BuiltinFunctionType | MethodType):
        owner = value.__self__
        if owner is None:
            return _at_home(f"{value.__module__}.{value.__name__}")
        return f"{canonical_name(owner)}.{value.__name__}"
    if isinstance(value, FunctionType | type):
        return _at_home(f"{value.__module__}.{value.__qualname__}")
    if isinstance(value, MethodDescriptorType | WrapperDescriptorType):
        return f"{canonical_name(value.__objclass__)}.{value.__name__}"
    return canonical_name(type(value))


def _at_home(name: str) -> str:
    for known in _prefixes(name):
        if known in _HOMES:
            return _HOMES[known] + name[len(known) :]
    return name
