"""A program that leaves its group by an exception and goes on: the processes that it had forked have ended by then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.warm import WarmCli, python

PROGRAM = """
import signal
import orcalike as orca
from orcalike.objects import Event, List

@orca.register
def work(group, pids, begun, ever):
    if sys.argv[1:] == ["deaf"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids.append(os.getpid())
    begun.set()
    ever.wait()

def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

if __name__ == "__main__":
    try:
        with orca.join() as group:
            pids, begun = group.share(List, "pids"), group.share(Event, "begun")
            group.fork(work, pids, begun, group.share(Event, "ever"))
            begun.wait()
            pid = pids[0]
            assert is_there(pid)
            raise KeyError
    except KeyError:
        print("goes on", is_there(pid), flush=True)
"""


@pytest.mark.parametrize("worker", ["polite", "deaf"])
def test_none_is_there_when_the_block_has_ended(tmp_path: Path, worker: str) -> None:
    """One that takes no notice of SIGTERM is killed."""
    cli = WarmCli(tmp_path)
    ended = python(cli.write(PROGRAM), worker, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "goes on False\n"), ended.stderr
