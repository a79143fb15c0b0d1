"""A directory for sockets that nothing but one group of this process uses."""

from __future__ import annotations

import os

from orcalike.errors import OrcalikeError

PATH_MAX = 60
"""The longest temporary directory, in bytes, that leaves room for the names of sockets in it."""


def private_folder() -> str:
    """A new one, for this user alone; the caller removes it.

    Raises OrcalikeError if there is no place for one.
    """
    import tempfile  # not at the top: it takes long, as what it imports

    try:
        base = tempfile.gettempdir()
        short = base if len(os.fsencode(base)) <= PATH_MAX else "/tmp"
        return tempfile.mkdtemp(prefix="orcalike-", dir=short)
    except OSError as error:
        raise OrcalikeError(
            f"no directory can be made for the group's socket: {error}; set TMPDIR to a directory of yours with a "
            "short path"
        ) from None
