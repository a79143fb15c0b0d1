"""`orcalike doctor`: whether this machine has what orcalike needs."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import resource
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import click

from orcalike._version import __version__
from orcalike.cli.common import echo_json
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.job import FILES_OF_RANK, Options, files_needed
from orcalike.launcher.local_host import cores
from orcalike.launcher.runtime_folders import runtime_base
from orcalike.transport.drivers.record_cipher import why_not_quick
from orcalike.transport.wording import counted

PACKAGE = Path(__file__).parent.parent
FILES_MIN = 256


class Finding(NamedTuple):
    """What one check found."""

    status: Literal["ok", "warn", "fail"]
    text: str


@click.command(short_help="Check what this machine offers.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def doctor(as_json: bool) -> None:
    """Check Python, the compiled modules, limits, and the ways to communicate.

    Exit code 1 if something that orcalike needs is missing.
    """
    findings = [finding for check in CHECKS for finding in check()]
    if as_json:
        echo_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            click.echo(f"{finding.status:<4}  {finding.text}")
    if any(finding.status == "fail" for finding in findings):
        raise click.exceptions.Exit(1)


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    kind = platform.python_implementation()
    good = kind == "CPython" and platform.system() == "Linux"
    yield Finding(
        "ok" if good else "warn",
        f"orcalike {__version__} · {kind} {version} · {platform.system()} {platform.release()}"
        + ("" if good else " (made for CPython on Linux)"),
    )


def _packages() -> Iterator[Finding]:
    for name in ("msgpack", "click", "rich"):
        yield _package(name, "fail", "pip install it")
    yield _package(
        "uvloop", "warn", "orca.run uses asyncio's own loop; pip install orcalike[uvloop]"
    )
    encrypts = _package(
        "cryptography", "warn", "there is no TCP without it; pip install orcalike[net]"
    )
    yield encrypts
    if encrypts.status == "ok":
        yield _short_records()


def _short_records() -> Finding:
    """What seals most records of a TCP connection."""
    lacks = why_not_quick()
    if not lacks:
        version = getattr(importlib.import_module("nacl"), "__version__", "")
        return Finding("ok", f"short records over TCP: by libsodium, of PyNaCl {version}".rstrip())
    return Finding("warn", f"short records over TCP: by cryptography, which is slower: {lacks}")


def _package(name: str, otherwise: Literal["warn", "fail"], remedy: str) -> Finding:
    try:
        importlib.import_module(name)
        return Finding("ok", f"{name} {importlib.metadata.version(name)}")
    except ImportError as error:
        return Finding(otherwise, f"{name}: {error}: {remedy}")


def _compiled_modules() -> Iterator[Finding]:
    """Each compiled module has a .pyi, which is installed with it."""
    names = sorted(
        f"orcalike.{part}.{stub.relative_to(PACKAGE / part).with_suffix('')}".replace("/", ".")
        for part in ("runtime", "transport")
        for stub in (PACKAGE / part).rglob("*.pyi")
    )
    broken = 0
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            broken += 1
            yield Finding("fail", f"{name}: {error}: build it with make, or install again")
    if not broken:
        yield Finding("ok", f"{len(names)} compiled modules")


def _machine() -> Iterator[Finding]:
    count = cores()
    yield Finding("ok", counted(count, "core"))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    ranks = max(0, files - files_needed(Options(program="", nprocs=0))) // FILES_OF_RANK
    yield Finding(
        "ok" if files >= FILES_MIN else "warn",
        f"ulimit -n {files}: enough for about {counted(ranks, 'rank')} under one launcher",
    )
    shared = Path("/dev/shm")
    if shared.is_dir() and os.access(shared, os.W_OK):
        yield Finding("ok", f"/dev/shm {shutil.disk_usage(shared).free / 2**30:.1f} GiB free")
    else:
        yield Finding("warn", "/dev/shm is not writable: shared memory cannot be used")


def _launcher() -> Iterator[Finding]:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        yield Finding("fail", f"pidfd_open: {error.strerror}: orcalike run needs Linux 5.3")
    try:
        base = runtime_base()
    except LaunchError as error:
        yield Finding("fail", str(error))
        return
    yield Finding("ok", f"runtime directory {base}")
    with tempfile.TemporaryDirectory(dir=base) as directory:
        address = str(Path(directory) / "doctor")
        yield _try_socket("Unix sockets", socket.AF_UNIX, address)


def _loopback() -> Iterator[Finding]:
    yield _try_socket("TCP on 127.0.0.1", socket.AF_INET, ("127.0.0.1", 0))


def _try_socket(what: str, family: int, address: str | tuple[str, int]) -> Finding:
    """Connect to a socket of this process, and send a byte through."""
    try:
        with socket.socket(family) as listener, socket.socket(family) as client:
            listener.bind(address)
            listener.listen()
            client.settimeout(2.0)
            client.connect(listener.getsockname())
            server, _ = listener.accept()
            with server:
                server.sendall(b"x")
                client.recv(1)
    except OSError as error:
        return Finding("fail", f"{what}: {error}")
    return Finding("ok", what)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python,
    _packages,
    _compiled_modules,
    _machine,
    _launcher,
    _loopback,
)
