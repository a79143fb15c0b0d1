"""For tests of programs that use orcalike: members in one process, and in several.

Pytest's fixtures `orcalike_group` and `orcalike_processes` (`plugin`) make them, and need nothing
else here. The simulator of orcalike itself is `orcalike.simulator`.
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
