"""JGroups with SEQUENCER: three Java virtual machines, TCP on loopback. `Member.java` is each.

    python -m orcalike.bench.peers.jgroups {throughput,latency}

compiles it and is the parent of all three. A write is a message to the group, applied where it is
delivered; one that waits is over when the member that wrote it has it back. A read is a field of the
member itself.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

STORE = Path("~/.m2/repository/org/jgroups/jgroups")
"""Where Maven keeps it."""


def find_jar() -> Path | None:
    """What JGROUPS_JAR names, or else the newest that Maven has got."""
    if named := os.environ.get("JGROUPS_JAR"):
        return Path(named)
    jars = STORE.expanduser().glob("*/jgroups-*.Final.jar")
    return max(
        jars, key=lambda jar: [int(part) for part in re.findall(r"\d+", jar.name)], default=None
    )
