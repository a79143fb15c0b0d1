"""Habits that make replicas differ, planted in classes: each is found when the class is declared."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from orcalike.runtime.errors import DeclarationError

HELPERS = """
import functools, itertools, random, time

def stamp():
    return time.time()

def nap():
    time.sleep(1)

def deep():
    return middle()

def middle():
    return stamp()

@functools.lru_cache
def cached():
    return time.time()

def wraps(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner

@wraps
def wrapped():
    return random.random()

def double(number):
    return 2 * number

def drain(items):
    items.pop()

def look(items):
    return len(items)

class Clock:
    def __init__(self, scale=1):
        self.scale = scale

    def now(self):
        return time.time() * self.scale

class Timed:
    def __init__(self):
        self.at = time.time()

CLOCK = Clock()
NUMBERS = itertools.count()
"""

HEAD = """
import datetime, functools, hashlib, helpers, itertools, os, random, sys, time, uuid
import time as t0
from helpers import CLOCK, NUMBERS, Clock, Timed, double, drain, look, stamp

import orcalike as orca

RANK = int(os.environ.get("RANK", 0))
STARTED = time.time()
HOST = os.uname().nodename
LIMIT = 7
TABLE = {"a": 1}
LOG = []
SEEN = {}
COUNT = 0
TICKETS = itertools.count()
PARTIAL = functools.partial(stamp)

def remember(key):
    SEEN[key] = True

def count_up():
    global COUNT
    COUNT += 1

"""

CLASS = """
@orca.shared
class Jobs:
    parts = []
    names = {{"a": 1}}

    def __init__(self):
        self.items = [1]
        self.table = {{}}
        self.members = set()
        self.key = None
        self.last = None

    @orca.{kind}
    def work(self, item{defaults}):
        {statement}

    def _helper(self):
        self.last = 1

    def _stamped(self):
        self.last = time.time()
"""

WRITES = {
    # The clock, waiting and random numbers, in other modules and by other names.
    "helpers.stamp()": "uses time.time",
    "helpers.nap()": "uses time.sleep",
    "helpers.deep()": "uses time.time",
    "helpers.cached()": "uses time.time",
    "helpers.wrapped()": "uses random.random",
    "PARTIAL()": "uses time.time",
    "stamp()": "uses time.time",
    "CLOCK.now()": "uses time.time",
    "helpers.CLOCK.now()": "uses time.time",
    "Timed()": "uses time.time",
    "self.last = [Clock(), Timed()]": "uses time.time",
    "getattr(time, 'time')()": "uses time.time",
    "getattr(datetime.datetime, 'now')()": "uses datetime.datetime.now",
    "t = time; self.last = t.time()": "uses t.time",
    "t = u = time; self.last = u.time()": "uses u.time",
    "d = datetime.datetime; self.last = d.now()": "uses d.now",
    "now = time.time; self.last = now()": "uses time.time",
    "(r, n) = (random, 1); self.last = r.random()": "uses r.random",
    "self.last = t0.time()": "uses t0.time",
    "self.last = [f() for f in (time.time,)]": "uses time.time",
    "self.last = datetime.datetime.fromtimestamp(item)": "time zone of each process",
    # What differs at each replica.
    "self.last = hash(item)": "uses hash",
    "self.last = id(item)": "uses id",
    "self.last = sys.getsizeof(item)": "uses sys.getsizeof",
    "self.last = uuid.uuid4()": "uses uuid.uuid4",
    # The end of the process.
    "sys.exit()": "uses sys.exit",
    "sys.exit('done') if item else None": "uses sys.exit",
    "quit()": "uses quit",
    "self.last = RANK": "uses RANK, which is int(os.environ.get('RANK', 0)) in each process",
    "self.last = STARTED": "uses STARTED, which is time.time()",
    "self.last = HOST": "uses HOST, which is os.uname().nodename",
    "self.last = item in SEEN": "uses SEEN, which each process changes: remember",
    "self.last = COUNT": "uses COUNT, which each process changes: count_up",
    "self.last = next(TICKETS)": "uses TICKETS, an iterator",
    "self.last = next(NUMBERS)": "uses NUMBERS, an iterator",
    # What no check can see.
    "self.last = eval(item)": "uses eval",
    "exec(item)": "uses exec",
    "self.last = __import__('time').time()": "uses __import__",
    "import importlib; importlib.import_module('time')": "uses importlib.import_module",
    "self.last = globals()['RANK']": "uses globals",
    # The order of sets.
    "self.last = list(self.members)": "goes through the set self.members",
    "self.last = tuple({item, 1})": "goes through the set",
    "for m in self.members: self.last = m": "goes through the set self.members",
    "self.last = self.members.pop()": "goes through the set self.members",
    "self.last = next(iter(self.members))": "goes through the set self.members",
    "self.last = [m for m in self.members | {1}]": "goes through the set",
    "s = set(item); self.items = [*s]": "goes through the set s",
    "self.last = ','.join(set(item))": "goes through the set",
    # What belongs to the class, or to no object.
    "self.parts.append(item)": "belongs to the class",
    "self.names[item] = 1": "belongs to the class",
    "type(self).parts.append(item)": "belongs to the class",
    "Jobs.parts.append(item)": "does not belong to the object",
    "c = TABLE; c[item] = 1": "does not belong to the object",
    "LOG.append(item)": "calls LOG.append(), which does not belong to the object",
    "TABLE.setdefault(item, 1)": "calls TABLE.setdefault(), which does not belong to the object",
    "log = LOG; log.append(item)": "calls log.append(), which does not belong to the object",
    "list.append(LOG, item)": "calls list.append(LOG, item), which does not belong to the object",
    # What cannot travel.
    "self.key(item)": "calls self.key, which is kept in the object",
    "self.last = sorted(self.items, key=lambda x: self.key(x))": "calls self.key",
}

READS = {
    "items = self.items; items.append(item)": "items",
    "items = self.items; items[0] = item": "items[0]",
    "first = self.items[0]; first.done = True": "first.done",
    "table = self.table; one = table.get(item); one.x = 1": "one.x",
    "for each in self.items: each.done = True": "each.done",
    "for k, v in self.table.items(): v.append(k)": "v.append",
    "top = max(self.items); top.clear()": "top.clear",
    "me = self; me.items.append(1)": "me.items.append",
    "return [x.pop() for x in self.items]": "x.pop",
    "drain(self.items)": "items.pop",
    "items = self.items; helpers.drain(items)": "items.pop",
    "self._helper()": "assigns self.last",
    "setattr(self, 'last', item)": "setattr",
    "(items := self.items).clear()": "calls (items := self.items).clear()",
    "list.append(self.items, item)": "calls list.append(self.items, item)",
    "dict.update(self.table, {item: 1})": "calls dict.update",
    "self.items.__setitem__(0, item)": "calls self.items.__setitem__()",
    "self.table.__delitem__(item)": "calls self.table.__delitem__()",
    "self.__dict__['last'] = item": "self.__dict__",
    "return stamp()": "uses time.time",
}

HARMLESS_IN_WRITES = [
    "self.last = sorted(self.members)",
    "self.last = len(self.members), sum(self.members), max(self.members)",
    "self.last = any(m > 1 for m in self.members)",
    "self.members = {m + 1 for m in self.members}",
    "self.last = set(m for m in self.members)",
    "self.members.add(item); self.members.discard(2)",
    "self.last = item in self.members",
    "for key in self.table: self.items.append(key)",
    "self.last = double(LIMIT) + TABLE['a']",
    "self.last = getattr(item, 'name', None)",
    "self.last = getattr(self, 'items')",
    "items = self.items; items.append(item)",
    "self.last = hashlib.sha256(b'x').digest()",
    "self.last = datetime.datetime.fromtimestamp(item, datetime.timezone.utc)",
    "self.last = Clock(2)",
    "self.parts = []",
    "self.last = self.parts",
    "time = item; self.last = time.time()",
    "t = time; t = item; self.last = t.time()",
    "self.last = time.time()  # orca: unchecked",
    "self.last = helpers.stamp()  # orca: unchecked",
    "self.last = helpers.deep()  # orca: unchecked",
    "self._stamped()  # orca: unchecked",
    "self.items.pop()",
    "s = set(item); s = sorted(s); self.items = [*s]",
]

HARMLESS_IN_READS = [
    "items = list(self.items); items.append(item); return items",
    "items = self.items[:]; items.append(item); return items",
    "items = self.items; items = sorted(items); items.append(1); return items",
    "found = []; found.append(self.items); return found",
    "found = []; list.append(found, self.items); return found",
    "(items := list(self.items)).clear(); return items",
    "return list(self.members), [m for m in self.members]",
    "return look(self.items)",
    "table = dict(self.table); table['x'] = 1; return table",
    "total = self.last; total += 1; return total",
]


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Declares a class with an operation of that body; gives what is said against it."""
    (tmp_path / "helpers.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "helpers", raising=False)

    def declare(kind: str, statement: str, defaults: str = "") -> str:
        path = tmp_path / "jobs.py"
        path.write_text(HEAD + CLASS.format(kind=kind, statement=statement, defaults=defaults))
        spec = importlib.util.spec_from_file_location("jobs", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "jobs", module)
        try:
            spec.loader.exec_module(module)
        except DeclarationError as error:
            return str(error)
        return ""

    return declare


@pytest.mark.parametrize("statement", WRITES)
def test_a_habit_in_a_write_is_found(declare: object, statement: str) -> None:
    assert callable(declare)
    assert WRITES[statement] in declare("write", statement)


@pytest.mark.parametrize("statement", READS)
def test_a_habit_in_a_read_is_found(declare: object, statement: str) -> None:
    assert callable(declare)
    assert READS[statement] in declare("read", statement)


@pytest.mark.parametrize("default", ["[]", "{}", "set()", "dict(a=1)"])
def test_defaults_that_all_calls_share_are_found(declare: object, default: str) -> None:
    assert callable(declare)
    assert "has the default" in declare("write", "pass", f", seen={default}")
    assert "has the default" in declare("read", "pass", f", *, seen={default}")


@pytest.mark.parametrize("statement", HARMLESS_IN_WRITES)
def test_what_is_no_habit_in_a_write_is_let_through(declare: object, statement: str) -> None:
    assert callable(declare)
    assert declare("write", statement) == ""


@pytest.mark.parametrize("statement", HARMLESS_IN_READS)
def test_what_is_no_habit_in_a_read_is_let_through(declare: object, statement: str) -> None:
    assert callable(declare)
    assert declare("read", statement) == ""


def test_a_finding_in_another_module_has_its_line(declare: object) -> None:
    assert callable(declare)
    said = declare("write", "helpers.deep()")
    assert "helpers.py:5: stamp, which middle calls, uses time.time" in said
