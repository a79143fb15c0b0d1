"""One of several members that write until the test says "stop": `writer.py make|join ADDRESS R OPTIONS`.

R is the group's degree, OPTIONS a dict of others for `join`. It says each number that it knows to be
written, so that the test knows what may not be lost; at "stop" all that are left compare what they
have. What the file `do.PID` says it does at once: `reset MINIMUM`, `rejoin`, `hang`, `write`.
"""

from __future__ import annotations

import ast
import ctypes
import faulthandler
import logging
import os
import sys
import threading
import time
from typing import Any

from common import KEY, MEETINGS, STACK, called, tell, wait_for
from objects import Log, Owned

import orcalike as orca

logging.basicConfig(format="%(message)s")
faulthandler.register(10)
HOW, WHERE, DEGREE, OPTIONS = sys.argv[1:]
ORDER = MEETINGS / f"do.{os.getpid()}"


def joining() -> Any:
    """The group that the test asks for."""
    degree: Any = int(DEGREE) if DEGREE.isdigit() else DEGREE
    options = ast.literal_eval(OPTIONS)
    if HOW == "make":
        return orca.join(listen=WHERE, resilience=degree, key=KEY, stack=STACK, **options)
    return orca.join(seeds=WHERE, resilience=degree, timeout=60, key=KEY, stack=STACK, **options)


class Writing:
    """The thread that writes; each error is printed."""

    def __init__(self, group: orca.Group, log: Log) -> None:
        self.group, self.log = group, log
        self.number = 0
        self.incarnation = group.me.incarnation
        self.paused = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Write, now and then several at once, until it is enough."""
        while not called("stop"):
            if self.paused.is_set():
                time.sleep(0.01)
                continue
            try:
                self.write()
            except orca.OrcalikeError as error:
                self.paused.set()  # first: the test may have it go on as soon as it reads of the error
                tell(error=type(error).__name__, text=str(error), after=self.number)

    def write(self) -> None:
        """The next numbers: one that is waited for, or three under way at once."""
        under_way = []
        for _ in range(3 if self.number % 10 == 0 else 1):
            under_way.append(self.log.add.nowait(self.incarnation, self.number))
            self.number += 1
        for invocation in under_way:
            invocation.result()
        tell(writer=self.incarnation, acked=self.number - 1, size=self.group.size)
        time.sleep(0.002)


def obey(group: orca.Group, log: Log, writing: Writing, word: str, *rest: str) -> None:
    """Do what the test says, and tell the outcome."""
    try:
        if word == "reset":
            view = group.reset(minimum=int(rest[0]), timeout=60)
            tell(done=word, lineage=view.lineage, size=len(view.members))
        elif word == "rejoin":
            before = len(log.numbers(writing.incarnation))
            group.rejoin(timeout=60)
            tell(done=word, rank=group.rank, before=before, found=len(log.writers()))
            writing.incarnation, writing.number = group.me.incarnation, 0
            writing.paused.clear()
        elif word == "hang":
            tell(done=word)
            ctypes.PyDLL(None).pause()  # with the interpreter lock, for good
        elif word == "go on":
            writing.paused.clear()
            tell(done=word)
        else:
            tell(done=word, result=log.add(0, int(rest[0])))
    except orca.OrcalikeError as error:
        tell(done=word, error=type(error).__name__, text=str(error))


def serve() -> None:
    """Write, obey, and in the end say what there is."""
    with joining() as group:
        tell(
            address=group.address,
            rank=group.rank,
            incarnation=group.me.incarnation,
            pid=os.getpid(),
        )
        wait_for(lambda: called("all"), "all members")
        log, owned = group.share(Log, "log"), group.share(Owned, "owned")
        tell(ready=True)
        wait_for(lambda: called("begin"), "the beginning")
        if called(f"own.{os.getpid()}"):
            owned.take(group.rank)
        writing = Writing(group, log)
        writing.thread.start()
        while not called("stop"):
            if ORDER.exists():
                word, *rest = ORDER.read_text().split(",")
                ORDER.unlink()
                obey(group, log, writing, word, *rest)
            threading.Event().wait(0.01)
        writing.thread.join()
        if not called("alone"):
            group.barrier()
        tell(
            end=True,
            size=group.size,
            lineage=group.view.lineage,
            owner=owned.owner(),
            disorder=log.disorder(),
            fingerprint=log.fingerprint(),
            numbers={str(writer): log.numbers(writer) for writer in log.writers()},
        )
        if not called("alone"):
            group.barrier()


serve()
tell(left=True)
