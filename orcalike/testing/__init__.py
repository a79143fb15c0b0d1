"""What tests are made of: those of programs that use orcalike, and those of orcalike itself.

A program's tests have pytest's fixtures `orcalike_group` and `orcalike_processes` (`plugin`), and
need nothing else here.

For orcalike itself there are scenarios from seeds, checkers of the invariants, and shrinking. A
*scenario* is an explicit list of what happens to a simulated group: casts, joins and leaves, and
faults. A seed stands for one (`swarm`); `run` lets it happen with all checkers on; `shrink` makes
one that fails as small as it gets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orcalike.testing.members import Members
    from orcalike.testing.processes import Process, ProcessEnded, Processes

_MODULES = {
    "Members": "members",
    "Process": "processes",
    "ProcessEnded": "processes",
    "Processes": "processes",
}

if not TYPE_CHECKING:  # a type checker would believe that every name is there

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = ["Members", "Process", "ProcessEnded", "Processes"]
