"""What `import orcalike` imports, and what it leaves until it is needed: a start is quick."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import orcalike
from tests.lib.untraced import untraced

ROOT = Path(__file__).parents[2]
FOR_COROUTINES = {"asyncio", "ssl"}
SLOW = FOR_COROUTINES | {
    *("ast", "dataclasses", "datetime", "decimal", "hashlib", "inspect", "ipaddress", "json"),
    *("msgpack", "secrets", "socket", "subprocess", "uuid", "zoneinfo"),
}

PROGRAM = """
from decimal import Decimal
import orcalike as orca

@orca.shared
class Total:
    def __init__(self) -> None:
        self.value = Decimal(0)

    @orca.write
    def add(self, value: Decimal) -> None:
        self.value += value

    @orca.read
    def get(self) -> Decimal:
        return self.value

with orca.join() as group:
    total = group.share(Total, "total")
    total.add(Decimal(1))
    total.add.nowait(Decimal(2)).result()
    assert total.get() == 3
"""


OBJECTS = """
import collections
import orcalike as orca
from orcalike.objects import Dict, Lock, Queue

with orca.join() as group:
    jobs, lock, known = (group.share(each, each.__name__) for each in (Queue, Lock, Dict))
    with lock:
        jobs.put([group.me, collections.deque([1])])
    known["all"] = collections.OrderedDict(got=jobs.get())
    assert known["all"]["got"] == [group.me, collections.deque([1])]
"""


RANK = """
import sys
import orcalike as orca

@orca.shared
class Total:
    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self, value: int) -> None:
        self.value += value

with orca.join() as group:
    total = group.share(Total, "total")
    total.add(1)
    group.barrier()
print(*sys.modules)
"""


def imported_by(program: str) -> set[str]:
    """The modules that a program has imported at its end, beside those of a bare interpreter."""
    watched = f"import sys\nbare = {{*sys.modules}}\n{program}\nprint(*(sys.modules.keys() - bare))"
    ended = subprocess.run(
        [sys.executable, "-c", watched], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.stderr == ""
    return set(ended.stdout.split())


def test_import_imports_nothing_slow() -> None:
    modules = imported_by("import orcalike")
    assert "orcalike.declare.decorators" in modules
    assert modules & SLOW == set()


def test_a_program_without_coroutines_imports_no_asyncio() -> None:
    modules = imported_by(PROGRAM)
    assert {"orcalike.group", "orcalike.runtime.standard_types"} <= modules
    assert modules & FOR_COROUTINES == set()


def test_ready_objects_need_no_dates_paths_and_exact_numbers() -> None:
    """What an operation keeps of its caller, and containers, travel without."""
    modules = imported_by(OBJECTS)
    assert "orcalike.objects.queues" in modules
    few = {"decimal", "pathlib", "uuid", "zoneinfo", "orcalike.runtime.standard_types"}
    assert modules & few == set()


@untraced
def test_a_rank_does_without_what_few_programs_need(tmp_path: Path) -> None:
    """What each process of a run imports takes time and memory in each."""
    program = tmp_path / "rank.py"
    program.write_text(RANK)
    run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix", "-n", "2"]
    ended = subprocess.run(
        [*run, "--sequencer", "rank", str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(ended.stdout.split())
    assert "orcalike.group" in modules
    few = {"dataclasses", "ipaddress", "pathlib", "random", "urllib.parse"}
    assert modules & few == set()
    ours = {"environments.finding", "session.forked_process", "session.meeting"}
    orders = {"transport.layers.ring", "transport.drivers.ring_segment", "runtime.shadow"}
    assert modules & {f"orcalike.{name}" for name in ours | orders} == set()


def test_every_public_name_is_there() -> None:
    assert imported_by("from orcalike import *\nGroup, Member, View, now, random, shared")
    assert set(orcalike.__all__) <= set(dir(orcalike))
    assert all(hasattr(orcalike, name) for name in orcalike.__all__)


def test_what_is_not_there_is_said_as_python_says_it() -> None:
    with pytest.raises(AttributeError, match=r"^module 'orcalike' has no attribute 'nonsense'$"):
        orcalike.nonsense  # type: ignore[attr-defined]  # noqa: B018
