"""How the processes of a launcher's world meet: where each listens, and where it asks to be let in.

What is found is written down in `ORCALIKE_*` variables, as `orcalike run` gives them to its ranks: so a
process is a rank from then on, when it joins another group or the same one again, and what it starts is none.

- On one host each listens at a Unix socket in a folder of the job's, and no key is needed.
- Else by TCP under a key. Rank 0 is at a port that all know, each at a name that all know, or the launcher
  passes the addresses on.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass

from orcalike.environments.exchange import exchange
from orcalike.environments.finding import MARK
from orcalike.environments.folder import hold
from orcalike.environments.ports import ports_of
from orcalike.environments.world import AtFirstHost, AtNames, ByExchange, World
from orcalike.errors import JoinFailed, OrcalikeError
from orcalike.launch_protocol.environment import (
    SHARED_ORDER,
    SHARED_ORDER_MOST,
    RankEnvironment,
    find_layers,
    find_stack,
)
from orcalike.session.host_address import own_addresses, own_host
from orcalike.session.names import hosts_of
from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.addresses import is_loopback, normal, split, tcp

OVER_HOSTS = "2s"
"""The detection time over several hosts, unless the user says another one."""

HOSTS_MAX = 8
"""Addresses of its own that a process tells the others."""

NONE = "-"
"""What a process tells that has no address but the loopback's."""

_log = logging.getLogger("orcalike")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one process listens, and where it finds the others."""

    job: str
    listen: str
    seeds: tuple[str, ...]
    listen_fd: int | None = None
    directory: str = ""


def meet(world: World, environ: MutableMapping[str, str] = os.environ) -> RankEnvironment:
    """Find the others of this process's world, and make this process a rank.

    It can wait for them. Raises OSError if a name is not known yet, and may be tried again; JoinFailed or
    OrcalikeError if they cannot be found.
    """
    place = _find_place(world)
    rank = RankEnvironment(
        rank=world.rank,
        size=world.size,
        address=place.seeds[0],
        sequencer="rank",
        directory=place.directory,
        listen=place.listen,
        listen_fd=place.listen_fd,
        seeds=place.seeds,
        job=place.job,
        restarts=world.restarts,
        stack=find_stack(environ) or (SHARED_ORDER if _can_share_memory(world) else ""),
        layers=find_layers(environ),
        unanimous=True,
    )
    _write_down(world, rank, environ)
    _log.info(
        "process %d of %d that %s has started, of the job %s; it listens at %s",
        *(world.rank, world.size, world.launcher, place.job, place.listen),
    )
    return rank


def _can_share_memory(world: World) -> bool:
    """Whether the order is in shared memory if nothing else is asked for (ADR-24)."""
    return world.is_on_one_host and world.size <= SHARED_ORDER_MOST


def _write_down(world: World, rank: RankEnvironment, environ: MutableMapping[str, str]) -> None:
    """Give this process the variables of a rank; those that the user has set, or another launcher, stay."""
    said = {
        name: value
        for name, value in rank.to_environ().items()
        if name.startswith("ORCALIKE_")
        and name not in ("ORCALIKE_LAUNCHER", "ORCALIKE_NODE_RANK", "ORCALIKE_SEED")
    }
    environ.update(said)
    environ["ORCALIKE_LOCAL_RANK"] = str(world.local_rank)
    environ["ORCALIKE_LOCAL_WORLD_SIZE"] = str(world.local_size)
    environ["ORCALIKE_RANK_PID"] = str(os.getpid())
    environ[MARK] = world.mark
    if not world.is_on_one_host:
        environ.setdefault("ORCALIKE_DETECTION", OVER_HOSTS)


def _find_place(world: World) -> Place:
    if world.is_on_one_host:
        return _in_folder(world)
    match world.meets:
        case AtFirstHost() as first:
            return _at_first_host(world, first)
        case AtNames(addresses):
            return _at_names(world, addresses)
        case ByExchange(protocol):
            return _by_exchange(world, protocol)


def _in_folder(world: World) -> Place:
    job = world.job
    if isinstance(world.meets, ByExchange) and not job:
        with exchange(world, world.meets.protocol) as exchanging:
            job = exchanging.job()
    folder = str(hold(f"{world.launcher} {job}"))
    seeds = tuple(f"unix:{folder}/{rank}" for rank in range(world.size))
    return Place(job=job, listen=seeds[world.rank], seeds=seeds, directory=folder)


def _at_first_host(world: World, first: AtFirstHost) -> Place:
    host = _known_as(first, first.host)
    seeds = tuple(tcp(host, port) for port in ports_of(world.job))
    others = [_known_as(first, each) for each in first.others]
    own = _own_host([*others, host])
    ports = ports_of(world.job) if world.rank == 0 else (0,)
    listen, descriptor = _listen(world.rank, own, ports)
    return Place(job=world.job, listen=listen, listen_fd=descriptor, seeds=seeds)


def _known_as(first: AtFirstHost, host: str) -> str:
    """The host's name, if it is known here, or what the launcher says of it."""
    try:
        hosts_of(host)
    except OSError:
        return first.ask(host) or host
    return host


def _at_names(world: World, addresses: Sequence[str]) -> Place:
    _, _, port = split(addresses[world.rank])
    listen, descriptor = _listen(world.rank, hosts_of(socket.gethostname())[0], (port,))
    seeds = [*addresses]
    seeds[world.rank] = listen
    return Place(job=world.job, listen=listen, listen_fd=descriptor, seeds=tuple(seeds))


def _by_exchange(world: World, protocol: str) -> Place:
    """All say what addresses their hosts have, then each at which of its own it listens."""
    with exchange(world, protocol) as exchanging:
        job = exchanging.job()
        own_hosts = [host for _, host in own_addresses() if not is_loopback(host)][:HOSTS_MAX]
        texts = exchanging.all(",".join(own_hosts) or NONE)
        hosts = [host for text in texts for host in text.split(",") if host != NONE]
        try:
            listen, descriptor = _listen(world.rank, _own_host([*hosts, "127.0.0.1"]), (0,))
        except OSError as error:  # the others go on: it cannot be tried again
            raise JoinFailed(f"others cannot reach this process: {error}") from None
        try:
            seeds = tuple(map(normal, exchanging.all(listen)))
        except BaseException:
            os.close(descriptor)
            raise
    return Place(job=world.job or job, listen=listen, listen_fd=descriptor, seeds=seeds)


def _own_host(others: Sequence[str]) -> str:
    """The host, a number, at which others reach this process, if those are theirs.

    One of these may be this host, by a name that is its loopback address here and here alone.
    """
    own = {host for _, host in own_addresses()}
    numbers = [number for host in others for number in hosts_of(host)]
    elsewhere = [number for number in numbers if number not in own and not is_loopback(number)]
    try:
        return own_host(towards=elsewhere)
    except OSError as error:
        if error.errno != errno.EDESTADDRREQ:
            raise
    for number in numbers:
        if not is_loopback(number):
            return number
    for host in others:
        if host in numbers:
            return host
    raise OrcalikeError(
        f"{others[0]} is a loopback address here, at which no other host reaches this one: say which "
        "address they do, with ORCALIKE_INTERFACE or ORCALIKE_ADVERTISE"
    )


def _listen(rank: int, host: str, ports: Sequence[int]) -> tuple[str, int]:
    """(where others reach this process, a socket that listens), at the first of the ports that is free.

    Others may know this host by another of its addresses, so it listens at all, unless it is the loopback's.
    Raises JoinFailed, with the reason, if it can at none.
    """
    anywhere = "0.0.0.0" if ":" not in host else "::"
    bound = host if is_loopback(host) else anywhere
    for port in ports:
        try:
            listener, address = sockets.listen(tcp(bound, port), beyond=True)
        except OrcalikeError as error:
            trouble = error
            continue
        return tcp(host, split(address)[2]), listener.detach()
    raise JoinFailed(f"rank {rank} of this job {trouble}{_whose(str(trouble), ports)}")


def _whose(trouble: str, ports: Sequence[int]) -> str:
    """What has the ports, if they are taken."""
    if not trouble.endswith(os.strerror(errno.EADDRINUSE)):
        return ""
    others = "another process has the port" if len(ports) == 1 else "others have all of its ports"
    return f": it is there already, or {others}"
