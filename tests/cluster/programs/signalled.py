"""Members that call all that there is to call, while signals with handlers that raise hit them.

    signalled.py make|join ADDRESS MEMBERS --hits N --seed S --kinds write,fence,...

Each member goes through the same kinds of calls. It repeats a call until N signals have ended it;
another process sends them, and a thread (`_thread.interrupt_main`), at moments drawn from the seed.
In the end all members must agree on everything. One that makes no progress shows its stacks and
ends with code 3.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import os
import random
import signal
import subprocess
import sys
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from types import FrameType

DEADLINE = float(os.environ.get("SIGNALLED_DEADLINE", "30"))
"""Seconds after which a member that nothing happens to is stuck."""

SIGNALS = (signal.SIGINT, signal.SIGUSR2, signal.SIGTERM)


def send(pid: int, seed: int, mean: float) -> None:
    """Send signals to a process, while it is this one's parent."""
    rng = random.Random(seed)
    while os.getppid() == pid:
        time.sleep(rng.expovariate(1 / mean))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, rng.choice(SIGNALS))


if __name__ == "__main__" and sys.argv[1] == "send":
    with contextlib.suppress(KeyboardInterrupt):
        send(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    sys.exit()

from common import STACK, meet, tell
from objects import Buffer, Gate, Log

import orcalike as orca
from orcalike.messages import (
    Data,
    create_group,
    join_group,
    leave_group,
    receive_from_group,
    send_to_group,
)


class Hit(Exception):
    """What the handlers of other signals than SIGINT raise: no fault, by its class."""


@orca.atomic
def move(source: Buffer, target: Log, writer: int, number: int) -> int:
    """Two objects in one step."""
    source.trace.append(("move", writer, number))
    return target.add(writer, number)


@orca.atomic
def wait_for_both(source: Gate, target: Log, writer: int) -> int:
    """Waits for what never comes."""
    return target.add(writer, -1)


@wait_for_both.when
def _(source: Gate, target: Log, writer: int) -> bool:
    return source.height >= 2


class Storm:
    """The signals of this member, and what it does when one comes."""

    def __init__(self, seed: int, mean: float) -> None:
        self.rng = random.Random(seed)
        self.shots = 0
        """How many more handlers raise: none between two rounds."""
        self.instead: Callable[[], object] | None = None
        """What a handler does while an event loop runs, which no exception may come out of."""
        self.hits = 0
        self.came = 0
        self.progress = time.monotonic()
        self.arguments = [str(os.getpid()), str(seed), str(mean)]
        self.sender: subprocess.Popen[bytes] | None = None
        self.on = True
        sys.unraisablehook = self._ignored
        threading.Thread(target=self._interrupt, args=(seed + 1, 4 * mean), daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    def start(self) -> None:
        """Set the handlers, and have the signals sent."""
        signal.signal(signal.SIGINT, self._ctrl_c)
        signal.signal(signal.SIGUSR2, self._hit)
        signal.signal(signal.SIGTERM, self._hit)
        if self.sender is None:
            self.sender = subprocess.Popen([sys.executable, __file__, "send", *self.arguments])

    def _ctrl_c(self, number: int, frame: FrameType | None) -> None:
        if self._strikes():
            signal.default_int_handler(number, frame)

    def _hit(self, number: int, frame: FrameType | None) -> None:
        if self._strikes():
            raise Hit(number)

    def _ignored(self, found: sys.UnraisableHookArgs) -> None:
        """Python dropped what a handler raised, as in a finalizer: nothing ends the call then.

        If orcalike was the reason no other hit comes, and the member makes no progress.
        """
        sys.__unraisablehook__(found)
        module = str(getattr(found.object, "__module__", None) or "")
        if isinstance(found.exc_value, KeyboardInterrupt | Hit) and "orcalike" not in module:
            self.shots += 1

    def _strikes(self) -> bool:
        self.came += 1
        if not self.shots or self.instead is nothing:
            return False
        self.shots -= 1
        self.hits += 1
        if self.instead is not None:
            self.instead()
        return self.instead is None

    def _interrupt(self, seed: int, mean: float) -> None:
        rng = random.Random(seed)
        while self.on:
            time.sleep(rng.expovariate(1 / mean))
            if self.sender is not None:
                interrupt_main()

    def _watch(self) -> None:
        seen = -1
        while self.on:
            time.sleep(0.2)
            if self.hits != seen:
                seen, self.progress = self.hits, time.monotonic()
            if time.monotonic() - self.progress > DEADLINE:
                print("no progress", file=sys.stderr, flush=True)
                faulthandler.dump_traceback(all_threads=True)
                os._exit(3)

    def repeat(self, call: Callable[[], object], hits: int) -> None:
        """Call again and again, until so many signals have ended a call."""
        end = self.hits + hits
        while self.hits < end:
            try:
                try:
                    self.shots = self.rng.choice((1, 1, 1, 2))
                    while True:
                        call()
                except (KeyboardInterrupt, Hit, asyncio.CancelledError):
                    pass
                self.shots = 0
            except (KeyboardInterrupt, Hit, asyncio.CancelledError):
                pass
            self.shots = 0

    def stop(self) -> None:
        """No more signals."""
        self.sender, sender = None, self.sender
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if sender is not None:
            sender.kill()
            sender.wait()
        self.progress = time.monotonic()


def nothing() -> None:
    """A signal that comes too early, or too late."""


class Calls:
    """One kind of call each."""

    def __init__(self, storm: Storm, group: orca.Group, how: str, directory: str) -> None:
        self.storm = storm
        self.group, self.how, self.directory = group, how, directory
        self.me = os.getpid()
        self.log = group.share(Log, "log")
        self.buffer = group.share(Buffer, "buffer", 2)
        self.gate = group.share(Gate, "gate")
        self.other = group.share(Log, "other")
        self.number = 0
        self.rank = group.rank
        self.trip = f"unix:{directory}/trip"
        self.post: object = None

    def _next(self) -> int:
        self.number += 1
        return self.number

    def write(self) -> None:
        self.log.add(self.rank, self._next())

    def read(self) -> None:
        self.log.last(self.rank)

    def read_long(self) -> None:
        self.log.disorder()

    def nowait(self) -> None:
        self.log.add.nowait(self.rank, self._next())

    def nowait_result(self) -> None:
        self.log.add.nowait(self.rank, self._next()).result()

    def cancel(self) -> None:
        self.gate.walk.nowait(self.rank, 1).cancel()

    def aio(self) -> None:
        async def run() -> None:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            self.storm.instead = lambda: loop.call_soon_threadsafe(task.cancel)
            try:
                for _ in range(20):
                    await self.log.add.aio(self.rank, self._next())
                await self.group.drain()
                await self.group.fence.aio()
                await self.gate.walk.aio(self.rank, 1)
            finally:
                self.storm.instead = nothing

        # A handler that raises ends asyncio's own code in the middle too.
        self.storm.instead = nothing
        try:
            asyncio.run(run())
        finally:
            self.storm.instead = None

    def share(self) -> None:
        self.group.share(Log, f"passing {self._next() % 7}")

    def share_drop(self) -> None:
        passing = self.group.share(Log, f"passing {self._next() % 7}")
        with contextlib.suppress(orca.ObjectDropped):
            passing.add(self.rank, 1)
        with contextlib.suppress(orca.ObjectDropped):
            self.group.drop(passing)

    def find(self) -> None:
        self.group.find(Log, "log")

    def find_none(self) -> None:
        self.group.find(Log, "never shared")

    def fence(self) -> None:
        self.group.fence()

    def barrier(self) -> None:
        self.group.barrier()

    def fence_limit(self) -> None:
        with contextlib.suppress(TimeoutError):
            self.group.fence(timeout=0.0001)

    def atomic(self) -> None:
        move(self.buffer, self.log, self.rank, self._next())

    def atomic_guard(self) -> None:
        wait_for_both(self.gate, self.log, self.rank)

    def guard(self) -> None:
        self.gate.walk(self.rank, 1)

    def guard_limit(self) -> None:
        with contextlib.suppress(orca.InvocationTimeout):
            self.gate.walk.options(timeout=0.005)(self.rank, 1)

    def guard_read(self) -> None:
        self.gate.above(1)

    def put_get(self) -> None:
        self.buffer.put(self.rank, self._next())
        self.buffer.get(self.rank)

    def info(self) -> None:
        self.group.info()
        self.group.digest()

    def views(self) -> None:
        for _ in self.group.views():
            pass

    def join_leave(self) -> None:
        """Another group, with the next member of this one; or alone with a socket."""
        with orca.join("side", listen=f"unix:{self.directory}/side{self.me}") as side:
            it = side.share(Log, "it")
            it.add(0, self._next())

    def join_other(self) -> None:
        """A group that the first member has, while it writes to it."""
        with orca.join("trip", seeds=self.trip) as side:
            side.share(Log, "it").add.nowait(self.rank, 1)

    def messages(self) -> None:
        """The primitives: what was sent comes back."""
        assert self.post is not None
        send_to_group(self.post, b"x")  # type: ignore[arg-type]
        while not isinstance(receive_from_group(self.post), Data):  # type: ignore[arg-type]
            pass

    def messages_wait(self) -> None:
        """The next message."""
        with contextlib.suppress(TimeoutError):
            while True:
                receive_from_group(self.post, timeout=0)  # type: ignore[arg-type]
        receive_from_group(self.post)  # type: ignore[arg-type]


KINDS = [name for name in vars(Calls) if not name.startswith("_")]


@contextlib.contextmanager
def prepared(calls: Calls, kind: str, members: int) -> Iterator[None]:
    """What a kind needs beside the group."""
    if kind.startswith("messages"):
        address = f"unix:{calls.directory}/post_{kind}"
        if calls.how == "make":
            post = create_group("post", listen=address)
            meet(f"post {kind}", members)
        else:
            meet(f"post {kind}", members)
            post = join_group("post", seeds=address)
        calls.post = post
        yield
        meet(f"posted {kind}", members)
        leave_group(post)
    elif kind == "join_other" and calls.how == "make":
        with orca.join("trip", listen=calls.trip):
            meet("trip", members)
            yield
            meet("tripped", members)
    elif kind == "join_other":
        meet("trip", members)
        yield
        meet("tripped", members)
    else:
        yield


def run(options: argparse.Namespace) -> None:
    """Join, go through all kinds, and say what came of it."""
    directory = os.environ["MEETINGS"]
    storm = Storm(options.seed, options.mean)
    if options.early:
        storm.start()
    joining = (
        orca.join(listen=options.address, size=options.members, stack=STACK)
        if options.how == "make"
        else orca.join(seeds=options.address, size=options.members, timeout=60, stack=STACK)
    )
    with joining as group:
        storm.start()
        calls = Calls(storm, group, options.how, directory)
        rank = group.rank
        for kind in options.kinds:
            began = time.monotonic()
            came = storm.came
            meet(f"before {kind}", options.members)
            with prepared(calls, kind, options.members):
                call = getattr(calls, kind)
                if kind == "join_other" and options.how == "make":
                    call = calls.write
                storm.progress = time.monotonic()
                storm.repeat(call, options.hits)
                meet(f"after {kind}", options.members)
            storm.progress = time.monotonic()
            tell(kind=kind, rank=rank, came=storm.came - came, seconds=time.monotonic() - began)
        storm.stop()
        group.fence()
        meet("all done", options.members)
        group.barrier()
        group.fence()
        meet("fenced", options.members)
        tell(
            rank=rank,
            hits=storm.hits,
            digest=group.digest(),
            states=[calls.log.fingerprint(), calls.buffer.fingerprint(), calls.gate.visitors()],
            disorder=len(calls.log.disorder()),
            view=group.view.number,
        )
        meet("facts printed", options.members)
    tell(left=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=["make", "join"])
    parser.add_argument("address")
    parser.add_argument("members", type=int)
    parser.add_argument("--hits", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mean", type=float, default=0.002)
    parser.add_argument("--early", action="store_true", help="handlers are set before joining too")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
