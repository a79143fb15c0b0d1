"""What is counted: reads and writes over both orders, of three whole runtimes in this process and of one, a fixed number of times.

    valgrind --tool=callgrind --dump-before=getppid ... python -m tests.instructions.workload [LIBRARY]

LIBRARY has a function `start_counting`, if valgrind does not count from the start: it is called when the
group is there, for what comes before runs four times faster uncounted.
It prints a line `NAME COUNT` for each section and calls `os.getppid()` after it, where valgrind
writes what it has counted since the last time. Nothing here waits, reads a clock or draws at random.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, cast

import orcalike as orca
from orcalike.bench.subjects import Plain, Shared
from orcalike.runtime import dispatch
from orcalike.runtime.assemble import make_runtime
from orcalike.runtime.dispatch import Runtime
from orcalike.session.group_calls import Share
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.descriptors import DescriptorsOfOne
from orcalike.transport.drivers.simdriver import SimDriver
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from tests.lib import orders
from tests.lib.command_lines import parser_of

IN_MEMORY = "PACK:XFER:RING:MBRSHIP:COM:unix"
MEMBERS = 3
CALLS, BURST, WAITS, ALONE = 5_000, 2_000, 500, 500
"""How often each operation is called in the first section; in the second, twice as often."""
M_TRIM_THRESHOLD, M_TOP_PAD = -1, -2
"""Parameters of mallopt(3): how much is free at the end of the heap before it shrinks, or once it has grown."""
HEAP_MAX = 1 << 30
HOLES = [(32_768, 200), (16_384, 200), (8_192, 400), (4_096, 800), (2_048, 1_000), (1_024, 1_000)]
"""Bytes of blocks, and how many of them: more than there can be free among used ones."""


@orca.shared
class Guarded:
    """Operations whose guards hold."""

    def __init__(self) -> None:
        self.value = 1

    @orca.write
    def add(self, amount: int) -> None:
        """A write of one integer."""
        self.value += amount

    @add.when
    def _(self, amount: int) -> bool:
        return self.value > 0

    @orca.read
    def get(self) -> int:
        """One attribute."""
        return self.value

    @get.when
    def _(self) -> bool:
        return self.value > 0


@orca.atomic
def move(source: Shared, target: Shared, amount: int) -> None:
    """An atomic function of two objects."""
    source.value -= amount
    target.value += amount


class Quiet:
    """The events of a group in which nothing happens."""

    def viewed(self, view: View) -> None:
        """A view was installed."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def complain(*words: object) -> None:
            raise AssertionError(f"{name}: {words}")

        return complain


class Node:
    """One member: what a `SimDriver` asks of a node, and where its links lead."""

    def __init__(self, network: Network, number: int) -> None:
        me = Member(f"sim:{number}", number + 1)
        self.world = network
        layers = parse_stack(f"PACK:XFER:{network.order}:MBRSHIP:COM:sim")
        self.stack = Stack(layers, StackConfig("group", epoch=10**18), me, number + 1)
        self.stack.descriptors = network.descriptors
        self.stack.waiting = int(
            network.order == "RING"
        )  # else it looks at news when time has passed
        self.runtime: Runtime = make_runtime(
            self.stack, me.incarnation, Quiet(), time=lambda: network.now
        )
        self.runtime.sender.driver = SimDriver(cast(Any, self))  # it asks for no more than this
        self.stack.above = self.runtime
        self.links: list[tuple[Node, int]] = []
        self.kicked = False

    def kick(self) -> None:
        """There is something in PACK."""
        self.kicked = True

    def call(self, input_: Callable[[int], None]) -> None:
        """One input of the stack."""
        input_(self.world.now)


class Network:
    """Moves frames until nothing is under way. Time stands still."""

    def __init__(self, order: str = "") -> None:
        """Over this order; without one, over that of the test."""
        self.order = order or orders.usual
        self.now = 10**9
        self.descriptors = DescriptorsOfOne()
        self.nodes = [Node(self, number) for number in range(MEMBERS)]
        self.woken = self.nodes if self.order == "RING" else []
        """They look at once at what is in shared memory, which is no network."""
        for node in self.nodes:
            node.stack.join("sim:0" if node is not self.nodes[0] else "", self.now)
            self.move()

    def move(self) -> None:
        """Let all arrive."""
        moved = True
        while moved:
            moved = False
            for node in self.nodes:
                if node.kicked:
                    node.kicked = False
                    node.stack.flush_packets(self.now)
                out = node.stack.out
                for link, frame in out.take():
                    peer, number = node.links[link]
                    peer.stack.receive(number, frame, self.now)
                    moved = True
                for address in out.take_connects() if out.connects else ():
                    self._connect(node, self.nodes[int(address.removeprefix("sim:"))])
                    moved = True
            for node in self.woken:
                node.stack.rung(self.now)
                if (deadline := node.stack.deadline) is not None and deadline <= self.now:
                    node.stack.expire(self.now)
                    moved = True
                moved = moved or node.kicked

    def _connect(self, node: Node, peer: Node) -> None:
        here, there = len(node.links), len(peer.links)
        node.links.append((peer, there))
        peer.links.append((node, here))
        peer.stack.link_up(there, "", self.now)
        node.stack.link_up(here, f"sim:{self.nodes.index(peer)}", self.now)


def share(network: Network, runtime: Runtime) -> Shared:
    """The object of that member."""
    invocation = Share(runtime).nowait(Shared, "shared")
    network.move()
    return invocation.result()


# What is counted.


def plain_add(it: Plain, count: int) -> None:
    """The yardstick: it tells one interpreter from another."""
    for _ in repeat(None, count):
        it.add(1)


def read(it: Shared, count: int) -> None:
    """A read of one attribute."""
    for _ in repeat(None, count):
        it.get()


def add_later(network: Network, it: Shared, count: int) -> None:
    """Writes that do not wait, applied at three members."""
    for _ in repeat(None, count):
        it.add.nowait(1)
    network.move()


def put_later(network: Network, it: Shared, count: int) -> None:
    """The same with a string and an integer."""
    for _ in repeat(None, count):
        it.put.nowait("hello", 7)
    network.move()


def add_each(network: Network, it: Shared, count: int) -> None:
    """Writes one by one, each a packet of its own, through the sequencer."""
    for _ in repeat(None, count):
        done = it.add.nowait(1)
        network.move()
        done.result()


def read_guarded(it: Guarded, count: int) -> None:
    """Reads whose guard holds."""
    for _ in repeat(None, count):
        it.get()


def add_alone(it: Shared | Guarded, count: int) -> None:
    """Writes that wait, in a group of one with its own driver."""
    for _ in repeat(None, count):
        it.add(1)


def add_later_alone(group: orca.Group, it: Shared, count: int) -> None:
    """Writes that do not wait, in such a group, until all are applied."""
    for _ in repeat(None, count):
        it.add.nowait(1)
    group.fence()


def move_alone(source: Shared, target: Shared, count: int) -> None:
    """Calls of an atomic function that wait, likewise."""
    for _ in repeat(None, count):
        move(source, target, 1)


def sections() -> Iterator[tuple[str, int, Callable[[int], object]]]:
    """The name of each operation, how often it is called, and what calls it so often."""
    plain = Plain()
    yield "plain call", CALLS, lambda count: plain_add(plain, count)
    for order, over in ("TOTAL", ""), ("RING", ", RING"):
        network = Network(order)
        objects = [share(network, node.runtime) for node in network.nodes]
        yield from of_three(network, objects[1], over)  # not the member that orders
    with orca.join() as group:
        yield from of_one(group, "")
    with orca.join(stack=IN_MEMORY) as group:
        yield from of_one(group, ", RING")
        it = group.share(Shared, "alone")
        yield "read, alone, RING", CALLS, lambda count: read(it, count)
        yield "write, no wait, alone, RING", BURST, lambda count: add_later_alone(group, it, count)


def of_three(
    network: Network, it: Shared, over: str
) -> Iterator[tuple[str, int, Callable[[int], object]]]:
    """What is counted at one of three members, whose frames are moved by hand."""
    yield f"read{over}", CALLS, lambda count: read(it, count)
    yield f"write, no wait, (int){over}", BURST, lambda count: add_later(network, it, count)
    yield f"write, no wait, (str, int){over}", BURST, lambda count: put_later(network, it, count)
    yield f"write, one by one{over}", WAITS, lambda count: add_each(network, it, count)


def of_one(group: orca.Group, over: str) -> Iterator[tuple[str, int, Callable[[int], object]]]:
    """What is counted in a group of one with its own driver."""
    alone = group.share(Shared, "alone")
    guarded = group.share(Guarded, "guarded")
    yield f"write that waits, alone{over}", ALONE, lambda count: add_alone(alone, count)
    yield f"the same with a guard{over}", ALONE, lambda count: add_alone(guarded, count)
    yield f"read with a guard{over}", ALONE, lambda count: read_guarded(guarded, count)
    other = group.share(Shared, "other")
    yield f"atomic function of two{over}", ALONE, lambda count: move_alone(alone, other, count)


def build() -> str:
    """What the counts belong to: interpreter, machine, and the compiler of the compiled modules."""
    found = re.search(
        rb"(GCC|clang version)[^\0]*?(\d+)\.\d+\.\d+", Path(dispatch.__file__).read_bytes()
    )
    compiler = (
        f"{found[1].decode().split()[0]} {found[2].decode()}" if found else "unknown compiler"
    )
    version = "{}.{}".format(*sys.version_info)
    return f"{platform.python_implementation()} {version}, {compiler}, {platform.machine()}"


def fill_holes() -> None:
    """Take all that malloc has free among its used blocks, for good.

    What it finds there differs from build to build and from folder to folder, and looking for it
    takes instructions (up to 4 % of a write that waits). Without holes each block comes from the
    same place.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(M_TRIM_THRESHOLD, HEAP_MAX)
    libc.mallopt(M_TOP_PAD, HEAP_MAX // 4)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    for size, often in HOLES:
        for _ in range(often):
            libc.malloc(size)


def main() -> None:
    """Each operation a few times, then often, then twice as often."""
    parser = parser_of("tests.instructions.workload", __doc__)
    parser.add_argument("library", metavar="LIBRARY", nargs="*")
    libraries = parser.parse_args().library
    gc.disable()
    starts = [ctypes.CDLL(library).start_counting for library in libraries]
    print(f"build {build()}", flush=True)
    for name, often, call in sections():
        while starts:
            starts.pop()()
        fill_holes()
        for count in (often // 4, often, 2 * often):
            os.getppid()
            call(count)
        os.getppid()
        print(f"{often} {name}", flush=True)
    os._exit(0)  # the interpreter's own end takes long when it is counted, too


if __name__ == "__main__":
    main()
