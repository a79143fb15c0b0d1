"""`orcalike run -H` with hosts that are unlike the launcher's, and with a launcher that is stopped.

A command in place of ssh has all hosts on this machine. `other` is the host that is not as it should be.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orcalike.launcher.remote_host import LEASE
from tests.lib.fake_ssh import FakeSsh
from tests.lib.own_runs import take_folder
from tests.lib.processes import DEADLINE, state_of, until

if TYPE_CHECKING:
    from tests.lib.command import Cli

#: An interpreter that is like this one at each host but one.
_INTERPRETER = """#!/bin/sh
if [ "$HOST_NAME" != other ]; then exec {python} "$@"; fi
{shell}
exec {python} -P -c "import runpy
{patch}
runpy.run_module('orcalike.launcher.agent', run_name='__main__', alter_sys=True)"
"""
_OTHER_VERSION = "import orcalike._version as v; v.__version__ = '0.0.1'"
_OTHER_MINOR = "import sys; sys.version_info = (3, 99, 0)"
#: A version whose launchers say less than this one's: it does not understand the assignment.
_OTHER_WORDS = """import orcalike.launcher.greeting as g
def fail(values): raise TypeError
g._plan = fail"""
#: A version whose agents report less than this one wants.
_LESS = """import json, orcalike.launcher.greeting as g
g.HostReport.encode = lambda report: json.dumps({'version': '0.0.1'}).encode()"""
#: Its environment has lost a package that orcalike needs there.
_NO_PACKAGE = "import sys; sys.modules['{}'] = None"
_NO_ORCALIKE = f"exec {sys.executable} -S -P -m orcalike.launcher.agent"  # without site-packages
#: A command that never says anything, and one that has closed its output; both end with their input.
_SILENT, _CLOSED = "cat > /dev/null; exit 0", "exec cat > /dev/null 2>&1"
#: An installation whose agent ends by an exception: the end of what it says is what counts.
_BROKEN = """import orcalike.launcher.agent as a
def fail(deep): return fail(deep - 1) if deep else open('/no/such/' + 'x' * 40)
fail(60)"""
_NO_LICENCE = """for i in $(seq 200); do echo "Welcome to this site, line $i."; done
echo 'no licence for python' >&2; exit 3"""
_NO_OPTION = "echo 'Unknown option: -P' >&2; exit 2"


#: What to type, to see what is wrong.
_TRY = "; try: ssh other \\S+ -m orcalike --version"


@pytest.fixture(autouse=True)
def folders(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Where runs have their folders, which is the test's own."""
    monkeypatch.setenv("ORCALIKE_SSH", str(FakeSsh(tmp_path).path))
    return take_folder(tmp_path_factory, monkeypatch) / "orcalike"


def interpreter(directory: Path, patch: str = "", shell: str = "") -> str:
    """Write it; returns its path."""
    path = directory / "interpreter"
    path.write_text(_INTERPRETER.format(python=sys.executable, patch=patch, shell=shell))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("patch", "shell", "message"),
    [
        (_OTHER_VERSION, "", "host other has orcalike 0.0.1, .*install the same version"),
        (_OTHER_MINOR, "", "host other has Python 3.99, .*--remote-python PATH"),
        (_OTHER_WORDS, "", "host other: .*cannot be understood.*install the same version"),
        (_LESS, "", "host other is lost: .*a report .*install the same version"),
        ("", _NO_OPTION, "host other: .*Unknown option: -P.*--remote-python PATH"),
        ("", _NO_ORCALIKE, "host other has no orcalike for .*: install it there, or .*PATH"),
        (
            _NO_PACKAGE.format("cryptography"),
            "",
            "host other: no package cryptography .*pip install 'orcalike.net.'.*--remote-python PATH",
        ),
        (_NO_PACKAGE.format("msgpack"), "", "host other: no package msgpack .*--remote-python"),
        (_BROKEN, "", f"host other: .*No such file .*{_TRY}"),
        ("", _NO_LICENCE, f"host other: .*exit code 3: no licence for python .*{_TRY}"),
        ("", "exit 0", f"host other: .*exit code 0: it said nothing{_TRY}"),
        ("", "kill -9 $$", f"host other: .*exit code 137: .*{_TRY}"),
    ],
    ids=[
        *("version", "minor", "words", "report", "old-python", "no-orcalike", "no-cryptography"),
        *("no-msgpack", "broken", "banner", "nothing", "killed"),
    ],
)
def test_a_host_with_another_installation(
    cli: Cli, folders: Path, patch: str, shell: str, message: str
) -> None:
    program = cli.write("print('runs')")
    python = interpreter(cli.directory, patch, shell)
    result = cli.run("-H", "a,other", "--remote-python", python, program)
    assert (result.returncode, result.stdout) == (69, ""), result.stderr
    assert re.search(f"orcalike: {message}", result.stderr), result.stderr
    until(lambda: os.listdir(folders) == [], "the end of all folders")


#: The launcher, which waits for less long.
_SOON = """import orcalike.launcher.remote_host as host, orcalike.cli.verbs
host.SLOW_SECONDS, host.ANSWER_SECONDS = 0.5, 2.0
orcalike.cli.verbs.main()"""


@pytest.mark.parametrize("shell", [_SILENT, _CLOSED], ids=["silent", "closed"])
def test_a_host_that_never_answers(cli: Cli, folders: Path, shell: str) -> None:
    """It is named after some seconds, and given up after some more."""
    program = cli.write("print('runs')")
    python = interpreter(cli.directory, shell=shell)
    cli.command = (sys.executable, "-c", _SOON, "run")
    result = cli.run("-H", "other", "--remote-python", python, program)
    assert (result.returncode, result.stdout) == (69, "")
    _, slow, end = result.stderr.splitlines()
    assert slow == "[orcalike] host other has not answered for 0.5 s; it is given up after 2 s"
    assert re.fullmatch(
        f"orcalike: host other does not answer as an agent: it said nothing{_TRY}", end
    )
    assert os.listdir(folders) == []


def test_a_host_with_another_program(
    cli: Cli, folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.write("print('runs')")
    cli.write("print('is another one')", "elsewhere/prog.py")
    monkeypatch.chdir(tmp_path)
    python = interpreter(tmp_path, shell=f"cd {tmp_path}/elsewhere")
    # One path, whose file depends on the process that opens it.
    program = "/proc/self/cwd/prog.py"
    result = cli.run("-H", "a,other", "--remote-python", python, program)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert re.search("another one on host other than on this host: copy it", result.stderr)
    until(lambda: os.listdir(folders) == [], "the end of all folders")


#: The host reports a door at which nothing listens.
_NO_DOOR = """import orcalike.launcher.agent as a
import orcalike.launcher.host_report as h
made = h.report_of
def report_of(plan, host='', door='', *rest): return made(plan, host, '127.0.0.1:1', *rest)
a.report_of = report_of"""


def test_a_host_that_others_do_not_reach(cli: Cli, folders: Path) -> None:
    program = cli.write("print('runs')")
    python = interpreter(cli.directory, _NO_DOOR + "\nimport sys; sys.argv = ['agent']\na.main()")
    result = cli.run("-H", "a,other:2", "--remote-python", python, program)
    assert (result.returncode, result.stdout) == (69, ""), result.stderr
    assert re.search(
        r"host (a|other) cannot reach host other at 127\.0\.0\.1 \(ranks 1 to 2\): .*refused; "
        r"say at which .*--advertise other=ADDRESS",
        result.stderr,
    ), result.stderr
    until(lambda: os.listdir(folders) == [], "the end of all folders")


def test_a_host_that_this_one_does_not_reach(cli: Cli, folders: Path) -> None:
    """It finds nothing wrong itself."""
    says_well = """
probed = a.Agent._probed
a.Agent._probed = lambda agent, troubles: probed(agent, [''] * len(troubles))
import sys; sys.argv = ['agent']
a.main()"""
    python = interpreter(cli.directory, _NO_DOOR + says_well)
    result = cli.run("-H", "localhost,other", "--remote-python", python, cli.write("print('runs')"))
    assert (result.returncode, result.stdout) == (69, ""), result.stderr
    assert re.search(
        r"this host cannot reach host other at 127\.0\.0\.1 \(rank 1\): Connection refused; "
        r"say at which .*--advertise other=ADDRESS",
        result.stderr,
    ), result.stderr
    until(lambda: os.listdir(folders) == [], "the end of all folders")


#: A firewall before the host lets connections through, and no datagrams.
_NO_DATAGRAMS = """import orcalike.launcher.agent as a
import orcalike.launcher.probes as p
p.Door._answer_datagram = lambda door: door._datagrams.recv(99)
import sys; sys.argv = ['agent']
a.main()"""


def test_a_host_that_datagrams_do_not_reach(cli: Cli, folders: Path) -> None:
    python = interpreter(cli.directory, _NO_DATAGRAMS)
    result = cli.run("-H", "a,other", "--remote-python", python, cli.write("print('runs')"))
    assert (result.returncode, result.stdout) == (69, ""), result.stderr
    assert re.search(
        r"host (a|other) cannot reach host other at 127\.0\.0\.1 \(rank 1\): connections \(TCP\) "
        r"are let through, and datagrams \(UDP\) are not; have the firewalls .* let both through",
        result.stderr,
    ), result.stderr
    until(lambda: os.listdir(folders) == [], "the end of all folders")


STAYS = """
import orcalike as orca
from orcalike.objects import Counter
with orca.join() as group:
    counter = group.share(Counter, "n")
    counter.add(1)
    group.barrier()
    open(f'{directory}/pid{{rank}}', 'w').write(f'{{os.getpid()}}\\n')
    while not os.path.exists('{directory}/go'):
        time.sleep(0.05)
    counter.add(1)
    group.barrier()
    print(counter.get(), group.size, flush=True)
    group.barrier()
"""


def test_ctrl_z_for_longer_than_the_lease(cli: Cli, folders: Path, tmp_path: Path) -> None:
    program = cli.write(STAYS.format(directory=tmp_path))
    with cli.started("-H", "a,b", "-q", program) as run:
        ranks = cli.pids(2)
        run.send_signal(signal.SIGTSTP)
        until(lambda: {*map(state_of, ranks), state_of(run.pid)} == {"T"}, "all are stopped")
        time.sleep(LEASE + 2)  # agents would end all by now
        assert set(map(state_of, ranks)) == {"T"}
        run.send_signal(signal.SIGCONT)
        until(lambda: "T" not in map(state_of, ranks), "the ranks go on")
        (tmp_path / "go").touch()
        output, errors = run.communicate(timeout=DEADLINE)
    assert (run.returncode, sorted(output.splitlines())) == (0, ["[0] 4 2", "[1] 4 2"]), errors
    until(lambda: os.listdir(folders) == [], "the end of all folders")
