"""Processes of a Ray job on this host as members: `ray_guests.py`, with `RAY_FOLDER` for Ray's files."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import tell

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # which it reads when it is imported
import ray

import orcalike as orca
import orcalike.ext.ray
from orcalike.objects import Counter

DEADLINE = 120.0


@ray.remote(num_cpus=0)  # type: ignore[untyped-decorator]
def count(number: int) -> int:
    """A task: one more; returns the process."""
    orcalike.ext.ray.group().find(Counter, "hits").add(1)
    time.sleep(0.2)  # so that others run in other processes
    return os.getpid()


@ray.remote(num_cpus=0)  # type: ignore[untyped-decorator]
def is_member() -> bool:
    """A task: whether its process is one."""
    try:
        orcalike.ext.ray.group()
    except orca.OrcalikeError:
        return False
    return True


@ray.remote(num_cpus=0)
class Keeper:
    """An actor that reads."""

    def read(self) -> int:
        """What its replica says."""
        group = orcalike.ext.ray.group()
        group.fence()
        return group.find(Counter, "hits").value


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def run(**options: Any) -> None:
    """Tasks and an actor that use the group; it is attached, and over."""
    with orcalike.ext.ray.attach(**options) as guests:
        group = guests.group
        hits = group.share(Counter, "hits")
        tell(medium=group.address.partition(":")[0], rank=group.rank)
        processes = ray.get([count.remote(number) for number in range(20)])
        tell(hits=hits.value, several=len(set(processes)) > 1)
        keeper = Keeper.remote()  # type: ignore[attr-defined]
        tell(read=ray.get(keeper.read.remote()))
        until(lambda: group.size <= 4)  # Ray ends processes that have nothing to do
        tell(idle=group.info().blocked is None, read=ray.get(keeper.read.remote()))
        ray.kill(keeper)
        until(lambda: group.size <= 3)
        tell(hits=hits.value, process=ray.get(count.remote(0)) > 0)
        _, _, path = group.address.rpartition("unix:")
    left = path.startswith("/") and Path(path).parent.exists()
    tell(member=ray.get(is_member.remote()), folder=left)
    try:
        orcalike.ext.ray.group()
    except orca.OrcalikeError as error:
        tell(refused=str(error))


if __name__ == "__main__":
    ray.init(
        num_cpus=1,  # so many idle processes are kept
        object_store_memory=100 << 20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=os.environ["RAY_FOLDER"],
        _node_ip_address="127.0.0.1",
        runtime_env={"env_vars": {"PYTHONHASHSEED": "0"}},
    )
    run(unix=True)
    run()
    ray.shutdown()
    tell(end=True)
