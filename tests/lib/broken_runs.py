"""A run over hosts of which one part ends or loses its line, and what is left of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.lib.processes import DEADLINE, Stuck, until
from tests.lib.ssh_hosts import SshHosts, command_of

VICTIMS = ("launcher", "agent", "ssh", "sshd", "cable")

#: A process that a rank starts outlives it, unless it is killed; all write where they are.
STAYS = """
import os, signal, subprocess
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("ready", os.environ.get("HOST_NAME", "here"), flush=True)
signal.pause()
"""

LEAVES_MANY_THAT_END = """
import subprocess
shell = "for i in 1 2 3 4 5 6 7 8 9 10; do true & echo $!; done"
text = subprocess.run(["sh", "-c", shell], capture_output=True, check=True).stdout
left = ["/proc/" + pid for pid in text.decode().split()]
while any(map(os.path.exists, left)):
    time.sleep(0.01)
sys.exit(3)
"""
"""What it leaves behind ends while it runs, and it ends itself when that is no process any more."""


@dataclass
class Ended:
    """What came of it."""

    seconds: float = 0.0
    """From the harm until nothing was left."""
    wrong: list[str] = field(default_factory=list)


def break_off(hosts: SshHosts, victim: str, *, down: float = 0.0) -> Ended:
    """Have a run on the hosts b and c lose a part, as it ends or is cut off, and wait until nothing is left.

    A cable is out for `down` seconds or longer; what comes of it is looked at again when it is in.
    """
    program = hosts.directory / "stays.py"
    program.write_text(STAYS)
    ended = Ended()
    with hosts.started("-H", "b,c", str(program)) as run:
        assert run.stdout is not None
        ready = sorted(run.stdout.readline() for _ in range(2))
        if ready != ["[0] ready b\n", "[1] ready c\n"]:
            run.kill()
            wrong = f"it does not begin: {ready} {run.communicate()[1]}"
            until(lambda: hosts.rest() == [], "the end of all")
            return Ended(wrong=[wrong])
        began = time.monotonic()
        HARMS[victim](hosts, run)
        try:
            errors = run.communicate(timeout=DEADLINE)[1]
        except subprocess.TimeoutExpired:
            run.kill()
            ended.wrong.append(f"its launcher does not end: {run.communicate()[1]}")
        else:
            ended.wrong += _of_launcher(victim, run.returncode, errors)
    if victim == "agent":
        _end_own_sessions(hosts)
    try:
        until(lambda: hosts.rest() == [], "the end of all")
    except Stuck:
        ended.wrong.append(f"left: {hosts.rest()}")
        hosts.end_rest()  # the next run is not to blame for it
    ended.seconds = time.monotonic() - began
    ended.wrong += _listened_at(hosts)
    if victim == "cable":
        time.sleep(max(0.0, down - ended.seconds))
        hosts.hosts["c"].mend()
        for host in hosts.hosts.values():  # else the next run may find that there is no route
            host.run("ip", "neigh", "flush", "all")
        ended.wrong += [f"left when the cable is in again: {each}" for each in hosts.rest()]
    return ended


def _listened_at(hosts: SshHosts) -> list[str]:
    """Each listening socket on a host, but that of its sshd."""
    found = []
    for name, host in hosts.hosts.items():
        addresses = [line.split()[3] for line in host.run("ss", "-lntH").splitlines()]
        found += [f"{name} listens at {it}" for it in addresses if not it.endswith(":22")]
    return found


def _of_launcher(victim: str, code: int, errors: str) -> list[str]:
    """What is wrong with how the launcher ends, and with what it says."""
    if victim == "launcher":
        return [] if code == -signal.SIGKILL else [f"the launcher was to be killed: {code}"]
    if code == 69 and re.search(r"rank 1 \(host c, pid \d+\) was lost first", errors):
        return []
    return [f"exit code {code}: {errors}"]


def _end_own_sessions(hosts: SshHosts) -> None:
    """What its ranks have started in sessions of their own is left, as on one host, if an agent is killed."""
    for pid in hosts.sessions("c"):
        if command_of(pid).endswith(" sleep 1000"):
            os.kill(pid, signal.SIGKILL)


def _kill(hosts: SshHosts, host: str, *texts: str, all_of_them: bool = False) -> None:
    """Kill a process, or all, on a host whose command has all of these texts."""
    found = [
        pid for pid in hosts.sessions(host) if all(text in f" {command_of(pid)}" for text in texts)
    ]
    assert found, f"no process on {host} has {texts}"
    for pid in found if all_of_them else found[:1]:
        os.kill(pid, signal.SIGKILL)


Harm = Callable[[SshHosts, subprocess.Popen[str]], None]

HARMS: dict[str, Harm] = {
    "launcher": lambda hosts, run: _kill(hosts, "a", "-m orcalike run"),
    "agent": lambda hosts, run: _kill(hosts, "c", "orcalike.launcher.agent"),
    "ssh": lambda hosts, run: _kill(hosts, "a", " ssh ", " c -- ", all_of_them=True),
    "sshd": lambda hosts, run: _kill(hosts, "c", "sshd: ", all_of_them=True),
    "cable": lambda hosts, run: hosts.hosts["c"].cut(),
}
