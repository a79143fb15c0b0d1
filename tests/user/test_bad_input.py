"""Bad input and what it gets: a clear error that says what to do, and no other process is harmed."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from typing import TYPE_CHECKING

import pytest

from orcalike.launcher import job
from tests.lib.warm import WarmCli, python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lib.command import Cli

SHARED = "import asyncio, random\nimport orcalike as orca\n"
COUNTER = """
@orca.shared
class Counter:
    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self, n: object) -> object:
        self.value += n
        return self.value

    @orca.write
    def reach(self, n: int) -> int:
        return self.value

    @reach.when
    def _(self, n: int) -> bool:
        return self.value >= n
"""


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


def write(cli: Cli, body: str, head: str = SHARED + COUNTER) -> str:
    """A program that has the counter."""
    return cli.write(head + textwrap.dedent(body))


def alone(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that no launcher has started."""
    return python(program, env={**os.environ, **environment})


def run(cli: Cli, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Three ranks."""
    return cli.run("-n3", "-q", *options, program)


def check(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One failure, reported once, with these words, and with no line of orcalike's own source."""
    assert result.returncode == code, result.stderr
    assert result.stderr.count("Traceback") <= 1
    assert not re.search(r'File "[^"]*orcalike/(?!examples)', result.stderr), result.stderr
    assert len(re.findall("^orcalike: ", result.stderr, re.MULTILINE)) == 1
    for word in words:
        assert word in result.stderr


# Classes


DECLARATIONS = {
    "def add(self): self.n += 1": ("C.add is public", "decorate it"),
    "@orca.write\n    async def add(self): pass": ("C.add is async", "`def`"),
    "@orca.write\n    def add(self): yield 1": ("C.add", "generator"),
    "@orca.write\n    def add(self): self.n = time.time()": ("time.time", "orcalike.now()"),
    "@orca.write\n    def add(self): self.n = random.random()": ("random", "orcalike.random()"),
    "@orca.write\n    def add(self): open('x')": ("open",),
}


def test_classes_that_cannot_be_shared(cli: Cli) -> None:
    """Each in one program, which catches what is raised."""
    body = "".join(
        f"try:\n    @orca.shared\n    class C:\n{textwrap.indent(method, ' ' * 8)}\n"
        "except orca.DeclarationError as error:\n    print(repr(str(error)))\n"
        for method in (each.replace("\n    ", "\n") for each in DECLARATIONS)
    )
    program = write(cli, body, SHARED)
    result = alone(program)
    assert result.returncode == 0, result.stderr
    errors = result.stdout.splitlines()
    assert len(errors) == len(DECLARATIONS), errors
    for error, words in zip(errors, DECLARATIONS.values(), strict=True):
        assert all(word in error for word in (f"{program}:", *words)), error


def test_a_class_that_cannot_be_shared_ends_the_program(cli: Cli) -> None:
    method, words = next(iter(DECLARATIONS.items()))
    program = write(cli, f"@orca.shared\nclass C:\n    {method}\n", SHARED)
    check(run(cli, program), 1, "DeclarationError", f"{program}:", *words)
    result = alone(program)
    assert result.returncode == 1
    assert words[0] in result.stderr.splitlines()[-1]


# Arguments and names


def test_an_argument_that_cannot_travel(cli: Cli) -> None:
    program = write(
        cli,
        """
        with orca.join() as group:
            counter = group.share(Counter, "hits")
            if group.rank == 1:
                counter.add({"a": [1, object()]})
            group.barrier()
        """,
    )
    check(run(cli, program), 1, "NotSerializable", 'argument 1 of Counter.add, ["a"][1]', "object")


def test_a_name_that_is_shared_with_another_class(cli: Cli) -> None:
    program = write(
        cli,
        """
        @orca.shared
        class Other:
            pass

        with orca.join() as group:
            group.share(Counter, "hits")
            group.barrier()
            if group.rank == 2:
                group.share(Other, "hits")
            group.barrier()
        """,
    )
    check(run(cli, program), 1, "ClassMismatch", "'hits' is shared as prog:Counter", "prog:Other")


def test_an_operation_that_raises_names_its_line(cli: Cli) -> None:
    program = write(
        cli,
        """
        with orca.join() as group:
            counter = group.share(Counter, "hits")
            if group.rank == 0:
                counter.add("one")
            group.barrier()
        """,
    )
    result = run(cli, program)
    check(result, 1, "TypeError", "in Counter.add of 'hits'", "self.value += n")
    assert result.stderr.index('counter.add("one")') < result.stderr.index("self.value += n")


def test_a_failure_that_is_not_asked_for_is_logged(cli: Cli) -> None:
    program = write(
        cli,
        """
        import logging
        logging.basicConfig()
        with orca.join() as group:
            counter = group.share(Counter, "hits")
            if group.rank == 0:
                counter.add.nowait("one")
            group.barrier()
        """,
    )
    result = run(cli, program)
    assert result.returncode == 0
    assert "add failed, and its outcome was not asked for: TypeError" in result.stderr


# Event loops


def test_a_blocking_call_on_a_running_loop(cli: Cli) -> None:
    program = write(
        cli,
        """
        async def main():
            async with orca.join() as group:
                counter = await group.share.aio(Counter, "hits")
                calls = (
                    lambda: counter.add(1),
                    lambda: counter.reach.nowait(1 << 60).result(),
                    lambda: group.barrier(),
                    lambda: group.fence(),
                )
                for call in calls:
                    try:
                        call()
                    except orca.BlockingInLoop as error:
                        print("refused:", error, flush=True)
                await group.barrier.aio()
                counter.add(1)

        asyncio.run(main())
        """,
    )
    result = run(cli, program)
    check(result, 1, "BlockingInLoop", "await", ".aio(")
    refused = [line for line in result.stdout.splitlines() if "refused:" in line]
    assert len(refused) == 3 * 4
    assert all("await" in line and ".aio(" in line for line in refused), refused


# Ranks that end


def test_a_rank_that_raises_inside_the_block(cli: Cli) -> None:
    program = write(
        cli,
        """
        with orca.join() as group:
            counter = group.share(Counter, "hits")
            if group.rank == 1:
                raise LookupError("mine")
            counter.reach(1)
        """,
    )
    check(run(cli, program), 1, "LookupError: mine", "2 others stopped")


def test_a_rank_that_exits_7_inside_the_block(cli: Cli) -> None:
    program = write(
        cli,
        """
        with orca.join() as group:
            counter = group.share(Counter, "hits")
            if group.rank == 2:
                sys.exit(7)
            counter.reach(1)
        """,
    )
    check(run(cli, program), 7, "rank 2 (pid", "exit code 7", "2 others stopped")


WAYS_TO_BE_BUSY = {
    "guard": "counter.reach(1)",
    "barrier": "group.barrier()",
    "compute": "while True: pass",
    "write": "while True: counter.add(1)",
    "nowait": "while True: counter.add.nowait(1)",
    "fence": "while True: group.fence()",
    "loop": "asyncio.run(waiting(counter))",
}


@pytest.mark.parametrize(
    ("busy", "other", "sequencer"),
    [
        ("guard", "barrier", "witness"),
        ("compute", "write", "witness"),
        ("nowait", "fence", "witness"),
        ("loop", "loop", "witness"),
        ("guard", "fence", "rank"),
    ],
)
def test_a_rank_that_is_killed_ends_the_run(
    cli: Cli, busy: str, other: str, sequencer: str
) -> None:
    """Whatever the others are at: rank 1 at the one, rank 2 at the other."""
    program = write(
        cli,
        f"""
        async def waiting(counter):
            await counter.reach.aio(1 << 60)

        with orca.join() as group:
            counter = group.share(Counter, "hits")
            counter.add(-1 << 40)
            group.barrier()
            if group.rank == 0:
                os.kill(os.getpid(), 9)
            if group.rank == 1:
                {WAYS_TO_BE_BUSY[busy]}
            {WAYS_TO_BE_BUSY[other]}
        """,
    )
    result = cli.run("--sequencer", sequencer, "-n3", "-q", program)
    check(result, 137, "rank 0 (pid", "killed first by SIGKILL", "2 others stopped")


# Joining


JOINS = [
    ("seeds='unix:{directory}/nobody', timeout=0.3", "no answer from unix:{directory}/nobody"),
    (
        "seeds=['tcp:127.0.0.1:9', 'tcp:127.0.0.1:10'], timeout=0.3, key=bytes(32)",
        "tcp:127.0.0.1:10",
    ),
    ("listen='tcp:127.0.0.1:0'", "InsecureConfig: a TCP port is open to every user"),
    ("listen='tcp:127.0.0.1:0', key=b'x'", "key=: a key has 32 bytes"),
    (
        "listen='tcp:127.0.0.1:0', key='secret'",
        "the key secret cannot be read: No such file or directory; it is a file that `orcalike keygen s",
    ),
    ("listen='tcp:0.0.0.0:0'", "InsecureConfig: a TCP port is open to every user"),
    ("seeds='tcp:192.0.2.1:7', timeout=1", "InsecureConfig: a TCP port is open to every user"),
    ("seeds='tcp:node7:7', timeout=1", "InsecureConfig: a TCP port is open to every user"),
    (
        "listen='tcp:127.0.0.1:0', insecure=True",
        "InsecureConfig: insecure=True takes effect together with ORCALIKE_INSECURE=1",
    ),
    ("listen='tcp:0.0.0.0:0', key=bytes(32)", "advertise= or ORCALIKE_ADVERTISE"),
    (
        "listen='tcp:0.0.0.0:0', key=bytes(32), interface='eth99'",
        "interface 'eth99': this host has no such one",
    ),
    (
        "listen='tcp:0.0.0.0:0', key=bytes(32), advertise='node7'",
        "advertise='node7': the address at which others reach this process",
    ),
    ("seeds='tcp:[fe80::1%eth0]:7', key=bytes(32)", "a zone means something on this host only"),
    (
        "listen='unix:{directory}/no/such'",
        "cannot listen at unix:{directory}/no/such: there is no directory {directory}/no",
    ),
    ("listen='unix:{directory}'", "cannot listen at unix:{directory}: a file that is no socket"),
    ("listen=__import__('pathlib').Path('x')", "PosixPath('x') is not an address: unix:PATH or"),
    ("seeds=3", "seeds=3: an address, or a list of addresses"),
    ("seeds=[3]", "3 is not an address: unix:PATH or tcp:HOST:PORT"),
    ("seeds=[]", "seeds=[]: there is no address in it"),
    ("at='unix:/dev/null'", "OrcalikeError: cannot meet at unix:/dev/null: "),
    ("at='unix:/dev/null/place'", "OrcalikeError: cannot meet at unix:/dev/null/place: "),
    ("at=3", "at=3: a directory for the sockets of one group"),
    ("3", "name=3: the name of a group is a string"),
    (
        "'unix:party.sock'",
        "name='unix:party.sock' is an address: write listen='unix:party.sock', or",
    ),
    ("size='2'", "size='2': a number of members"),
    ("check=3", "check=3: words of ORCALIKE_CHECK"),
    ("listen='somewhere'", "'somewhere' is not an address: unix:PATH or tcp:HOST:PORT"),
    ("listen='unix:/x', advertise='10.0.0.5'", "give a tcp: address in listen or seeds, too"),
    ("size=4", "give listen= or seeds=, or start the program with `orcalike run -n 4`"),
    ("timeout=-1", "a time limit of -1 seconds: from 0 on, or None for none"),
    ("'x' * 201", "a group's name has 200 bytes of UTF-8 at the most, not 201"),
    ("'\\ud800'", "a lone surrogate cannot travel"),
    ("stack='PACK:COM:unix'", "StackError: PACK needs"),
    ("stack='PACK:XFER:TOTAL:MBRSHIP:COM:pigeon'", "no medium 'pigeon'"),
    ("resilience=-1", "resilience=-1: the degree is the number of members that may crash"),
]


def test_joins_that_cannot_be(cli: Cli) -> None:
    """Each of them in a thread and in a coroutine; one process tries them all."""
    directory = str(cli.directory)
    cases = [tuple(text.format(directory=directory) for text in each) for each in JOINS]
    attempts = "".join(
        f"""
def join():
    with orca.join({arguments}): pass
attempt(join)
async def join():
    async with orca.join({arguments}): pass
attempt(lambda: asyncio.run(join()))
"""
        for arguments, _ in cases
    )
    attempt = """
import traceback
def attempt(join):
    try:
        join()
    except Exception:
        print(traceback.format_exc().splitlines()[-1])
    else:
        print("joined")
"""
    result = alone(write(cli, attempt + attempts, SHARED))
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    expected = [words for _, words in cases for _ in ("thread", "coroutine")]
    assert len(lines) == len(expected), lines
    for line, words in zip(lines, expected, strict=True):
        assert words in line


def test_a_join_that_cannot_be_ends_the_program(cli: Cli) -> None:
    arguments, words = "size=4", "give listen= or seeds="
    program = write(cli, f"with orca.join({arguments}): pass", SHARED)
    for source in (program, write_async(cli, arguments)):
        result = alone(source)
        assert result.returncode == 1
        assert words in result.stderr.splitlines()[-1]


def write_async(cli: Cli, arguments: str) -> str:
    """The same join, in a coroutine."""
    return cli.write(
        SHARED
        + textwrap.dedent(
            f"""
            async def main():
                async with orca.join({arguments}): pass
            asyncio.run(main())
            """
        ),
        "coroutine.py",
    )


def test_a_program_that_does_not_exist(cli: Cli) -> None:
    check(run(cli, "no_such.py"), 2, "there is no program 'no_such.py'")


MORE_FILES = """import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
"""


@pytest.mark.parametrize("options", ["", "--sequencer witness", "--tcp"])
def test_so_many_open_files_are_enough_for_the_launcher(cli: Cli, options: str) -> None:
    """With one file less it says so at once. A rank needs as many, or more: each has as many as there may be."""
    program = write(cli, "with orca.join() as group:\n    group.barrier()", MORE_FILES + SHARED)
    ranks = 12
    asked = job.Options(
        program=program,
        nprocs=ranks,
        scheme="tcp" if "--tcp" in options else "unix",
        sequencer="witness" if options else "rank",
    )
    needed = job.files_needed(asked)

    def run_with(limit: int) -> subprocess.CompletedProcess[str]:
        command = [*cli.command, f"-n{ranks}", "-q", *options.split(), program]
        limited = ["sh", "-c", f'ulimit -Sn {limit}; exec "$@"', "sh", *command]
        return subprocess.run(limited, check=False, capture_output=True, text=True)

    result = run_with(needed)
    assert result.returncode == 0, result.stderr
    check(run_with(needed - 1), 70, f"has {needed} open files then, and may have {needed - 1}")


@pytest.mark.parametrize("how", ["", "--dry-run"])
def test_an_ssh_whose_words_do_not_end(cli: Cli, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("ORCALIKE_SSH", "ssh 'x")
    program = write(cli, "")
    check(run(cli, program, "-H", "a:3", *how.split()), 2, "ORCALIKE_SSH", "No closing quotation")


def test_a_current_directory_that_is_not_there_any_more(cli: Cli, tmp_path: Path) -> None:
    program = write(cli, "")
    (tmp_path / "gone").mkdir()
    text = 'cd "$0"; rmdir "$0"; exec "$@"'
    command = ["sh", "-c", text, str(tmp_path / "gone"), *cli.command, "-n3", "-q", program]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    check(result, 2, "the current directory", "-C DIR")


def test_an_environment_that_makes_no_sense(cli: Cli) -> None:
    program = write(cli, "with orca.join(): pass", SHARED)
    for settings, words in (
        ({"ORCALIKE_RANK": "0"}, "ORCALIKE_RANK is set, but"),
        ({"ORCALIKE_CHECK": "everything"}, "ORCALIKE_CHECK=everything"),
    ):
        result = alone(program, **settings)
        assert result.returncode == 1
        assert words in result.stderr.splitlines()[-1]
