"""Warnings reach people: on standard error, if the program has set up no logging."""

from __future__ import annotations

import logging
import sys


class Fallback(logging.Handler):
    """Prints warnings and errors to standard error, unless another handler gets them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("orcalike: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, if nothing else does."""
        logger = logging.getLogger(record.name)
        if any(handler is not self for handler in _handlers(logger)):
            return
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except (OSError, ValueError):
            pass  # standard error is closed
        except Exception:  # noqa: BLE001 - what a text about the program raises ends no member
            self.handleError(record)


def _handlers(logger: logging.Logger | None) -> list[logging.Handler]:
    """The handlers that a record of that logger comes to."""
    found: list[logging.Handler] = []
    while logger is not None:
        found += logger.handlers
        logger = logger.parent if logger.propagate else None
    return found
