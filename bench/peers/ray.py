"""Ray: an actor that all call. Two more actors are the other members.

No dashboard, no logs to the driver, no report to its makers. Writes that do not wait are calls that
return nothing, not even a reference.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any

from orcalike.bench.peers.answers import (
    MEMBERS,
    Counter,
    Measures,
    Span,
    each,
    per_write,
    serve,
    span,
)

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # which it reads when it is imported
import ray

STORE = 100 << 20
"""Bytes of its memory for large objects; here are none."""


class Member:
    """A process that writes."""

    def __init__(self, counter: Any) -> None:
        self.counter = counter

    def burst(self, count: int) -> Span:
        """Send all; the read is executed after them, so it waits for all."""

        def calls(count: int) -> None:
            add = self.counter.add.options(num_returns=0)
            for _ in repeat(None, count):
                add.remote(1)
            ray.get(self.counter.get.remote())

        return span(calls, count)


@contextmanager
def cluster() -> Iterator[None]:
    """Ray on this machine, with its files in a folder that goes with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ray.init(
            num_cpus=len(os.sched_getaffinity(0)),
            object_store_memory=STORE,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=folder,
        )
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def opened() -> Iterator[Measures]:
    """The cluster, and all actors."""
    with cluster():
        counter = ray.remote(num_cpus=0)(Counter).remote()
        members = [ray.remote(num_cpus=0)(Member).remote(counter) for _ in range(1, MEMBERS)]
        ray.get([member.burst.remote(1) for member in members])
        mine = Member(counter)

        def burst(count: int) -> float:
            theirs = [member.burst.remote(count) for member in members]
            return per_write([mine.burst(count), *ray.get(theirs)], count)

        yield {
            "wait": lambda count: each(lambda: ray.get(counter.add.remote(1)), count),
            "burst": burst,
            "read": lambda count: each(lambda: ray.get(counter.get.remote()), count),
        }


if __name__ == "__main__":
    serve(opened())
