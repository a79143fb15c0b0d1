"""One member of a campaign whose callers write down what they call (`tests/lib/called.py`).

Half of the members have the group on an event loop, the others on a thread of its own; each has callers that are threads
and callers that are coroutines. Commands and reports are those of `member_program`; `read` comes before `leave`, when nothing is
written any more.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import orcalike as orca
from orcalike.session.joining import Joining
from tests.campaign.callers import Caller, Objects
from tests.campaign.member_program import (
    Membership,
    cut_connections,
    joining_of,
    parser_of_members,
    say,
    say_joined,
    tell_views,
)
from tests.lib.called import LAST, CallLog

THREADS, COROUTINES = 2, 2


class Callers(Membership):
    """All callers of this process, and what they have in common."""

    def __init__(self, group: orca.Group, options: argparse.Namespace) -> None:
        super().__init__(group, options.join_within)
        self.options = options
        self.stopped = threading.Event()
        self.objects = self.without_expulsion(lambda: Objects.share(group, options.objects))

    def caller(self, number: int, *, blocks: bool) -> Caller:
        """One caller, with a name and a file of its own."""
        name = f"{self.options.seed}.{number}"
        log = CallLog(Path(self.options.calls), name)
        return Caller(name, log, self.objects, random.Random(name), blocks=blocks)

    async def repeat(self, caller: Caller) -> None:
        """Call again and again; what is not a result is printed."""
        try:
            while not self.stopped.is_set():
                incarnation = self.incarnation
                try:
                    await caller.step()
                except orca.Expelled:
                    if caller.blocks:
                        self.rejoin(incarnation)
                    else:
                        await asyncio.to_thread(self.rejoin, incarnation)
                await self.pause(caller)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run has failed
            say(trouble=type(error).__name__, text=str(error))
            self.stopped.set()

    async def pause(self, caller: Caller) -> None:
        """Now and then, so that calls come both alone and in numbers."""
        seconds = caller.rng.choice((0.0, 0.0, 0.0, 4 * self.options.interval))
        if not caller.blocks:
            await asyncio.sleep(seconds)
        elif seconds:
            self.stopped.wait(seconds)

    def start(self, loop: asyncio.AbstractEventLoop) -> list[Future[None]]:
        """All callers; coroutines on that loop."""
        under_way = [
            asyncio.run_coroutine_threadsafe(self.repeat(self.caller(n, blocks=False)), loop)
            for n in range(COROUTINES)
        ]
        for number in range(COROUTINES, COROUTINES + THREADS):
            under_way.append(in_thread(self.repeat(self.caller(number, blocks=True))))
        return under_way

    def stop(self, under_way: list[Future[None]]) -> None:
        """No more calls; those that wait for members that are gone get what they wait for."""
        self.stopped.set()
        helper = self.caller(COROUTINES + THREADS, blocks=True)
        while not all(each.done() for each in under_way):
            self.without_expulsion(lambda: run_now(helper.help_others()))
            time.sleep(0.01)
        self.without_expulsion(self.group.fence)

    def read_last(self) -> None:
        """Read all that there is, when nothing is written any more."""
        log = CallLog(Path(self.options.calls), f"{self.options.seed}.{LAST}")
        caller = Caller(LAST, log, self.objects, random.Random(), blocks=True)
        self.group.fence()
        run_now(caller.read_all())
        say(past_layers=self.group._session.stack.dump()["PACK"]["past the layers"])


def run_now(step: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine of a caller that blocks, and so never waits for a loop."""
    try:
        step.send(None)
    except StopIteration:
        return
    raise AssertionError("a caller that blocks has awaited something")


def in_thread(step: Coroutine[Any, Any, None]) -> Future[None]:
    """The same on a thread of its own."""
    over = Future[None]()

    def run() -> None:
        try:
            run_now(step)
        finally:
            over.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    return over


def obey(group: orca.Group, options: argparse.Namespace, loop: asyncio.AbstractEventLoop) -> None:
    """Do what the supervisor says, to the end."""
    say_joined(group)
    threading.Thread(target=tell_views, args=(group,), daemon=True).start()
    callers = Callers(group, options)
    under_way = callers.start(loop)
    for line in sys.stdin:
        match line.strip():
            case "cut":
                say(cut=cut_connections())
            case "stop":
                callers.stop(under_way)
                say(stopped=True)
            case "read":
                callers.read_last()
            case "leave":
                return


def own_loop() -> asyncio.AbstractEventLoop:
    """An event loop on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


async def on_loop(joining: Joining, options: argparse.Namespace) -> None:
    """The group lives on the event loop, beside the coroutines."""
    async with joining as group:
        await asyncio.to_thread(obey, group, options, asyncio.get_running_loop())
        sys.exit()  # in an orderly way the last ones would wait for more members


def main() -> None:
    """What the supervisor starts."""
    parser = parser_of_members(__doc__)
    parser.add_argument("--calls", required=True, help="the folder for what is called")
    options = parser.parse_args()
    joining = joining_of(options)
    if options.seed % 2:
        asyncio.run(on_loop(joining, options))
    with joining as group:
        obey(group, options, own_loop())
        sys.exit()


if __name__ == "__main__":
    main()
