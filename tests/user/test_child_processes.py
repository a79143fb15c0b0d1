"""What a program starts itself: by `fork`, by `multiprocessing`, from a rank; and worlds of others."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.lib.warm import WarmCli, python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lib.command import Cli


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


PROGRAM = """
    import multiprocessing
    from dataclasses import dataclass

    import orcalike as orca


    @orca.register
    @dataclass
    class Note:
        text: str


    @orca.shared
    class Board:
        def __init__(self):
            self.notes = []

        @orca.write
        def put(self, note):
            self.notes.append(note)

        @orca.read
        def texts(self):
            return sorted(note.text for note in self.notes)


    @orca.atomic
    def put_both(one, other, note):
        one.put(note)
        other.put(note)


    def work(address, number):
        with orca.join(seeds=address) as group:
            board, other = group.share(Board, "board"), group.share(Board, "other")
            board.put(Note(str(number)))
            put_both(board, other, Note("both"))


    if __name__ == "__main__":
        how, directory = sys.argv[1:]
        context = multiprocessing.get_context(how)
        listen = f"unix:{directory}/group"
        with orca.join() if rank >= 0 else orca.join(listen=listen) as group:
            board, other = group.share(Board, "board"), group.share(Board, "other")
            if group.rank == 0:
                children = [context.Process(target=work, args=(group.address, n)) for n in (1, 2)]
                for child in children:
                    child.start()
                for child in children:
                    child.join()
                print(how, [child.exitcode for child in children], board.texts(), len(other.texts()))
"""


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_a_program_and_what_multiprocessing_starts(cli: Cli, tmp_path: Path, how: str) -> None:
    """Its classes are the same in each process, whichever name `multiprocessing` gives its module."""
    ended = subprocess.run(
        [sys.executable, cli.write(PROGRAM), how, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=cli.deadline,
    )
    assert ended.stdout == f"{how} [0, 0] ['1', '2', 'both', 'both'] 2\n", ended.stderr


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_a_rank_and_what_multiprocessing_starts(cli: Cli, tmp_path: Path, how: str) -> None:
    ended = cli.run("-n", "2", "--no-prefix", cli.write(PROGRAM), how, str(tmp_path))
    assert ended.stdout == f"{how} [0, 0] ['1', '2', 'both', 'both'] 2\n", ended.stderr


CHILD = """
    import logging
    import subprocess

    import orcalike as orca

    logging.basicConfig()
    if sys.argv[1:]:
        with orca.join() as group:
            print("child", group.size, group.rank, group.address == "")
    else:
        with orca.join() as group:
            if group.rank == 0:
                subprocess.run([sys.executable, __file__, "child"], check=True)
                if (pid := os.fork()) == 0:
                    with orca.join() as own:
                        print("forked", own.size, own.rank, flush=True)
                    os._exit(0)
                os.waitpid(pid, 0)
            print("rank", group.size)
            group.barrier()
"""


def test_a_ranks_child_is_no_rank(cli: Cli) -> None:
    """It does not ask for the rank's place, and says that it has a group of its own."""
    ended = cli.run("-n", "2", "--no-prefix", cli.write(CHILD))
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == ["child 1 0 True", "forked 1 0", "rank 2", "rank 2"]
    assert ended.stderr.count("was started by rank 0, and is no rank") == 2


ALONE = """
    import orcalike as orca

    with orca.join(size=int(sys.argv[1]) if sys.argv[1:] else None) as group:
        print("size", group.size)
        group.barrier()
"""
WORLDS = {
    "srun": {
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": "1",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_STEP_NODELIST": "n[1-2]",
    },
    "mpiexec (Open MPI)": {
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "4",
        "PMIX_NAMESPACE": "x@1",
    },
    "torchrun": {
        "TORCHELASTIC_RUN_ID": "x",
        "MASTER_ADDR": "127.0.0.1",
        "RANK": "1",
        "WORLD_SIZE": "4",
    },
}
#: Their variables do not say how the processes find each other.
UNMET = {
    "mpiexec": {"PMI_RANK": "1", "PMI_SIZE": "4"},
    "mpiexec (MVAPICH)": {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "4"},
}


@pytest.mark.parametrize("launcher", WORLDS | UNMET)
def test_the_world_of_another_launcher_is_no_group_of_one(cli: Cli, launcher: str) -> None:
    """Each would end well, with a result that it has from itself alone."""
    program = cli.write(ALONE)
    found = WORLDS.get(launcher, {}) and WORLDS[launcher] | {"ORCALIKE_DETECT": "off"}
    variables = found or UNMET[launcher]

    def run(*arguments: str, **world: str) -> subprocess.CompletedProcess[str]:
        return python(program, *arguments, env=os.environ | world)

    refused = run(**variables)
    assert refused.returncode == 1
    assert f"process 1 of 4 that {launcher} started" in refused.stderr
    assert "orcalike run -n 4" in refused.stderr
    assert run("1", **variables).stdout == "size 1\n"
    alone = {name: value.replace("4", "1") for name, value in variables.items()}
    alone |= {name: "0" for name, value in variables.items() if value == "1"}
    assert run(**alone).stdout == "size 1\n"


@pytest.mark.parametrize("launcher", WORLDS | UNMET)
def test_orcalike_run_in_each_process_of_a_world_is_refused(
    cli: Cli, launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would run the whole program; only if that is meant it is done."""
    for name, value in (WORLDS | UNMET)[launcher].items():
        monkeypatch.setenv(name, value)
    program = cli.write(ALONE)
    if launcher in WORLDS:
        refused = cli.run("-n", "2", program)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"process 1 of 4 that {launcher} has started" in refused.stderr
        monkeypatch.setenv("ORCALIKE_DETECT", "off")
    ended = cli.run("-n", "2", "--no-prefix", program)
    assert ended.stdout == "size 2\nsize 2\n", ended.stderr
