"""Why a run cannot start."""

from __future__ import annotations


class LaunchError(Exception):
    """A run that cannot start; the text says why, and `code` is the exit code."""

    def __init__(self, message: str, code: int = 70) -> None:
        super().__init__(message)
        self.code = code
