"""Shared objects among the workers of a Dask cluster, while Dask starts, feeds and ends them.

    def count(word: str) -> None:
        orcalike.ext.dask.group().find(Counter, "words").add(1)

    with orcalike.ext.dask.attach(client) as guests:
        words = guests.group.share(Counter, "words")
        client.gather(client.map(count, text.split(), pure=False))

`attach` makes each worker's process a member, those that start later too; one that is retired leaves, one
that is killed is lost as any member is, and the others go on. The first member makes the group. Which one may
do so, and through which addresses the others join, the scheduler says: it keeps no object, and is no member.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import asdict
from typing import Any, Self

from orcalike.errors import JoinFailed, OrcalikeError
from orcalike.ext.invitation import Terms, accept, drawn_key, is_loopback
from orcalike.ext.rendezvous import Rendezvous
from orcalike.group import Group
from orcalike.launch_protocol.environment import DEFAULT_NAME
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.transport.degree import Resilience, degree_of

try:
    from distributed import Client, Scheduler, SchedulerPlugin, Worker, WorkerPlugin, get_worker
    from distributed.comm import get_address_host, parse_address
    from distributed.utils import get_ip
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"orcalike.ext.dask needs {missing.name}: pip install 'orcalike[dask]'", name=missing.name
    ) from None

__all__ = ["Attachment", "attach", "group"]

_log = logging.getLogger("orcalike")

TIMEOUT = 30.0
"""Seconds that a process has to become a member, if nothing else is said."""

TRY_WITHIN = 10.0
"""Seconds for one try, after which the scheduler is asked again for the addresses."""

_of_process: dict[str, Group] = {}
"""The group of each name, for threads of a process that are in no task."""


def attach(
    client: Client,
    name: str = DEFAULT_NAME,
    *,
    member: bool = True,
    resilience: Resilience = 0,
    timeout: Duration = TIMEOUT,
) -> Attachment:
    """Make the workers of `client`'s cluster members of one group, and this process, if `member` says so.

    Workers that start later join before their first task. The block `with attach(client) as guests:` ends
    by `guests.detach()`. With an asynchronous client it is `async with attach(client)`, or `await attach(client)`.
    If another client has attached the workers to the group `name` already, this one joins them, and the end of its
    block leaves them as they are.

    On a cluster whose scheduler listens on the loopback interface the members communicate by Unix sockets; else by TCP,
    under a key that the scheduler draws, and gives to workers and clients on the connections that they have
    with it: they are as secret as those.

    `timeout`, in seconds or as a text, is what each process has to join. Raises JoinFailed after it,
    and what `orcalike.join` raises; then no worker stays a member.
    """
    degree_of(resilience)
    attachment = Attachment(client, name, member, resilience, seconds_of(timeout) or TIMEOUT)
    if not client.asynchronous:
        client.sync(attachment._begin)
    return attachment


def group(name: str = DEFAULT_NAME) -> Group:
    """The group of this worker, in a task, or of this client.

    Raises OrcalikeError if the process is no member.
    """
    try:
        plugin = get_worker().plugins.get(_plugin_name(name))
    except ValueError:  # this is no task
        plugin = None
    if isinstance(plugin, WorkerMember):
        return plugin.joined_group()
    found = _of_process.get(name)
    if found is None:
        raise OrcalikeError(
            f"this process is no member of the group {name!r}: orcalike.ext.dask.attach(client) makes "
            "the workers members, and the client"
        )
    return found


class Attachment:
    """What `attach` returns: the workers are members until `detach`, or the end of the block."""

    def __init__(
        self, client: Client, name: str, member: bool, resilience: Resilience, timeout: float
    ) -> None:
        self.client = client
        self.name = name
        self._is_member = member
        self._resilience = resilience
        self._timeout = timeout
        self._group: Group | None = None
        self._attached = False
        self._is_first = False

    @property
    def group(self) -> Group:
        """The group, if this process is a member; raises OrcalikeError if it is not."""
        if self._group is None:
            raise OrcalikeError(
                f"this process is no member of the group {self.name!r}: attach(client, member=True)"
            )
        return self._group

    def detach(self) -> None:
        """All leave the group: the workers, those that start later too, and then this process."""
        self._sync(self._end)

    def leave(self) -> None:
        """This process leaves the group; the workers stay members."""
        self._sync(self._leave)

    async def detach_async(self) -> None:
        """The same as `detach`, for an asynchronous client."""
        await self._end()

    def _sync(self, coroutine: Callable[[], Awaitable[None]]) -> None:
        if self.client.status == "running":
            self.client.sync(coroutine)
        elif self._group is not None:  # the cluster is gone, and the workers with it
            self._close(self._group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._sync(self._end if self._is_first else self._leave)

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(self, *exception: object) -> None:
        await (self._end() if self._is_first else self._leave())

    def __await__(self) -> Generator[Any, None, Self]:
        return self._begin().__await__()

    def __repr__(self) -> str:
        return f"<Attachment {self.name!r}: {self._group or 'the client is no member'}>"

    # On the client's event loop.

    async def _begin(self) -> Self:
        if self._attached:
            return self
        self._attached = True
        plugin = _plugin_name(self.name)
        try:
            await self.client.register_plugin(
                SchedulerRendezvous(self.name, self._resilience, self.client.id), name=plugin
            )
            self._is_first = await self._ask("maker") == self.client.id
            if self._is_member:
                host = await asyncio.to_thread(self._own_host)
                self._group = await enter(self._ask, host, self._timeout)
                _of_process[self.name] = self._group
            await self.client.register_plugin(WorkerMember(self.name, self._timeout), name=plugin)
        except BaseException:
            await (self._end() if self._is_first else self._leave())
            raise
        return self

    def _own_host(self) -> str:
        """Where the workers reach this host."""
        return str(get_ip(get_address_host(self.client.scheduler.address)))

    async def _ask(self, step: str, address: str = "") -> Any:
        scheduler = getattr(self.client.scheduler, _plugin_name(self.name))
        return await scheduler(step=step, member=self.client.id, address=address)

    async def _end(self) -> None:
        plugin = _plugin_name(self.name)
        try:
            with contextlib.suppress(ValueError):  # there is none: it was detached elsewhere
                await self.client.unregister_worker_plugin(name=plugin)
        finally:
            await self._leave()
            with contextlib.suppress(OSError, ValueError, AttributeError):
                await self._ask("end")
                await self.client.unregister_scheduler_plugin(name=plugin)

    async def _leave(self) -> None:
        if self._group is not None:
            await asyncio.to_thread(self._close, self._group)
            with contextlib.suppress(OSError, ValueError, AttributeError):
                await self._ask("left")

    def _close(self, group: Group) -> None:
        close(self.name, group)
        self._group = None


class WorkerMember(WorkerPlugin):  # type: ignore[misc]  # it has no types
    """Makes a worker a member when it starts, and has it leave when it closes."""

    idempotent = True

    def __init__(self, name: str, timeout: float) -> None:
        self.group_name = name
        self.timeout = timeout
        self._joining: asyncio.Task[Group] | None = None
        self._failure: Exception | None = None

    async def setup(self, worker: Worker) -> None:
        """Join before the first task."""
        scheduler = getattr(worker.scheduler, _plugin_name(self.group_name))

        async def ask(step: str, address: str = "") -> Any:
            return await scheduler(step=step, member=worker.address, address=address)

        self._ask = ask
        host = get_address_host(worker.address)
        self._joining = asyncio.create_task(enter(ask, host, self.timeout))
        try:
            _of_process[self.group_name] = await asyncio.shield(self._joining)
        except Exception as error:
            self._failure = error
            raise

    def joined_group(self) -> Group:
        """The group; raises OrcalikeError if it was not joined."""
        if self._joining is None or not self._joining.done() or self._failure is not None:
            raise OrcalikeError(
                f"this worker is no member of the group {self.group_name!r}: "
                f"{self._failure or 'it is still joining'}"
            )
        return self._joining.result()

    async def teardown(self, worker: Worker) -> None:
        """Leave."""
        if self._joining is None:
            return
        await asyncio.wait([self._joining])
        if not self._joining.cancelled() and self._joining.exception() is None:
            await asyncio.to_thread(close, self.group_name, self._joining.result())
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it knows by itself
            await self._ask("left")


class SchedulerRendezvous(SchedulerPlugin):  # type: ignore[misc]  # it has no types
    """Answers workers and clients, each on the connection that it has with the scheduler."""

    idempotent = True

    def __init__(self, name: str, resilience: Resilience, client: str) -> None:
        self.group_name = name
        self.resilience = resilience
        self.client = client

    async def start(self, scheduler: Scheduler) -> None:
        """From here on it answers. The key is drawn here, and leaves in answers only."""
        protocol, _ = parse_address(scheduler.address)
        one_host = protocol == "inproc" or is_loopback(get_address_host(scheduler.address))
        self._folder = tempfile.mkdtemp(prefix="orcalike-") if one_host else ""
        self._terms = Terms(
            self.group_name, self.resilience, self._folder, None if one_host else drawn_key()
        )
        self._rendezvous = Rendezvous()
        self._scheduler = scheduler
        scheduler.handlers[_plugin_name(self.group_name)] = self.answer

    async def answer(self, step: str, member: str, address: str = "") -> Any:
        """A step of a process that joins or leaves, and what it needs to know."""
        if step == "maker":
            return self.client
        if step == "enter":
            return {"seeds": await self._rendezvous.enter(member), "terms": asdict(self._terms)}
        if step == "entered":
            self._rendezvous.entered(member, address)
        elif step == "left":
            self._rendezvous.left(member)
        elif step == "end":
            await self.close()
        return None

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:
        """It is gone, however it ended."""
        self._rendezvous.left(worker)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """The same."""
        self._rendezvous.left(client)

    async def close(self) -> None:
        """It is over: nothing is left."""
        self._scheduler.handlers.pop(_plugin_name(self.group_name), None)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _plugin_name(name: str) -> str:
    """Of the plugins, and of what the scheduler is asked by."""
    return f"orcalike-{name}"


async def enter(ask: Callable[..., Awaitable[Any]], host: str, timeout: float) -> Group:
    """Become a member within `timeout` seconds, by what the scheduler answers to `ask(step, address)`."""
    end = time.monotonic() + timeout
    while True:
        answer = await ask("enter")
        terms, seeds = Terms(**answer["terms"]), list(answer["seeds"])
        rest = max(0.1, end - time.monotonic())
        try:
            group = await asyncio.to_thread(accept, terms, seeds, host, min(rest, TRY_WITHIN))
        except JoinFailed as error:
            await ask("left")
            if time.monotonic() >= end:
                raise
            _log.info("the group %r is asked again: %s", terms.name, error)
        except BaseException:
            await ask("left")
            raise
        else:
            await ask("entered", group.address)
            return group


def close(name: str, group: Group) -> None:
    """Leave the group."""
    if _of_process.get(name) is group:
        del _of_process[name]
    group.close()
