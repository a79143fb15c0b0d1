"""Run the tests of mutants of Python modules: each in a fork that has pytest imported, and nothing of orcalike.

    python -m tests.campaign.mutants.forks forget-promise no-majority

Prints a line of JSON for each mutant: its name, how pytest ended, and what that printed.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
from importlib.metadata import entry_points

import hypothesis  # noqa: F401 as tests/conftest.py does

from tests.campaign.mutants import load, planted
from tests.lib.command_lines import parser_of

OPTIONS = (
    "--assert=plain",  # else pytest reads the modules of its plugins, and so of orcalike, itself
    "--tb=line",
    *("--noconftest", "-p", "tests.conftest"),  # those of folders import more than their tests need
    *("-q", "-p", "no:cacheprovider"),
)


def main() -> None:
    """Try the mutants that are named, one after the other."""
    parser = parser_of("tests.campaign.mutants.forks", __doc__)
    parser.add_argument("mutants", metavar="MUTANT", nargs="+")
    names = parser.parse_args().mutants
    for plugin in entry_points(group="pytest11"):
        if not plugin.value.startswith("orcalike."):
            plugin.load()
    gc.freeze()  # what is imported stays, and forks need not copy it to look at it
    tests = {mutant.name: mutant.tests for mutant in load()}
    for name in names:
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if not child:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                sys.argv[1:] = [name, "pytest", *OPTIONS, *tests[name]]
                planted.main()
                return
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            print(json.dumps([name, code, output.read().decode(errors="replace")]), flush=True)


if __name__ == "__main__":
    main()
