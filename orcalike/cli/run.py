"""`orcalike run`: start a program on several processes, of this machine or of several."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
from click.core import ParameterSource

from orcalike.cli.common import Integer, Refusal, did_you_mean, duration
from orcalike.cli.interrupt import ended_at_once
from orcalike.cli.run_hosts import HOST_OPTIONS, show_commands, with_hosts
from orcalike.launch_protocol.environment import SHARED_ORDER, SHARED_ORDER_MOST
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.job import Options
from orcalike.launcher.local_host import cores
from orcalike.launcher.run_plan import SequencerPlace

_PYTHON = re.compile(r"(python|pypy)[\d.]*")

F = TypeVar("F", bound=Callable[..., Any])


def processes(text: str | int) -> int:
    """A number of processes, an option's type; `auto` and `cpu` are the number of cores.

    Raises click.BadParameter if it is none of these.
    """
    if text in ("auto", "cpu"):
        return cores()
    number = int(text) if str(text).isdecimal() else 0
    if number < 1:
        raise click.BadParameter(f"{text!r} is not a number of processes, auto or cpu")
    return number


_OPTIONS = [
    click.option(
        "-n",
        "-np",
        "--nprocs",
        type=processes,
        metavar="N|auto|cpu",
        default="auto",
        show_default=True,
        help="How many processes; auto and cpu: one for each core.",
    ),
    click.option(
        "--unix",
        "scheme",
        flag_value="unix",
        default="unix",
        help="Over Unix sockets (the default).",
    ),
    click.option("--tcp", "scheme", flag_value="tcp", help="Over TCP on the loopback interface."),
    click.option(
        "--sequencer",
        type=click.Choice(["witness", "rank"]),
        help="Order the writes by a process of its own, or by the oldest rank. Without it ranks on this "
        "host order them in shared memory; a witness does over --tcp, over hosts, and for many.",
    ),
    click.option(
        "--stack",
        metavar="STACK",
        help="The layers of all groups, as PACK:XFER:TOTAL:MBRSHIP:COM:unix (orcalike stacks).",
    ),
    click.option(
        "--layer",
        "layers",
        multiple=True,
        metavar="MODULE:CLASS",
        help="Make a layer of the program's own known, so that STACK may use it.",
    ),
    click.option(
        "--timeout",
        type=duration,
        metavar="DURATION",
        help="Stop after DURATION (e.g. 10m) and print every rank's stack.",
    ),
    click.option(
        "--grace",
        type=duration,
        metavar="DURATION",
        default="5s",
        show_default=True,
        help="How long a rank may take to exit before the next, stronger signal.",
    ),
    click.option(
        "--keep-going",
        is_flag=True,
        help="When a rank fails, show it, and let the others go on.",
    ),
    click.option(
        "--restart",
        type=Integer(min=0, max=1000),
        default=0,
        metavar="K",
        help="Start a rank that fails again, up to K times each rank, also if all fail at once.",
    ),
    click.option("--no-prefix", is_flag=True, help="Show lines without the rank."),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colored ranks; auto: on a terminal (NO_COLOR, FORCE_COLOR).",
    ),
    click.option(
        "-x",
        "--env",
        multiple=True,
        metavar="K[=V]",
        help="Set a variable for the ranks, or check that it is set.",
    ),
    click.option(
        "-C",
        "--chdir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Run in this directory, on each host.",
    ),
    click.option("--seed", type=Integer(min=0), envvar="ORCALIKE_SEED", help="The run's seed."),
    click.option("-q", "--quiet", is_flag=True, help="No startup line, no closing line."),
    *HOST_OPTIONS,
]


def run_options(command: F) -> F:
    """The options of a run, for each verb that starts one."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Run a program on several processes.",
)
@run_options
@click.option("-m", "--module", is_flag=True, help="PROG is a module's name, as in python -m.")
@click.argument("program", metavar="PROG")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def run(program: str, arguments: tuple[str, ...], module: bool, **options: Any) -> None:
    """Run PROG on several processes, of this machine or of several, that form one group.

    Each line of output is marked with the rank that printed it. If a rank fails, its traceback
    is shown, the others are stopped, and its exit code is the command's. With --keep-going the
    others go on, with --restart the rank is started again. Ctrl-C ends the ranks gracefully, a
    second one at once. kill -USR1 shows what the ranks are doing.

    \b
    orcalike run -n 4 prog.py --prog-option
    orcalike run -n 4 -m package.module
    orcalike run -n 8 --tcp --timeout 10m prog.py
    orcalike run -n 5 --keep-going --restart 3 prog.py
    orcalike run -H alpha:4,beta:4 prog.py
    orcalike run -n 4 --stack PACK:STABLE:XFER:TOTAL:MBRSHIP:COM:unix prog.py

    \b
    Exit codes: the first failing rank's own (128 + S for signal S), 2 usage,
    124 time limit, 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM, 69 a host cannot be
    reached or is lost, 70 it could not start, or the witness died, 73 the
    output cannot be written, 74 more members lost than the resilience degree
    covers, 77 no key for --via, 141 nothing reads the output. With
    --keep-going: 0 if any rank ended with 0, else the first failing rank's
    own.
    """
    if click.get_current_context().get_parameter_source("nprocs") is ParameterSource.DEFAULT:
        _note_number_of_processes(program, arguments)
    start(program, arguments, module=module, **options)


def _check_alone() -> None:
    """Refuse to be one of several launchers, each of which would run the whole program."""
    from orcalike.environments.finding import find_world, is_off
    from orcalike.errors import OrcalikeError

    try:
        world = None if is_off() else find_world()
    except OrcalikeError as error:
        raise Refusal(str(error)) from None
    if world is not None and "ORCALIKE_RANK" not in os.environ:
        raise Refusal(
            f"this is process {world.rank} of {world.size} that {world.launcher} has started: each would "
            f"run the whole program. Start the program itself with {world.launcher.partition(' ')[0]}, "
            "which needs no `orcalike run`; or set ORCALIKE_DETECT=off if each is to have a run of its own"
        )


def _note_number_of_processes(program: str, arguments: Sequence[str]) -> None:
    """Say so if a number of processes stands after the program, which gets it then."""
    for option, value in itertools.pairwise(arguments):
        if option in ("-n", "-np", "--nprocs") and (value.isdecimal() or value in ("auto", "cpu")):
            click.echo(
                f"orcalike: {option} {value} stands after {program}, so it is passed to the "
                f"program; for {value} processes: orcalike run {option} {value} {program} ...",
                err=True,
            )


@ended_at_once()  # until the launcher has handlers of its own
def start(
    program: str,
    arguments: Sequence[str],
    *,
    module: bool,
    no_prefix: bool,
    color: str,
    env: Sequence[str],
    chdir: Path | None,
    sequencer: SequencerPlace | None,
    stack: str | None,
    via: str,
    hosts: str | None,
    hostfile: Path | None,
    advertise: Sequence[str],
    dry_run: bool,
    **options: Any,
) -> None:
    """Start the launcher with the options of `run_options`, and exit with its code."""
    _check_alone()
    if module:
        _check_module(program, chdir or _current_folder())
    else:
        _check_file(program, chdir or _current_folder())
    from orcalike.launcher.engine import launch

    asked = Options(
        program=program,
        module=module,
        arguments=tuple(arguments),
        prefix=not no_prefix,
        color=None if color == "auto" else color == "always",
        environment=_parse_environment(env),
        directory=chdir,
        sequencer=sequencer or "witness",
        **options,
    )
    asked = with_hosts(asked, via, hosts, hostfile, advertise)
    if stack is not None or asked.layers:
        asked = _with_stack(asked, stack, sequencer)
    if stack is None and sequencer is None and _can_share_memory(asked):
        asked = _in_shared_memory(asked.replace(stack=SHARED_ORDER))
    try:
        if dry_run:
            show_commands(asked)
            return
        code = launch(asked)
    except LaunchError as error:
        raise Refusal(str(error), error.code) from error
    sys.exit(code)


def _can_share_memory(options: Options) -> bool:
    """Whether the order is in shared memory if nothing else is asked for (ADR-23)."""
    is_near = options.is_local and options.scheme == "unix"
    return is_near and options.nprocs <= SHARED_ORDER_MOST


def _with_stack(options: Options, stack: str | None, sequencer: SequencerPlace | None) -> Options:
    """The options with the layers of that stack, and its medium; refuses a stack that cannot run."""
    from orcalike.errors import StackError
    from orcalike.launcher.witness import WitnessEndpoint
    from orcalike.session.layers import load_layers
    from orcalike.transport.stacks import name_layers, parse_stack

    try:
        load_layers(options.layers, str(options.program_folder))
        layers = parse_stack(stack, WitnessEndpoint) if stack is not None else []
    except StackError as error:
        raise Refusal(f"--{'stack' if stack else 'layer'}: {error}") from None
    if not layers:
        return options
    medium = layers[-1].medium
    chosen = click.get_current_context().get_parameter_source("scheme")
    if medium == "sim":
        raise Refusal("--stack: COM:sim runs in the simulator only: write COM:unix or COM:tcp")
    if chosen is not ParameterSource.DEFAULT and medium != options.scheme:
        raise Refusal(f"--stack ends in COM:{medium}, which --{options.scheme} is not")
    scheme: Literal["unix", "tcp"] = "tcp" if medium == "tcp" else "unix"
    options = options.replace(stack=name_layers(layers), scheme=scheme)
    if options.has_layer("RING"):
        _check_over_ring(options, sequencer)
    return _in_shared_memory(options) if options.shares_memory and not sequencer else options


def _check_over_ring(options: Options, sequencer: SequencerPlace | None) -> None:
    """Refuse options for an order that is always in shared memory if they ask for a sequencer, or for hosts."""
    if sequencer == "witness":
        raise Refusal("--sequencer witness: RING has no sequencer: put ORDER in its place")
    if not options.is_local:
        raise Refusal("--stack: RING needs all ranks on one host: put ORDER in its place")


def _in_shared_memory(options: Options) -> Options:
    """The options for an order in shared memory: a witness is there only to keep the state, for ranks that start again."""
    return options.replace(sequencer="witness" if options.restart else "rank")


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise Refusal(
            f"the current directory: {error.strerror}; change to another one, or give -C DIR"
        ) from None


def _check_file(program: str, directory: Path) -> None:
    """Refuse a program that is not a file that can be read."""
    path = directory / program
    if path.is_dir():
        raise Refusal(f"{program!r} is a directory, not a program")
    if not path.exists():
        folder = path.parent
        known = [file.name for file in folder.glob("*.py")] if folder.is_dir() else []
        hint = did_you_mean(path.name, known)
        if not hint and _module_exists(program, directory):
            hint = f"; there is a module of that name: orcalike run -m {program}"
        if _PYTHON.fullmatch(path.name):
            hint = "; orcalike starts Python itself: orcalike run [OPTIONS] PROG.py [ARGS]..."
        raise Refusal(f"there is no program {program!r}{hint}")
    if not os.access(path, os.R_OK):
        raise Refusal(f"{program!r} cannot be read: permission denied")


def _check_module(module: str, directory: Path) -> None:
    """Refuse a module whose package does not exist; the ranks look for what is inside."""
    if not _module_exists(module, directory):
        known = [path.stem for path in directory.iterdir() if path.is_dir() or path.suffix == ".py"]
        raise Refusal(f"no module named {module!r}{did_you_mean(module, known)}")


def _module_exists(module: str, directory: Path) -> bool:
    top = module.partition(".")[0]
    try:
        return bool(
            importlib.machinery.PathFinder.find_spec(top, [str(directory)])
            or importlib.util.find_spec(top)
        )
    except ValueError:  # a name that is no module's, or a module without a spec
        return False


def _parse_environment(settings: Sequence[str]) -> dict[str, str]:
    """What `-x K=V` sets; `-x K` takes the launcher's own value."""
    environment = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            if name not in os.environ:
                raise Refusal(f"-x {name}: {name} is not set; give it a value: -x {name}=VALUE")
            value = os.environ[name]
        environment[name] = value
    return environment
