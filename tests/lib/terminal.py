"""Commands on a terminal of their own, as a person starts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pexpect

from tests.lib.processes import DEADLINE


class Terminal(pexpect.spawn):  # type: ignore[misc]  # noqa: TID251
    """A command, what it writes, and the keys for it."""

    def __init__(self, *command: str | Path, **options: Any) -> None:
        program, *arguments = map(str, command)
        # A process of the tests may have more descriptors than `select` takes.
        options = {"timeout": DEADLINE, "encoding": "utf-8", "use_poll": True} | options
        super().__init__(program, arguments, **options)

    def ended(self) -> int:
        """Its exit status, when it has ended; `before` is the rest of what it wrote."""
        self.expect(pexpect.EOF)
        self.wait()
        return int(self.exitstatus)
