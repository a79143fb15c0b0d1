"""`orcalike run` as a user meets it: what ranks find, their output, their failures."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lib.command import Cli
from tests.lib.warm import WarmCli

#: A rank's way to wait until it is ended.
WAIT = "import signal; signal.pause()"


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


# What a rank finds


def test_ranks_find_their_place_in_the_environment(cli: Cli) -> None:
    program = cli.write(
        """
        import json
        print(json.dumps(dict(os.environ, argv=sys.argv, main=__name__, hash=hash("x"))))
        """
    )
    result = cli.run("-n", "3", "-x", "COLOUR=red", "--seed", "5", program, "-n", "--timeout")
    assert result.returncode == 0
    lines = sorted(result.stdout.splitlines())
    assert [line[:4] for line in lines] == ["[0] ", "[1] ", "[2] "]
    ranks = [json.loads(line[4:]) for line in lines]
    for number, rank in enumerate(ranks):
        assert rank["argv"] == [program, "-n", "--timeout"]
        assert rank["main"] == "__main__"
        assert rank["COLOUR"] == "red"
        for prefix in ("", "ORCALIKE_"):
            assert rank[f"{prefix}RANK"] == rank[f"{prefix}LOCAL_RANK"] == str(number)
            assert rank[f"{prefix}WORLD_SIZE"] == rank[f"{prefix}LOCAL_WORLD_SIZE"] == "3"
        assert rank["ORCALIKE_NODE_RANK"] == rank["ORCALIKE_RESTART_COUNT"] == "0"
        assert rank["ORCALIKE_SEED"] == rank["PYTHONHASHSEED"] == "5"
        assert rank["ORCALIKE_SEQUENCER"] == "rank"
        assert rank["PYTHONUNBUFFERED"] == "1"
        assert rank["ORCALIKE_ADDRESS"].startswith(f"unix:{rank['ORCALIKE_RUNTIME_DIR']}/")
        assert ("ORCALIKE_LISTEN_FD" in rank) == (number == 0)
    assert len({rank["hash"] for rank in ranks}) == 1
    assert not Path(ranks[0]["ORCALIKE_RUNTIME_DIR"]).exists()


def test_a_program_that_imports_orcalike_finds_it_loaded_and_no_collection_goes_through_it(
    cli: Cli,
) -> None:
    look = "print(gc.get_freeze_count() > 5000, gc.isenabled(), 'orcalike.group' in sys.modules)"
    for line, found in (
        ("import orcalike", "True True True"),
        ("from orcalike.objects import Counter", "True True True"),
        ("import sys", "False True False"),
    ):
        result = cli.run("-n", "1", cli.write(f"import gc\n{look}\n{line}"))
        assert (result.returncode, result.stdout) == (0, f"[0] {found}\n"), result.stderr


def test_what_orcalike_cannot_be_loaded_for_is_an_error_of_the_programs_line(cli: Cli) -> None:
    program = cli.write("import orcalike as orca\nwith orca.join(): pass")
    (Path(program).parent / "queue.py").write_text("raise RuntimeError('not the queue')")
    result = cli.run("-n", "1", program)
    assert (result.returncode, result.stdout) == (1, ""), result.stderr
    assert re.search(r'prog.py", line \d+, in <module>\n.*with orca.join', result.stderr, re.DOTALL)
    assert "RuntimeError: not the queue" in result.stderr


def test_rank_0_gets_the_listening_socket(cli: Cli) -> None:
    program = cli.write(
        """
        import socket
        if rank == 0:
            listener = socket.socket(fileno=int(os.environ["ORCALIKE_LISTEN_FD"]))
            print(listener.accept()[0].recv(5))
        else:
            host, port = os.environ["ORCALIKE_ADDRESS"].removeprefix("tcp:").split(":")
            socket.create_connection((host, int(port))).sendall(b"hello")
        """
    )
    assert "[0] b'hello'" in cli.run("-n2", "--tcp", "--sequencer", "rank", program).stdout


@pytest.mark.parametrize(
    "options", [(), ("--sequencer", "witness")], ids=["shared memory", "witness"]
)
def test_a_rank_may_become_another_program(cli: Cli, options: tuple[str, ...]) -> None:
    """It is the rank; its line to the launcher is closed, and what has that number now gets nothing of it."""
    program = cli.write(
        """
        import orcalike as orca
        from orcalike.objects import Counter

        if sys.argv[1:] != ["again"]:
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        with orca.join() as group:
            count = group.share(Counter, "count")
            count.add(1)
            size = group.size  # after the barrier others may leave
            group.barrier()
            print(group.rank, size, count.value)
        """
    )
    result = cli.run("-n", "3", *options, program)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] {rank} 3 3" for rank in range(3)]


def test_startup_and_closing_lines(cli: Cli) -> None:
    program = cli.write("")
    lines = cli.run("-np", "2", "--seed", "9", program).stderr.splitlines()
    assert re.fullmatch(
        r"\[orcalike\] 2 members on 1 host \(local\) · order: shared memory · seed 9"
        r"( · OMP_NUM_THREADS \d+)?",
        lines[0],
    )
    assert re.fullmatch(r"\[orcalike\] done in \d+\.\d s", lines[1])
    assert cli.run("-n2", "-q", program).stderr == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-n2",), "order: shared memory"),
        (("-n2", "--sequencer", "rank"), "sequencer: rank 0"),
        (("-n2", "--sequencer", "witness"), "sequencer: witness"),
        (("-n2", "--tcp"), "sequencer: witness"),
        (("-n2", "--keep-going"), "order: shared memory"),
        (("-n2", "--stack", "PACK:XFER:TOTAL:MBRSHIP:COM:unix"), "sequencer: witness"),
        (("-n2", "--stack", "PACK:XFER:RING:MBRSHIP:COM:unix"), "order: shared memory"),
        (("-n33",), "sequencer: witness"),
    ],
    ids=" ".join,
)
def test_how_writes_are_ordered(cli: Cli, options: tuple[str, ...], says: str) -> None:
    """In shared memory, if nothing else is asked for and it has room for the ranks and for as many others."""
    program = cli.write("")
    assert f" · {says} · " in cli.run(*options, program).stderr.splitlines()[0]


def test_module_runs_as_python_m_would(cli: Cli, tmp_path: Path) -> None:
    cli.write("value = 42", "pack/inner.py")
    cli.write("", "pack/__init__.py")
    cli.write("from .inner import value; print(value, sys.argv, __package__)", "pack/__main__.py")
    plain = subprocess.run(
        [sys.executable, "-m", "pack", "a"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    result = cli.run("-n1", "--no-prefix", "-C", str(tmp_path), "-m", "pack", "a")
    assert (result.returncode, result.stdout) == (0, plain.stdout)


def test_stdin_is_for_rank_0_alone(cli: Cli) -> None:
    program = cli.write("print(repr(sys.stdin.read()))")
    result = cli.run("-n3", program, input="one\ntwo\n")
    assert sorted(result.stdout.splitlines()) == ["[0] 'one\\ntwo\\n'", "[1] ''", "[2] ''"]


# Output


def test_much_output_is_complete_and_unmixed(cli: Cli) -> None:
    program = cli.write(
        """
        text = "x" * 300
        for number in range(5000):
            stream = sys.stderr if number % 5 == 0 else sys.stdout
            stream.write(f"{rank} {number} {text}\\n")  # at once: a part of a line is shown when it gets old
        """
    )
    result = cli.run("-n4", "-q", program)
    assert result.returncode == 0
    for output, numbers in (
        (result.stdout, [number for number in range(5000) if number % 5]),
        (result.stderr, list(range(0, 5000, 5))),
    ):
        lines = output.splitlines()
        for rank in range(4):
            mine = [line for line in lines if line.startswith(f"[{rank}] ")]
            assert mine == [f"[{rank}] {rank} {number} {'x' * 300}" for number in numbers]
        assert len(lines) == 4 * len(numbers)


def test_bytes_pass_as_they_are(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    program = cli.write(
        r"os.write(1, b'\xff\xfe\x00 \xe2\x82\n' + bytes([64 + rank]) + b' no end')"
    )
    result = cli.run("-n2", program, text=False)
    assert sorted(result.stdout.splitlines()) == sorted(
        line for rank in (0, 1)
        for line in (b"[%d] \xff\xfe\x00 \xe2\x82" % rank, b"[%d] %c no end" % (rank, 64 + rank))
    )  # fmt: skip


def test_prompt_without_newline_is_shown(cli: Cli) -> None:
    program = cli.write("print('hello', input('name? '))")
    with cli.started("-n1", "-q", program) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.read(len("[0] name? ")) == "[0] name? "
        process.stdin.write("Ann\n")
        process.stdin.close()
        assert process.stdout.read() == "hello Ann\n"
        assert process.wait(cli.deadline) == 0


def test_reader_that_goes_ends_the_run(cli: Cli) -> None:
    program = cli.write("while True: print('line')")
    with cli.started("-n2", "-q", program) as process:
        assert process.stdout
        assert process.stdout.readline() in ("[0] line\n", "[1] line\n")
        process.stdout.close()
        assert process.wait(cli.deadline) == 128 + signal.SIGPIPE


@pytest.mark.parametrize("body", ["while True: print('text')", "print('text', end='')"])
def test_output_that_cannot_be_written_ends_the_run_with_words(tmp_path: Path, body: str) -> None:
    cli = Cli(tmp_path)
    with open("/dev/full", "w") as full:
        result = cli.run(
            *("-n2", "-q", cli.write(body)),
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    words = "orcalike: standard output cannot be written: No space left on device"
    assert result.returncode == 73
    assert result.stderr.removesuffix("; the ranks were stopped\n").rstrip() == words


def test_last_byte_that_cannot_be_written_counts_too(tmp_path: Path) -> None:
    """All that the rank has printed fits, and the end of its line does not."""
    cli = Cli(tmp_path)
    program = cli.write("sys.stdout.write('x' * (1024 - len('[0] ')))")
    with (tmp_path / "output").open("w") as output:
        command = ["prlimit", "--fsize=1024", *cli.command, "-n1", program]
        result = subprocess.run(
            command, stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (tmp_path / "output").read_text() == "[0] " + "x" * 1020
    assert result.returncode == 73, result.stderr
    assert result.stderr.endswith("orcalike: standard output cannot be written: File too large\n")


def test_sixty_four_ranks(cli: Cli) -> None:
    result = cli.run("-n64", "-q", cli.write("print('here')"))
    assert result.returncode == 0
    assert set(result.stdout.splitlines()) == {f"[{rank}] here" for rank in range(64)}


def test_closed_standard_files_do_no_harm(cli: Cli) -> None:
    """The shell's `<&-` and `>&-`."""
    program = cli.write("print(repr(sys.stdin.read()), file=sys.stderr)")
    command = " ".join([*cli.command, "-n2", "-q", program, "<&-", ">&-"])
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert sorted(result.stderr.splitlines()) == ["[0] ''", "[1] ''"]


# Failures


def test_exit_code_of_the_first_failing_rank(cli: Cli) -> None:
    program = cli.write(f"if rank == 2: sys.exit(7)\n{WAIT}")
    result = cli.run("-n4", "-q", program)
    assert result.returncode == 7
    assert result.stdout == ""
    assert re.fullmatch(
        r"orcalike: rank 2 \(pid \d+\) failed first with exit code 7 after \d+\.\d\d s; "
        r"3 others stopped\n",
        result.stderr,
    )


def test_one_traceback_of_the_program_alone(cli: Cli) -> None:
    program = cli.write(
        """
        def search():
            return 1 / 0
        search()
        """
    )
    plain = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    result = cli.run("-n4", "-q", program)
    assert result.returncode == 1
    *traceback, message = result.stderr.splitlines()
    assert [line[4:] for line in traceback] == plain.stderr.splitlines()
    assert len({line[:4] for line in traceback}) == 1
    assert "failed first with exit code 1" in message


def test_long_traceback_of_a_chained_error_comes_whole(cli: Cli) -> None:
    program = cli.write(
        "try: 1 / 0\nexcept ZeroDivisionError as e: raise ValueError('y' * 300_000) from e"
    )
    result = cli.run("-n1", "--no-prefix", "-q", program)
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "ValueError: " + "y" * 300_000 + "\n" in result.stderr


def test_syntax_error_names_the_program(cli: Cli) -> None:
    result = cli.run("-n2", "-q", cli.write("def ("))
    assert result.returncode == 1
    assert result.stderr.count("SyntaxError") == 1
    assert "Traceback" not in result.stderr


def test_rank_that_is_killed(cli: Cli) -> None:
    program = cli.write(f"if rank == 1: os.kill(os.getpid(), 9)\n{WAIT}")
    result = cli.run("-n2", "-q", program)
    assert result.returncode == 137
    assert re.fullmatch(
        r"orcalike: rank 1 \(pid \d+\) was killed first by SIGKILL \(exit code 137\) "
        r"after \d+\.\d\d s; 1 other stopped\n",
        result.stderr,
    )


def test_rank_that_does_not_end_at_a_signal_is_killed(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(
        f"""
        import signal, pathlib
        ready = pathlib.Path({str(tmp_path)!r}, "ready")
        if rank == 0:
            while not ready.exists(): time.sleep(0.01)
            sys.exit(3)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ready.touch()
        while True: signal.pause()
        """
    )
    assert cli.run("-n2", "--grace", "100ms", program).returncode == 3


def test_consequence_is_not_taken_for_the_cause(cli: Cli, tmp_path: Path) -> None:
    program = cli.write(
        f"""
        import pathlib
        from orcalike.errors import NotPrimary
        mark = pathlib.Path({str(tmp_path)!r}, "mark")
        if rank == 0:
            mark.write_text(f"{{os.getpid()}}\\n")
            raise NotPrimary("rank 1 is missed")
        while not (mark.exists() and mark.read_text().endswith("\\n")): time.sleep(0.01)
        while pathlib.Path("/proc", mark.read_text().strip()).exists(): time.sleep(0.01)
        raise ValueError("the cause")
        """
    )
    result = cli.run("-n2", "-q", program)
    assert "rank 1 (pid" in result.stderr
    assert "the cause" in result.stderr
    assert "NotPrimary" not in result.stderr


def test_a_rank_that_ends_well_stops_no_other(cli: Cli) -> None:
    program = cli.write(
        """
        if rank == 1:
            time.sleep(0.5)
            print("later")
        """
    )
    result = cli.run("-n2", program)
    assert (result.returncode, result.stdout) == (0, "[1] later\n")


# Programs that are not there


def test_unknown_programs_are_refused_in_one_line(cli: Cli, tmp_path: Path) -> None:
    cli.write("", "tsp.py")
    cli.write("", "pack/__init__.py")
    for arguments, words in (
        (["tps.py"], "there is no program 'tps.py'; did you mean 'tsp.py'?"),
        (["."], "'.' is a directory, not a program"),
        (["-m", "tsq"], "no module named 'tsq'; did you mean 'tsp'?"),
        (["-m", "pack.inner"], "no module named 'pack.inner'"),
        (["-m", "pack"], "no module named 'pack.__main__'"),
    ):
        result = cli.run("-n2", "-q", *arguments, cwd=tmp_path)
        assert (result.returncode, result.stderr) == (2, f"orcalike: {words}\n"), arguments
