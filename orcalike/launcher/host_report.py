"""What a host finds out of itself, for the launcher to compare."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from orcalike._version import __version__
from orcalike.launcher.greeting import HostReport
from orcalike.launcher.local_host import cores
from orcalike.launcher.run_plan import RunPlan
from orcalike.transport.wire.digest import blake2b


def report_of(
    plan: RunPlan,
    host: str = "",
    door: str = "",
    addresses: tuple[str, ...] = (),
    trouble: str = "",
) -> HostReport:
    """This host's report for a run; the last four are what it keeps for it, or why it keeps nothing."""
    return HostReport(
        version=__version__,
        python="{}.{}".format(*sys.version_info),
        pid=os.getpid(),
        cores=cores(),
        program=program_digest(plan),
        directory=plan.directory is None or plan.directory.is_dir(),
        host=host,
        door=door,
        addresses=addresses,
        trouble=trouble,
    )


def missing_packages(plan: RunPlan) -> str:
    """What the ranks need here and is not installed, in words that say what to do; "" for nothing."""
    needed = {"msgpack": "orcalike"}
    if plan.scheme == "tcp":
        needed["cryptography"] = "orcalike[net]"
    for package, extra in needed.items():
        if importlib.util.find_spec(package) is None:
            return (
                f"no package {package} for {sys.executable}: pip install '{extra}' there, or say which "
                "interpreter has it with --remote-python PATH"
            )
    return ""


def program_digest(plan: RunPlan) -> str | None:
    """The BLAKE2b digest of the file that the ranks run; None if it cannot be read."""
    directory = plan.directory or Path.cwd()
    path = module_file(plan.program, directory) if plan.module else directory / plan.program
    try:
        return blake2b(path.read_bytes(), digest_size=32).hexdigest() if path else None
    except OSError:
        return None


def module_file(name: str, directory: Path) -> Path | None:
    """The file of a module, as `python -m` finds it in that directory; nothing is imported."""
    search: list[str] | None = [str(directory), *sys.path]
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:count]), search)
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or ())
    if search:
        spec = PathFinder.find_spec(f"{name}.__main__", search)
    return Path(spec.origin) if spec is not None and spec.origin else None
