"""`orcalike slurm script`: a file for `sbatch` that runs a program as one group."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import PurePath

import click

from orcalike.cli.common import Integer

_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks={tasks}
#SBATCH --time={time}
#SBATCH --output=%x-%j.out
# Submit it with `sbatch FILE`. Partition, account and memory are your site's: add lines such as
# #SBATCH --partition=NAME
{key}
# Each task is a rank: they find each other by the variables of this step, and rank 0 works too.
# --kill-on-bad-exit ends all tasks when one fails, as `orcalike run` does; leave it out to go on.
export PYTHONHASHSEED=0  # one for all, for operations that iterate over sets of strings
exec srun --kill-on-bad-exit=1 {command}
"""

_KEY = """
# Over several nodes connections are encrypted, under a key that every node must have: run `orcalike keygen`
# once, and copy the file to each node, with mode 0600, if they share no home directory.
key="${ORCALIKE_KEY_FILE:-${XDG_CONFIG_HOME:-$HOME/.config}/orcalike/key}"
if [ ! -r "$key" ]; then
    echo "no key at $key: make it with: orcalike keygen" >&2
    exit 77
fi
"""


@click.group(short_help="Write what Slurm needs to run a program.")
def slurm() -> None:
    """Write what Slurm needs to run a program as one group.

    \b
    orcalike slurm script -N 4 -n 64 prog.py > job.sh
    sbatch job.sh

    At a prompt nothing is needed: srun -N 4 -n 64 python prog.py
    """


@slurm.command(
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Print a file for sbatch.",
)
@click.option(
    "-N",
    "--nodes",
    type=Integer(min=1),
    default=1,
    show_default=True,
    help="How many nodes.",
)
@click.option(
    "-n",
    "--ntasks",
    type=Integer(min=1),
    help="How many ranks, over all nodes; one for each node if it is left out.",
)
@click.option(
    "-t", "--time", default="01:00:00", show_default=True, help="Slurm's limit for the job."
)
@click.option("--job-name", metavar="NAME", help="The job's name; else that of the program.")
@click.option(
    "--python",
    metavar="PATH",
    default=sys.executable,
    help="The interpreter on the nodes; else the one that runs this command.",
)
@click.argument("program", metavar="PROG")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def script(
    program: str,
    arguments: tuple[str, ...],
    nodes: int,
    ntasks: int | None,
    time: str,
    job_name: str | None,
    python: str,
) -> None:
    """Print a file for sbatch that runs PROG as one group: short, and made to be read and changed.

    \b
    orcalike slurm script -N 4 -n 64 prog.py > job.sh
    orcalike slurm script -n 8 -t 10:00 prog.py --cities 14 > job.sh
    sbatch job.sh
    """
    tasks = ntasks or nodes
    if tasks < nodes:
        raise click.BadParameter(
            f"{tasks} tasks cannot be on {nodes} nodes: one each at the least", param_hint="'-n'"
        )
    name = job_name or PurePath(program).stem
    for option, text, form in (
        ("'--job-name'", name, r"[\w.+-]+"),
        ("'--time'", time, r"[\d:-]+|infinite|UNLIMITED"),
    ):
        if not re.fullmatch(form, text, re.ASCII):
            raise click.BadParameter(f"{text!r}: Slurm would not take it", param_hint=option)
    click.echo(
        _SCRIPT.format(
            name=name,
            nodes=nodes,
            tasks=tasks,
            time=time,
            key=_KEY if nodes > 1 else "",
            command=shlex.join([python, program, *arguments]),
        ),
        nl=False,
    )
