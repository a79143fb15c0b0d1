"""Members with much state: `keeper.py make|join ADDRESS WHAT`.

The maker fills what there is, and writes until "stop"; a joiner tells what it has got.
"""

from __future__ import annotations

import sys
from hashlib import blake2b

from common import called, tell, wait_for

import orcalike as orca

HOW, ADDRESS, WHAT = sys.argv[1:]
MiB = 1 << 20


@orca.shared
class Box:
    """Something large, and a count of what was put in since."""

    def __init__(self, filling: bytes = b"") -> None:
        self.size = len(filling)
        self.parts: dict[int, bytes] = {}
        self.level = 0

    @orca.write
    def put(self, part: bytes) -> int:
        """Put a part in; returns how many there are."""
        self.parts[len(self.parts)] = part
        return len(self.parts)

    @orca.write(resilience=1)
    def count(self) -> int:
        """Count up."""
        self.level += 1
        return self.level

    @orca.write
    def take(self, number: int, why: bytes) -> int:
        """Wait until there is a part of this number."""
        return len(self.parts[number])

    @take.when
    def _(self, number: int, why: bytes) -> bool:
        return number in self.parts

    @orca.read
    def contents(self) -> dict[str, object]:
        """How much it has, and a digest of that."""
        digest = blake2b(digest_size=8)
        for number, part in sorted(self.parts.items()):
            digest.update(b"%d" % number + part)
        return {"size": self.size, "parts": len(self.parts), "digest": digest.hexdigest()}


def fill(group: orca.Group) -> list[Box]:
    """Make what the state is to have."""
    if WHAT == "arguments":
        return [group.share(Box, f"box {i}", b"%d" % i * MiB) for i in range(17)]
    if WHAT == "dropped":
        for _ in range(90):
            some = [group.share.nowait(Box, f"old {i}", b"x" * 4_000) for i in range(50)]
            for invocation in some:
                group.drop.nowait(invocation.result(60))
            group.fence()
    box = group.share(Box, "box")
    if WHAT == "large":
        for i in range(40):
            box.put(b"%c" % i * MiB)
    if WHAT == "calls":
        for i in range(5_000):
            box.take.nowait(1 + i, b"%04d" % i * 1_000)
    return [box]


def keep() -> None:
    """Make the group, fill it, write, and hold on until the test kills this process."""
    with orca.join(listen=ADDRESS) as group:
        tell(address=group.address)
        boxes = fill(group)
        other = group.share(Box, "other")
        tell(boxes=[box.contents() for box in boxes])
        level = 0
        wait_for(lambda: len(group.members) > 1, "another holds it")
        while not called("stop"):
            level = other.count()
        tell(level=level)
        wait_for(lambda: called("leave"), "the test has seen enough")


def come() -> None:
    """Join, tell what came, and hold on."""
    with orca.join(seeds=ADDRESS, timeout=50) as group:
        tell(joined=len(group.members))
        names = [f"box {i}" for i in range(17)] if WHAT == "arguments" else ["box"]
        boxes = [group.find(Box, name) for name in names]
        other = group.find(Box, "other")
        tell(boxes=[box.contents() for box in boxes])
        if WHAT == "calls":
            for part in (b"0", b"01", b"012"):
                boxes[0].put(part)
        wait_for(lambda: called("count"), "the test asks")
        tell(level=other.count(), members=len(group.members))
        wait_for(lambda: called("leave"), "the test has seen enough")


if HOW == "make":
    keep()
else:
    come()
