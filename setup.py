"""Compiles every .pyx under orcalike/; all else is in pyproject.toml."""

import gc
import os
import platform
from pathlib import Path

from Cython.Build import cythonize
from Cython.Build.Dependencies import create_dependency_tree
from setuptools import Extension, setup

DEBUG = bool(os.environ.get("ORCALIKE_DEBUG"))
SANITIZE = bool(os.environ.get("ORCALIKE_SANITIZE"))  # for tests.fuzz: AddressSanitizer, UBSan
JOBS = int(os.environ.get("ORCALIKE_BUILD_JOBS", "2"))

SANITIZERS = ["-fsanitize=address,undefined"]
COMPILE = ["-O1", "-fno-omit-frame-pointer", *SANITIZERS] if SANITIZE else ["-O2"]
if DEBUG or SANITIZE:
    COMPILE.append("-DORCALIKE_CHECKED")  # what compiled modules assert about themselves
if platform.libc_ver()[0] == "glibc":  # which keeps room for the few words that are a thread's own
    COMPILE.append("-ftls-model=initial-exec")  # so that no function is called to find them
COMPILE += ["-g" if DEBUG else "-g1" if SANITIZE else "-g0", "-Wall", "-Wno-unused-function"]
COMPILE.append("-Werror=overflow")  # a constant of Cython that does not fit its variable

# No invocation goes through these: compiled with less effort, in two thirds of the time.
SELDOM_RUN = {
    "orcalike.runtime.audit",
    "orcalike.runtime.left",
    "orcalike.transport.degree",
    "orcalike.transport.drivers.heartbeat",
    "orcalike.transport.drivers.listener",
    "orcalike.transport.drivers.partial",
    "orcalike.transport.drivers.simdriver",
}

# Next to nothing of a syntax tree is garbage, and to look for it takes a third of Cython's time.
gc.set_threshold(200_000)

RING = sorted(map(str, Path("orcalike/transport/ring").glob("*.h")))
TREE = create_dependency_tree(quiet=True)


def depends_of(path: Path) -> list[str]:
    """The headers that a module is compiled with, also by what it cimports: Cython knows none in other folders."""
    files = TREE.all_dependencies(str(path))
    includes = any('"ring/' in Path(file).read_text(encoding="utf-8") for file in files)
    return RING if includes else []


def modules() -> list[Extension]:
    """One extension for each .pyx, named by its import path (glob does not follow links)."""
    found = sorted(Path(root) / file for top in ("orcalike/runtime", "orcalike/transport")
                   for root, _, files in os.walk(top) for file in files
                   if file.endswith(".pyx"))  # fmt: skip
    named = {str(path.with_suffix("")).replace("/", "."): path for path in found}
    assert named.keys() >= SELDOM_RUN, SELDOM_RUN - named.keys()
    return [
        Extension(
            name,
            [str(path)],
            include_dirs=["orcalike/runtime", "orcalike/transport"],
            depends=depends_of(path),
            extra_compile_args=[*COMPILE, "-O1"] if name in SELDOM_RUN else COMPILE,
            extra_link_args=SANITIZERS if SANITIZE else [],
        )
        for name, path in named.items()
    ]


setup(
    ext_modules=cythonize(
        modules(),
        build_dir="build",
        annotate=DEBUG,
        nthreads=JOBS,
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "binding": False,
            "embedsignature": False,
            "auto_pickle": False,
        },
    ),
    options={"build_ext": {"parallel": JOBS}},
)
