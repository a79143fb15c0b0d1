"""Hosts on a network of their own, each with a real sshd: for `orcalike run -H`.

The first host is the user's: the launcher runs there, and has an ssh that knows the others by the names
b, c, ... Nothing is installed: sshd comes from its package, unpacked, and has a mount namespace with the
user that it wants. It takes root, `ip`, `unshare`, `dpkg-deb`, an ssh client, and a package registry to
have sshd from; elsewhere a test is skipped, and says why.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from tests.lib.network import Host, hosts
from tests.lib.own_runs import ORCALIKE
from tests.lib.processes import DEADLINE, is_alive, output_of, until
from tests.lib.wall_clock import variables, wall_clock

PACKAGES = ("openssh-server", "libwrap0")
PROGRAMS = ("ssh", "ssh-keygen", "unshare", "mount", "dpkg-deb", "apt-get")
NAMES = "abcdefghijklmnopq"

_SSHD = """
mount -t tmpfs none /run && mkdir /run/sshd && mount --bind {passwd} /etc/passwd || exit 1
LD_LIBRARY_PATH={libraries} exec {sshd} -D -e -f /dev/null -h {key} -o UsePAM=no -o StrictModes=no \\
    -o PermitRootLogin=yes -o AuthorizedKeysFile={public} -o PidFile=none \\
    -o SetEnv="XDG_RUNTIME_DIR={folders} HOST_NAME={name}{variables}"
"""
_SSH = """
Host *
    IdentityFile {key}
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile {known}
    LogLevel ERROR
"""


def unpack_sshd(directory: Path) -> Path:
    """The folder with sshd and its libraries; skips the test if they cannot be had."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"a real sshd needs {', '.join(missing)}")
    root = directory / "root"
    if not (root / "usr/sbin/sshd").exists():
        got = subprocess.run(
            ["apt-get", "download", *PACKAGES],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
        packages = sorted(directory.glob("*.deb"))
        if got.returncode or len(packages) < len(PACKAGES):
            pytest.skip(f"the package of sshd cannot be had: {got.stderr.strip()[-200:]}")
        for package in packages:
            subprocess.run(["dpkg-deb", "-x", package, root], check=True, timeout=DEADLINE)
    return root


#: Counts to 10 in each rank.
COUNTS = """
import orcalike as orca
from orcalike.objects import Counter
with orca.join() as group:
    counter = group.share(Counter, "n")
    for _ in range(10):
        counter.add(1)
    group.barrier()
    print(counter.get(), flush=True)
"""


#: Counts until there is the file that the first argument names, then says how far all came.
STAYS = """
import os
import sys
import time

import orcalike as orca
from orcalike.objects import Counter

with orca.join() as group:
    counter = group.share(Counter, "n")
    group.barrier()
    print("ready", flush=True)
    while not os.path.exists(sys.argv[1]):
        counter.add(1)
        time.sleep(0.05)
    group.barrier()
    print(counter.get() > 0, group.size, flush=True)
    group.barrier()
"""


class SshHosts:
    """The hosts; the first one is the user's own."""

    def __init__(self, network: Sequence[Host], root: Path, directory: Path) -> None:
        self.hosts = dict(zip(NAMES, network, strict=False))
        self.directory = directory
        self.folders = directory / "runs"
        self.folders.mkdir(mode=0o700)
        self._root = root
        self._sshds: dict[str, subprocess.Popen[bytes]] = {}
        self._clocks: dict[str, list[str]] = {}
        """Options of `unshare` for each host that has clocks of its own; and variables there."""
        self._variables: dict[str, str] = {}
        for name in ("host_key", "key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True
            )
        config = _SSH.format(key=directory / "key", known=directory / "known")
        for name, host in self.hosts.items():
            config += f"Host {name}\n    HostName {host.address}\n"
        (directory / "config").write_text(config)
        for name in list(self.hosts)[1:]:
            self.start_sshd(name)

    def set_shell(self, name: str, shell: str, home: str = "/root") -> None:
        """Have root log in there with this shell, from the next time on."""
        lines = Path("/etc/passwd").read_text().splitlines()
        others = [line for line in lines if not line.startswith("root:")]
        root = f"root:x:0:0:root:{home}:{shell}"
        sshd = "sshd:x:109:65534::/run/sshd:/usr/sbin/nologin"
        # Written in its own file: the host has that one mounted.
        (self.directory / f"passwd-{name}").write_text("\n".join([root, *others, sshd, ""]))

    def set_clocks(self, name: str, *, wall: int, since_boot: int) -> None:
        """Have a host's wall clock off by so many hours, and its monotonic one, from the next session on."""
        self.stop_sshd(name)
        seconds = str(3600 * since_boot)
        self._clocks[name] = ["--time", "--monotonic", seconds, "--boottime", seconds]
        set_off = variables(wall_clock(self.directory), wall)
        self._variables[name] = "".join(f" {key}={value}" for key, value in set_off.items())
        self.start_sshd(name)

    def stop_sshd(self, name: str) -> None:
        """Have none on a host."""
        self._sshds[name].kill()
        self._sshds.pop(name).wait()

    def start_sshd(self, name: str) -> None:
        """Have an sshd on a host."""
        self.set_shell(name, "/bin/sh")
        architecture = f"{os.uname().machine}-linux-gnu"
        libraries = f"{self._root}/lib/{architecture}:{self._root}/usr/lib/{architecture}"
        script = _SSHD.format(
            passwd=self.directory / f"passwd-{name}",
            libraries=libraries,
            sshd=self._root / "usr/sbin/sshd",
            key=self.directory / "host_key",
            public=self.directory / "key.pub",
            folders=self.folders,
            name=name,
            variables=self._variables.get(name, ""),
        )
        log = (self.directory / f"sshd-{name}.log").open("wb")
        with log:
            self._sshds[name] = subprocess.Popen(
                self.hosts[name].command(
                    "unshare", "-m", *self._clocks.get(name, ()), "sh", "-c", script
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(lambda: b"listening" in (self.directory / f"sshd-{name}.log").read_bytes(), "sshd")

    def write(self, source: str) -> str:
        """A program that all hosts have; returns its path."""
        path = self.directory / "prog.py"
        path.write_text(source)
        return str(path)

    def command(self, *arguments: str) -> list[str]:
        """`orcalike ARGUMENTS` on the user's host."""
        environment = [
            f"ORCALIKE_SSH=ssh -F {self.directory / 'config'}",
            f"XDG_RUNTIME_DIR={self.folders}",
        ]
        # The hosts have one /tmp: what others run there is not to be found.
        python = [sys.executable, "-m", "orcalike"] if arguments[0] == "run" else ORCALIKE
        return self.hosts["a"].command("env", *environment, *python, *arguments)

    def shell(self) -> Path:
        """A command that others may use as their ssh."""
        path = self.directory / "shell"
        path.write_text(f'#!/bin/sh\nexec ssh -F {self.directory / "config"} "$@"\n')
        path.chmod(0o700)
        return path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`orcalike run ARGUMENTS` to the end."""
        return subprocess.run(
            self.command("run", *arguments),
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    @contextlib.contextmanager
    def started(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        """`orcalike run ARGUMENTS` under way; killed at the end if it still goes on."""
        command, pipe = self.command("run", *arguments), subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def orcalike(self, *arguments: str) -> str:
        """The stdout of `orcalike ARGUMENTS` on the user's host, which must end well."""
        return output_of(*self.command(*arguments))

    def status(self) -> Any:
        """How the only run stands, by `orcalike status --json`."""
        (run,) = json.loads(self.orcalike("status", "--json"))
        return run

    def sessions(self, name: str) -> list[int]:
        """The processes on a host, but for its sshd that listens."""
        sshd = self._sshds.get(name)
        return [pid for pid in self.hosts[name].processes() if sshd is None or pid != sshd.pid]

    def rest(self) -> list[str]:
        """What runs have left: processes on other hosts or this one, and folders.

        A session of sshd itself, whose other end says nothing, stays for as long as its administrator wants.
        """
        until(self._are_reaped, "what has ended is waited for by its parent")
        commands = [(name, command_of(pid)) for name in self.hosts for pid in self.sessions(name)]
        left = [f"{name}: {command}" for name, command in commands if " sshd: " not in command]
        runs = self.folders / "orcalike"
        return left + (os.listdir(runs) if runs.exists() else [])

    def _are_reaped(self) -> bool:
        return all(is_alive(pid) for name in self.hosts for pid in self.sessions(name))

    def end_rest(self) -> None:
        """Kill what a run has left on the hosts."""
        for name in self.hosts:
            for pid in self.sessions(name):
                if " sshd: " not in command_of(pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folders / "orcalike", ignore_errors=True)

    def close(self) -> None:
        """End each sshd, and its sessions."""
        for name in self._sshds:
            for pid in self.sessions(name):
                if " sshd: " in command_of(pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        for process in self._sshds.values():
            process.send_signal(signal.SIGKILL)
            process.wait()


def lines_until(stream: IO[str], text: str) -> str:
    """What comes until a line with this text; raises AssertionError if none comes."""
    lines: list[str] = []
    while not (lines and text in lines[-1]):
        lines.append(stream.readline())
        assert lines[-1], f"no line with {text!r}: {''.join(lines)}"
    return "".join(lines)


def command_of(pid: int) -> str:
    """The command line of a process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    return f"{pid} {b' '.join(words).decode(errors='replace').strip()}"


@contextlib.contextmanager
def ssh_hosts(count: int, root: Path, directory: Path) -> Iterator[SshHosts]:
    """So many hosts, of which all but the first have an sshd. Fails if a process is left on one."""
    with hosts(count) as network:
        made = SshHosts(network, root, directory)
        try:
            yield made
        finally:
            made.close()
