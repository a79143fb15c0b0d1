"""What tests are made of: those of programs that use orcalike, and those of orcalike itself.

A program's tests have pytest's fixtures `orcalike_group` and `orcalike_processes` (`plugin`), and
need nothing else here.

For orcalike itself there are scenarios from seeds, checkers of the invariants, and shrinking. A
*scenario* is an explicit list of what happens to a simulated group: casts, joins and leaves, and
faults. A seed stands for one (`swarm`); `run` lets it happen with all checkers on; `shrink` makes
one that fails as small as it gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orcalike.session.lazy_names import attributes as _lazy_attributes

if TYPE_CHECKING:
    from orcalike.testing.members import Members
    from orcalike.testing.processes import Process, ProcessEnded, Processes

_MODULES = {
    "Members": "orcalike.testing.members",
    "Process": "orcalike.testing.processes",
    "ProcessEnded": "orcalike.testing.processes",
    "Processes": "orcalike.testing.processes",
}

if not TYPE_CHECKING:  # a type checker would believe that every name is there
    __getattr__ = _lazy_attributes(__name__, _MODULES)


__all__ = ["Members", "Process", "ProcessEnded", "Processes"]
