"""What is wrong with a host, in words that say what to do."""

from __future__ import annotations

import errno
import re
import shlex
import sys
from collections.abc import Mapping, Sequence

from orcalike._version import __version__
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.greeting import HostReport
from orcalike.launcher.host_list import for_ssh
from orcalike.launcher.host_report import program_digest
from orcalike.launcher.run_plan import RunPlan

UNREACHABLE, USAGE = 69, 2
_SSH_FAILED, _NO_COMMAND, _NOT_EXECUTABLE = 255, 127, 126

#: Why a command here cannot be started that is no program.
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC)

#: What csh says of a program that it cannot run, with exit code 1.
_OF_CSH = ("Command not found", "Permission denied")
_NO_ORCALIKE = re.compile(r"No module named '?orcalike\b")
#: What ssh says when sshd has dropped a connection among too many: worth another try.
_DROPPED = ("kex_exchange_identification", "Connection reset by", "Connection closed by")


def explain(host: str, command: Sequence[str], returncode: int, said: str) -> tuple[str, bool]:
    """(why a host's agent has not answered, whether another try may do)."""
    python = command[-4] if len(command) > 4 else "python"
    said = said or "it said nothing"
    if returncode in (_NO_COMMAND, _NOT_EXECUTABLE) or _is_not_there(python, said):
        text = (
            f"host {host} has no interpreter {python} ({said}): "
            "say where it is with --remote-python PATH"
        )
        return text, False
    if returncode == _SSH_FAILED:
        again = any(each in said for each in _DROPPED)
        return f"cannot reach host {host}: {said}{_hint(host, said)}", again
    if _NO_ORCALIKE.search(said):
        text = (
            f"host {host} has no orcalike for {python} ({said}): install it there, or say which "
            "interpreter has it with --remote-python PATH"
        )
        return text, False
    text = f"host {host}: the agent ended with exit code {returncode}: {said}"
    if returncode < 0:  # it was given up
        text = f"host {host} does not answer as an agent: {said}"
    return text + (_agent_hint(python, said) or _try(host, command)), False


def cannot_start(program: str, error: OSError) -> str:
    """Why the command that reaches a host cannot be started here."""
    if error.errno in _NO_PROGRAM:
        remedy = "install it, or start the agents by another one: --via, ORCALIKE_SSH"
    else:
        remedy = "raise the limits (ulimit -n, ulimit -u)"
    return f"{program}: {error.strerror}; {remedy}"


def _is_not_there(python: str, said: str) -> bool:
    """Whether csh has found no such interpreter: it has no exit code for that."""
    program = python.strip("'")  # as it was quoted for a shell
    return any(f"{program}: {trouble}" in said for trouble in _OF_CSH)


def _try(host: str, command: Sequence[str]) -> str:
    """What to type, to see what is wrong."""
    *start, python, _, _, _ = command
    if "--" in start:  # by ssh: its options matter less than what can be read
        return f"; try: ssh {for_ssh(host)} {python} -m orcalike --version"
    return f"; try: {shlex.join([*start, python])} -m orcalike --version"


def _agent_hint(python: str, said: str) -> str:
    if "orcalike agent: " in said:  # it has not understood this launcher: they differ
        return f"; install the same version on all hosts: this one has orcalike {__version__}"
    if "nknown option" in said:  # Python knows -P since 3.11
        return f"; {python} is older there: say which interpreter is the same with --remote-python PATH"
    return ""


def _hint(host: str, said: str) -> str:
    if "Host key verification failed" in said:
        return f"; accept its key once: ssh {for_ssh(host)} true"
    if "Permission denied" in said:
        return "; ssh must let you in without a password: ssh-copy-id, or an agent with your key"
    if "resolve hostname" in said:
        return "; check its name, in -H, the hostfile and ~/.ssh/config"
    return f"; try: ssh {for_ssh(host)} true"


def compare(plan: RunPlan, reports: Mapping[str, HostReport]) -> None:
    """Raise LaunchError if a host cannot take part in the run, or has another program."""
    python = "{}.{}".format(*sys.version_info)
    program = program_digest(plan)
    for name, report in reports.items():
        if report.version != __version__:
            raise LaunchError(
                f"host {name} has orcalike {report.version}, and this one {__version__}: "
                "install the same version on all hosts",
                UNREACHABLE,
            )
        if report.python != python:
            raise LaunchError(
                f"host {name} has Python {report.python}, and this one {python}: say which "
                "interpreter is the same with --remote-python PATH",
                UNREACHABLE,
            )
        if report.trouble:
            raise LaunchError(f"host {name}: {report.trouble}", UNREACHABLE)
        if not report.directory:
            raise LaunchError(
                f"host {name} has no directory {plan.directory}: name one that each host has with -C",
                USAGE,
            )
        if report.program is None and not plan.module:
            raise LaunchError(
                f"host {name} has no program {plan.program} in {plan.directory}: copy it there "
                "(rsync, a shared file system), or say where it is with -C",
                USAGE,
            )
        if report.program != program:
            raise LaunchError(
                f"the program {plan.program} is another one on host {name} than on this host: copy it "
                "there (rsync, a shared file system)",
                USAGE,
            )
