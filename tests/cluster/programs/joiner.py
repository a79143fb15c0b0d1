"""Tries to join with the options given as JSON, in a thread and on a loop; tells what came of it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

from common import KEY, tell

import orcalike as orca

logging.basicConfig(format="%(message)s")
options = json.loads(sys.argv[1])


def in_thread() -> None:
    with orca.join(**options, key=KEY) as group:
        tell(way="thread", size=group.size)


async def on_loop() -> None:
    async with orca.join(**options, key=KEY) as group:
        tell(way="loop", size=group.size)


for way, attempt in (("thread", in_thread), ("loop", lambda: asyncio.run(on_loop()))):
    began = time.monotonic()
    try:
        attempt()
    except orca.OrcalikeError as error:
        took = time.monotonic() - began
        tell(way=way, error=type(error).__name__, text=str(error), took=took)
