"""What an operation's source gives away, and what it must not be blamed for (D10)."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from orcalike.runtime.errors import DeclarationError

HEAD = """
import bisect, datetime, heapq, logging, os, random, socket, sys, threading, time, uuid
from collections import deque
from datetime import datetime as moment
from os import urandom
from random import shuffle
from time import time as clock

from orcalike.declare.decorators import atomic, local, read, shared, write

CACHE = {}
COUNT = 0
DICE = random.Random(1)
LATCH = threading.Lock()
LIMITS = (1, 2)
LOG = logging.getLogger("jobs")

def stamp():
    return time.time()

def double(number):
    return 2 * number

"""


class Program:
    """Declares shared classes in a file of their own, as a program does."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "jobs.py"

    def problems(self, text: str) -> list[str]:
        """The lines of the DeclarationError; each must name the file and a line."""
        self.path.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location("jobs", self.path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules["jobs"] = module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except DeclarationError as error:
            lines = str(error).splitlines()
            assert all(re.match(rf"{re.escape(str(self.path))}:\d+: .+; .+", li) for li in lines)
            return lines
        finally:
            del sys.modules["jobs"]
        return []

    def of(self, kind: str, *body: str) -> str:
        """The problems of one operation with this body."""
        text = f"@shared\nclass Jobs:\n    @{kind}\n    def work(self, item=None):\n"
        return "\n".join(self.problems(text + "".join(f"        {line}\n" for line in body)))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.mark.parametrize(
    ("statement", "named", "remedy"),
    [
        ("return time.time()", "time.time", "use orcalike.now()"),
        ("return clock()", "clock (time.time)", "use orcalike.now()"),
        ("return moment.now()", "moment.now", "use orcalike.now()"),
        ("return datetime.date.today()", "datetime.date.today", "use orcalike.now()"),
        ("return [time.time_ns() for _ in ()]", "time.time_ns", "use orcalike.now()"),
        ("return lambda: time.time()", "time.time", "use orcalike.now()"),
        ("read_it = time.monotonic", "time.monotonic", "use orcalike.now()"),
        ("return random.random()", "random.random", "use orcalike.random()"),
        ("shuffle(self.items)", "shuffle", "use orcalike.random()"),
        ("return DICE.random()", "DICE.random", "use orcalike.random()"),
        ("return random.Random()", "random.Random", "use orcalike.random()"),
        ("return urandom(4)", "urandom", "use orcalike.random()"),
        ("return uuid.uuid4()", "uuid.uuid4", "use orcalike.random()"),
        ("from secrets import randbelow; return randbelow(3)", "randbelow", "orcalike.random()"),
        ("import random as r; return r.random()", "r.random", "use orcalike.random()"),
        ("time.sleep(1)", "time.sleep", "use a guard"),
        ("open('jobs')", "open", "pass the value as an argument"),
        ("input()", "input", "pass the value as an argument"),
        ("print(item)", "print", "use logging"),
        ("sys.stderr.write('x')", "sys.stderr.write", "use logging"),
        ("return os.environ['HOME']", "os.environ", "pass the value as an argument"),
        ("return os.path.exists('x')", "os.path.exists", "pass the value as an argument"),
        ("socket.create_connection(('a', 1))", "socket.create_connection", "pass the value"),
        ("with LATCH: pass", "LATCH", "use a guard to wait"),
        ("return id(item)", "id", "give the object a number"),
    ],
)
def test_clock_randomness_and_io_are_refused(
    program: Program, statement: str, named: str, remedy: str
) -> None:
    for kind in ("read", "write"):
        problem = program.of(kind, statement)
        assert f"Jobs.work uses {named}" in problem
        assert remedy in problem


@pytest.mark.parametrize(
    "statement",
    [
        "time = item; return time.time()",
        "return self.time.time()",
        "return [random.random() for random in item]",
        "at: time.struct_time = item",
        "return datetime.datetime(2024, 1, 1) + datetime.timedelta(1)",
        "return os.path.join('a', os.sep)",
        "return random.Random(item).random()",
        "return socket.AF_INET",
        "try: pass\n        except socket.timeout: pass",
        "LOG.info('did %s', item)",
        "return double(item) + LIMITS[0]",
        "return sum(x for x in item), sorted(item), max(item)",
        "found = []; found.append(item); found[0] = 1; return found",
        "CACHE = {}; CACHE['x'] = item",
    ],
)
def test_what_only_looks_like_it_is_let_through(program: Program, statement: str) -> None:
    for kind in ("read", "write"):
        assert program.of(kind, statement) == ""


def test_each_problem_has_its_own_line(program: Program) -> None:
    text = (
        "@shared\nclass Jobs:\n    @write\n    def work(self):\n        a = 1\n        open('x')\n"
    )
    (problem,) = program.problems(text)

    line = (HEAD + text).splitlines().index("        open('x')") + 1
    assert problem.startswith(f"{program.path}:{line}: Jobs.work uses open, ")


@pytest.mark.parametrize(
    "statement",
    [
        "self.count = 1",
        "self.count += 1",
        "self.count: int = 1",
        "del self.count",
        "a, self.count = item",
        "for self.count in item: pass",
        "self.items[0] = 1",
        "self.items[0].done = True",
        "del self.items[0]",
        "self.items.append(1)",
        "self.items[0].names.add(1)",
        "heapq.heappush(self.items, 1)",
        "bisect.insort(self.items, 1)",
        "setattr(self, 'count', 1)",
        "change = lambda: self.items.clear()",
    ],
)
def test_reads_and_guards_change_nothing(program: Program, statement: str) -> None:
    assert "and reads and guards change nothing; do it in a @write" in program.of("read", statement)
    assert program.of("write", statement) == ""
    guarded = (
        "@shared\nclass Jobs:\n    @write\n    def work(self, item): pass\n"
        f"    @work.when\n    def _(self, item):\n        {statement}\n        return True\n"
    )
    assert "the guard of Jobs.work " in "\n".join(program.problems(guarded))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (["global COUNT", "COUNT = 1"], "assigns the global COUNT"),
        (["CACHE['x'] = item"], "assigns CACHE['x'], which does not belong to the object"),
        (["CACHE.update(x=item)"], "calls CACHE.update(), which does not belong to the object"),
        (["Jobs.total = 1"], "assigns Jobs.total, which does not belong to the object"),
        (["type(self).total += 1"], "assigns type(self).total, which belongs to the class"),
        (["self.__class__.total = 1"], "self.__class__.total, which belongs to the class"),
    ],
)
def test_operations_touch_only_their_object(program: Program, body: list[str], what: str) -> None:
    problem = program.of("write", *body)

    assert what in problem
    assert "keep it in an attribute of the object, or pass it as an argument" in problem


def test_a_nested_function_may_change_its_operations_variables(program: Program) -> None:
    body = ["count = 0", "def more():", "    nonlocal count", "    count += 1", "more()"]
    assert program.of("write", *body) == ""


@pytest.mark.parametrize("kind", ["read", "write"])
def test_async_and_generators_are_refused(program: Program, kind: str) -> None:
    head = f"@shared\nclass Jobs:\n    @{kind}\n    "
    assert "is async" in program.problems(head + "async def work(self): pass\n")[0]
    assert "is a generator" in program.problems(head + "def work(self): yield 1\n")[0]
    assert "returns a generator" in program.of(kind, "return (x for x in self.items)")
    assert "defines the coroutine f" in program.of(kind, "async def f(): pass")


HELPERS = """
@shared
class Jobs:
    def __init__(self):
        self.items = {}
    @write
    def work(self):
        self._log()
        return self._later, stamp()
    @read
    def look(self):
        return self._count()
    def _log(self):
        open("log")
    @property
    def _later(self):
        return list(self._all())
    def _all(self):
        yield clock()
    def _count(self):
        self.items.setdefault("count", 0)
    def _unused(self):
        open("log")
    @local
    def report(self):
        print(self.items, time.time())
"""


def test_helpers_are_checked_with_the_operations_that_call_them(program: Program) -> None:
    problems = {
        re.sub(r".*?: (\S+), which .*", r"\1", line): line for line in program.problems(HELPERS)
    }

    assert set(problems) == {"stamp", "Jobs._log", "Jobs._count", "Jobs._all"}
    assert "Jobs._all, which Jobs._later calls, uses clock (time.time)" in problems["Jobs._all"]
    assert "which Jobs.look calls, calls self.items.setdefault()" in problems["Jobs._count"]


def test_a_read_uses_no_write(program: Program) -> None:
    (problem,) = program.problems(
        "@shared\nclass Jobs:\n    @write\n    def put(self): pass\n"
        "    @read\n    def look(self): return self.put()\n"
    )
    assert "Jobs.look uses the write put, and reads and guards change nothing" in problem


def test_super_is_followed_into_a_plain_base(program: Program) -> None:
    (problem,) = program.problems(
        "class Base:\n    def __init__(self): self.at = time.time()\n"
        "@shared\nclass Jobs(Base):\n    def __init__(self): super().__init__()\n"
    )
    assert "Base.__init__, which Jobs.__init__ calls, uses time.time" in problem


def test_hooks_and_constructors_follow_the_rules_of_writes(program: Program) -> None:
    problems = program.problems(
        "@shared\nclass Jobs:\n    def __init__(self): self.at = time.time()\n"
        "    def member_left(self, member): self.gone = random.random()\n"
        "    def snapshot(self): self.copies = 1\n"
        "    @classmethod\n    def restore(cls, state): return open(state)\n"
    )
    assert [re.sub(r".*: (Jobs\.\w+) .*", r"\1", line) for line in problems] == [
        "Jobs.__init__",
        "Jobs.member_left",
        "Jobs.restore",
        "Jobs.snapshot",
    ]


def test_atomic_functions_and_their_guards_are_checked(program: Program) -> None:
    (problem,) = program.problems("@atomic\ndef move(a, b): a.put(time.time())\n")
    assert "atomic move uses time.time" in problem

    (problem,) = program.problems(
        "@atomic\ndef move(a, b): pass\n@move.when\ndef _(a, b): a.items.pop()\n"
    )
    assert "the guard of atomic move calls a.items.pop()" in problem


def test_without_source_only_the_compiled_code_is_looked_at() -> None:
    from orcalike.declare import decorators

    text = "@shared\nclass Jobs:\n    @write\n    {}def work(self): {}\n"
    names = vars(decorators).copy()
    exec(text.format("", "import time; time.time()"), names)  # noqa: S102
    with pytest.raises(DeclarationError, match="is async"):
        exec(text.format("async ", "pass"), names)  # noqa: S102
