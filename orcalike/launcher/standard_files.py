"""The standard files of the launcher."""

from __future__ import annotations

import os


def open_standard_files() -> None:
    """Give what a shell has closed (`<&-`) a file, or a pipe would get its number."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            os.set_inheritable(null, True)
