"""The options of `orcalike run` for several hosts, and what they mean together."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from orcalike.cli.common import Refusal
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.host_list import (
    MORE_SLOTS,
    ListedHost,
    fill,
    parse_address,
    parse_hosts,
    read_hostfile,
)
from orcalike.launcher.job import Options
from orcalike.launcher.remote_command import Via, host_command, is_this_host

_VIA: dict[str, Via] = {"auto": "ssh", "ssh": "ssh", "slurm": "slurm", "mpi": "mpi"}

HOST_OPTIONS = [
    click.option(
        "-H",
        "--hosts",
        metavar="HOST:N,...",
        help="Run on these hosts, N ranks each at the most (1 if no number is given).",
    ),
    click.option(
        "--hostfile",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The same, from a file with lines such as `a slots=4` or `a:4`.",
    ),
    click.option(
        "--via",
        type=click.Choice(["auto", "ssh", "slurm", "mpi"]),
        default="auto",
        show_default=True,
        help="What starts the agents on other hosts; auto: ssh. Without -H, slurm takes the allocation's.",
    ),
    click.option(
        "--remote-python",
        metavar="PATH",
        default="",
        help="The interpreter on other hosts; without it, the path of this one.",
    ),
    click.option(
        "--interface",
        metavar="NAME|NETWORK",
        default="",
        help="The interface, or network as 10.0.0.0/8, by which hosts reach each other.",
    ),
    click.option(
        "--advertise",
        multiple=True,
        metavar="HOST=ADDRESS",
        help="The address at which others reach a host.",
    ),
    click.option(
        "--dry-run", is_flag=True, help="Show the commands and places of ranks; start none."
    ),
]


def with_hosts(
    options: Options,
    via: str,
    hosts: str | None,
    hostfile: Path | None,
    advertise: Sequence[str],
) -> Options:
    """The options with the hosts that were named, and as many ranks as they have slots if -n says nothing.

    Raises Refusal for what contradicts itself.
    """
    if hosts is not None and hostfile is not None:
        raise Refusal("-H and --hostfile both name the hosts: give one of them")
    if hosts is None and hostfile is None and via != "slurm":
        if via != "auto":
            raise Refusal(
                f"--via {via} starts ranks on other hosts: name them with -H or --hostfile"
            )
        if options.interface or options.remote_python or advertise:
            raise Refusal(
                "--interface, --remote-python and --advertise are for several hosts: give -H too"
            )
        return options
    context = click.get_current_context()
    try:
        remedy = MORE_SLOTS
        if hosts is not None:
            listed = parse_hosts(hosts)
        elif hostfile is not None:
            listed = read_hostfile(hostfile)
        else:
            listed, remedy = _allocated(), "ask Slurm for more tasks"
        listed = _advertised(listed, advertise)
        if context.get_parameter_source("nprocs") is ParameterSource.DEFAULT:
            options = options.replace(nprocs=sum(host.slots for host in listed))
        fill(listed, options.nprocs, remedy)
    except LaunchError as error:
        raise Refusal(str(error), error.code) from None
    options = options.replace(hosts=tuple(listed), via=_VIA[via])
    chosen = context.get_parameter_source("scheme")
    if not options.is_local and options.scheme == "unix" and chosen is not ParameterSource.DEFAULT:
        raise Refusal("--unix is for one host: leave it out with -H")
    return options


def _allocated() -> list[ListedHost]:
    """The nodes of the allocation of Slurm in which this command runs; raises Refusal."""
    from orcalike.environments.slurm import find_allocation
    from orcalike.errors import OrcalikeError

    try:
        nodes = find_allocation(os.environ)
    except OrcalikeError as error:
        raise Refusal(f"--via slurm: {error}; name the hosts with -H or --hostfile") from None
    if nodes is None:
        raise Refusal(
            "--via slurm: this is no allocation of Slurm (SLURM_JOB_NODELIST is not set): run it in one, as "
            "`salloc -N 2 -n 8 orcalike run --via slurm PROG` or in a script for sbatch; or name the "
            "hosts with -H or --hostfile"
        )
    return [ListedHost(node.name, node.tasks, cores=node.cores) for node in nodes]


def _advertised(listed: list[ListedHost], advertise: Sequence[str]) -> list[ListedHost]:
    """The hosts with the addresses that `--advertise` gives them; raises Refusal."""
    by_name = {host.name: host for host in listed}
    for text in advertise:
        name, equals, address = text.partition("=")
        if not equals or not address or name not in by_name:
            raise Refusal(f"--advertise {text}: write HOST=ADDRESS, of one of {', '.join(by_name)}")
        address = parse_address(address, f"--advertise {text}: {address!r}")
        by_name[name] = by_name[name].replace(advertise=address)
    return list(by_name.values())


def show_commands(options: Options) -> None:
    """Print what would be started where."""
    counts = [options.nprocs]
    listed = list(options.hosts)
    if listed:
        counts = fill(listed, options.nprocs)
    else:
        listed = [ListedHost("localhost", options.nprocs)]
    first = 0
    for host, count in zip(listed, counts, strict=True):
        ranks = " ".join(map(str, range(first, first + count))) or "none"
        first += count
        here = is_this_host(host.name)
        command = "started here"
        if not here:
            command = shlex.join(host_command(options.via, host, options.remote_python))
        click.echo(f"{command}   # {host.name}: ranks {ranks}")
    if not options.is_local:
        click.echo("# key, program and variables of the run follow on standard input")
