"""Workers of a Dask cluster on this host as members: `dask_guests.py SCENARIO...`, one after the other."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import tell
from distributed import Client, LocalCluster

import orcalike as orca
import orcalike.ext.dask
from orcalike.objects import Counter

DEADLINE = 250.0


def cluster_of(workers: int, **options: Any) -> Any:
    """A cluster of processes of one thread each."""
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None} | options
    return LocalCluster(n_workers=workers, silence_logs=logging.CRITICAL, **options)


def count(number: int) -> int:
    """A task: one more; returns the process."""
    orcalike.ext.dask.group().find(Counter, "hits").add(1)
    return os.getpid()


def read() -> int:
    """A task: what its replica says."""
    group = orcalike.ext.dask.group()
    group.fence()
    return group.find(Counter, "hits").value


def size() -> int:
    """A task: how many members there are."""
    return orcalike.ext.dask.group().size


def is_member() -> bool:
    """A task: whether its process is one."""
    try:
        orcalike.ext.dask.group()
    except orca.OrcalikeError:
        return False
    return True


def workers_of(client: Any) -> list[str]:
    """The addresses of the workers that the scheduler knows."""
    return list(client.scheduler_info(n_workers=-1)["workers"])


def everywhere(client: Any, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The results of a function on each worker; Dask waits for one that has just been lost, for ever."""
    workers = workers_of(client)
    futures = [client.submit(function, *arguments, workers=[it], pure=False) for it in workers]
    return list(client.gather(futures))


def show_worker(dask_worker: Any) -> str:
    """All that a worker has, and its plugin."""
    return repr([vars(dask_worker), *map(vars, dask_worker.plugins.values())])


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def come_and_go() -> None:
    """One worker starts late, one is retired, one is killed: the others go on."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        with orcalike.ext.dask.attach(client) as guests:
            group = guests.group
            folder = Path(group.address.removeprefix("unix:")).parent
            hits = group.share(Counter, "hits")
            tell(size=group.size, medium=group.address.partition(":")[0], folder=folder.is_dir())
            numbers = range(20)
            processes = set(client.gather(client.map(count, numbers, pure=False)))
            tell(client=os.getpid() in processes, hits=hits.value, read=everywhere(client, read))
            cluster.scale(3)
            client.wait_for_workers(3)
            until(lambda: group.size == 4)
            tell(size=group.size, read=everywhere(client, read))
            client.retire_workers(workers_of(client)[:1])
            until(lambda: group.size == 3)
            tell(retired=group.info().blocked is None)
            futures = client.map(count, numbers, pure=False)
            lost = workers_of(client)[0]
            victim = client.submit(os.getpid, workers=[lost], pure=False).result()
            os.kill(victim, signal.SIGKILL)
            until(lambda: lost not in workers_of(client))
            done = client.gather(futures)  # Dask runs those again whose worker was lost
            until(lambda: group.size == 3 and len(everywhere(client, size)) >= 2)
            tell(done=len(done), left=victim not in everywhere(client, os.getpid))
            tell(hits=hits.value >= 40, read=set(everywhere(client, read)) == {hits.value})
        tell(members=everywhere(client, is_member), mine=is_member(), folder=folder.exists())
        with orcalike.ext.dask.attach(client) as guests:  # once more
            tell(size=guests.group.size == 1 + len(everywhere(client, is_member)))


def over_hosts() -> None:
    """As if the scheduler listened for other hosts: TCP, under a key that no text holds."""
    orcalike.ext.dask.is_loopback = lambda host: False  # type: ignore[attr-defined]
    logging.basicConfig(level=logging.DEBUG, filename=os.environ["LOG"])
    with (
        cluster_of(1) as cluster,
        Client(cluster) as client,
        orcalike.ext.dask.attach(client, resilience=1) as guests,
    ):
        hits = guests.group.share(Counter, "hits")
        client.gather(client.map(count, range(10), pure=False))
        plugin = cluster.scheduler.plugins["orcalike-default"]
        client.dump_cluster_state(f"{os.environ['LOG']}.dump", format="yaml")
        shown = repr([guests, plugin, vars(plugin), cluster.scheduler.worker_plugins])
        shown += str(client.run(show_worker))
        tell(
            address=guests.group.address,
            hits=hits.value,
            resilience=guests.group.info().resilience,
            key=plugin._terms.key.hex(),
            shown=plugin._terms.key.hex() in shown or repr(plugin._terms.key) in shown,
        )


def two_clients() -> None:
    """The workers alone are members; a second client joins them, and leaves them as they are."""
    with cluster_of(1) as cluster, Client(cluster) as first, Client(cluster) as second:
        with orcalike.ext.dask.attach(first, "ours", member=False) as guests:
            try:
                guests.group.share(Counter, "hits")
            except orca.OrcalikeError as error:
                tell(refused=str(error))
            with orcalike.ext.dask.attach(second, "ours") as others:
                tell(size=others.group.size, name=others.group.name)
            (left,) = everywhere(second, lambda: orcalike.ext.dask.group("ours").size)
            tell(size=left)
        tell(members=everywhere(first, is_member))


def on_a_loop() -> None:
    """An asynchronous client."""

    async def run() -> None:
        async with (
            cluster_of(1, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            async with orcalike.ext.dask.attach(client) as guests:
                hits = await guests.group.share.aio(Counter, "hits")
                await client.gather(client.map(count, range(5), pure=False))
                await guests.group.fence.aio()
                tell(hits=hits.value, size=guests.group.size)
            tell(mine=is_member())

    asyncio.run(run())


def in_one_process() -> None:
    """Workers that are threads: each is a member."""
    with cluster_of(2, processes=False) as cluster, Client(cluster) as client:
        with orcalike.ext.dask.attach(client) as guests:
            hits = guests.group.share(Counter, "hits")
            client.gather(client.map(count, range(10), pure=False))
            guests.group.fence()
            tell(size=guests.group.size, hits=hits.value, read=everywhere(client, read))
        tell(mine=is_member())


if __name__ == "__main__":
    for scenario in sys.argv[1:]:
        globals()[scenario]()
        tell(end=scenario)
