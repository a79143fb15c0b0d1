"""Dask: an actor on one worker; the client and tasks on two more workers are the members.

The workers are processes of one thread each. Clients reach the actor's worker directly, not by way
of the scheduler. Writes that do not wait are calls whose futures are waited for at the end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import dask
from distributed import Client, LocalCluster

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


def burst(counter: Any, count: int) -> Span:
    """A member's: send all, then wait for all."""

    def calls(count: int) -> None:
        for future in [counter.add(1) for _ in repeat(None, count)]:
            future.result()

    return span(calls, count)


@contextmanager
def opened() -> Iterator[Measures]:
    """A cluster of processes, and the actor."""
    dask.config.set({"distributed.worker.profile.enabled": False})
    with (
        LocalCluster(
            n_workers=MEMBERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        home, *others = client.scheduler_info(n_workers=-1)["workers"]
        counter = client.submit(Counter, actor=True, workers=[home]).result()

        def bursts(count: int) -> float:
            theirs = [
                client.submit(burst, counter, count, workers=[other], pure=False)
                for other in others
            ]
            return per_write([burst(counter, count), *client.gather(theirs)], count)

        yield {
            "wait": lambda count: each(lambda: counter.add(1).result(), count),
            "burst": bursts,
            "read": lambda count: each(lambda: counter.get().result(), count),
        }


if __name__ == "__main__":
    serve(opened())
