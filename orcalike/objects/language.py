"""What the shared objects are written with: as much of `import orcalike` as their classes need.

They name it `orca`, and so read as a program's own classes do. `import orcalike` itself is above them: it
names `Manager` and `progress`, which are made of them.
"""

from __future__ import annotations

from orcalike.declare.decorators import local, read, shared, write
from orcalike.runtime.moment import caller, now, position
from orcalike.transport.view import Member

__all__ = ["Member", "caller", "local", "now", "position", "read", "shared", "write"]
