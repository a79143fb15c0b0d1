"""How the members of an engine find each other: which one makes the group, and which are there to join.

It runs in one process of the engine's, which knows when a worker is gone, and is no member itself.
"""

from __future__ import annotations

import asyncio


class Rendezvous:
    """The members by the engine's names for them, on one event loop."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._maker: str | None = None
        self._made = asyncio.Event()

    async def enter(self, member: str) -> list[str]:
        """The addresses through which this process joins; none if it is to make the group.

        While another one makes it, this waits until that one is in, or is gone. Each `enter` is
        followed by `entered` or `left`.
        """
        self.left(member)  # an earlier process of that name
        while self._maker is not None:
            await self._made.wait()
        if not self._addresses:
            self._maker = member
            self._made.clear()
        return list(self._addresses.values())

    def entered(self, member: str, address: str) -> None:
        """It is a member, and others may join through it."""
        self._addresses[member] = address
        self._let_others_go_on(member)

    def left(self, member: str) -> None:
        """It has left, could not join, or its process is gone."""
        self._addresses.pop(member, None)
        self._let_others_go_on(member)

    def _let_others_go_on(self, member: str) -> None:
        if self._maker == member:
            self._maker = None
            self._made.set()
