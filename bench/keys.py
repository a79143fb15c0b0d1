"""Measures what a key costs: writes over TCP, encrypted, beside the same without a key.

Both groups are alike, and their writes take the same way: a member that orders, one that writes, one more.
Without a key TCP is refused, unless the program and its environment both insist (`insecure=True`,
`ORCALIKE_INSECURE=1`), as they do here. Calls that wait are pinned to one core, others have all.
docs/performance.md says what the figures mean.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench.harness import Lacking, Program, interleave
from orcalike.bench.table import Bar, Row, compare, run_script, scaled
from orcalike.errors import InsecureConfig
from orcalike.session.keys import read_keys, require_keys

MEMBER = Path(__file__).with_name("keyed_member.py")
MEMBERS = 3
WAIT_BAR = Bar(1.10, 1.05)
RATE_BAR = Bar(0.85, 0.95, at_least=True)
EXAMPLES = """\
examples:
  python -m orcalike.bench.keys            both rows; about a minute
  python -m orcalike.bench.keys --quick    a look at them; the figures mean little
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    waits: int
    bursts: int


FULL = Effort(rounds=15, waits=3000, bursts=100_000)
QUICK = Effort(rounds=3, waits=500, bursts=5_000)


def measure(quick: bool) -> list[Row]:
    """Both rows; raises Lacking without the package that encrypts."""
    effort = QUICK if quick else FULL
    cores = os.sched_getaffinity(0)
    with ExitStack() as stack:
        key = stack.enter_context(key_file())
        groups = {mode: stack.enter_context(group(mode)) for mode in (str(key), "insecure")}
        for programs in groups.values():
            for program in programs:
                program.run_on({max(cores)})
        waits = interleave(effort.rounds, asked(groups, f"wait {effort.waits}"))
        for programs in groups.values():
            for program in programs:
                program.run_on(cores)
        bursts = interleave(effort.rounds, asked(groups, f"burst {effort.bursts}"))
    with_key, without = (scaled(waits[mode], 1e6) for mode in groups)
    rates = [[1 / seconds for seconds in bursts[mode]] for mode in groups]
    beside = "without a key"
    return [
        compare(
            "write that waits, TCP with a key", MEMBERS, "us", with_key, beside, without, WAIT_BAR
        ),
        compare(
            "writes that do not wait, TCP with a key",
            MEMBERS, "/s", rates[0], beside, rates[1], RATE_BAR,
        ),
    ]  # fmt: skip


def asked(groups: dict[str, list[Program]], line: str) -> dict[str, Callable[[], float]]:
    """What the member that writes answers, by group."""

    def ask(writer: Program) -> Callable[[], float]:
        return lambda: float(writer.ask(line))

    return {mode: ask(programs[1]) for mode, programs in groups.items()}


@contextmanager
def key_file() -> Iterator[Path]:
    """A key of this measurement; raises Lacking without the package that encrypts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        path.touch(mode=0o600)
        path.write_bytes(secrets.token_bytes(32))
        try:
            require_keys(read_keys(path))
        except InsecureConfig as error:
            raise Lacking(str(error)) from None
        yield path


@contextmanager
def group(
    mode: str, places: Sequence[Callable[..., list[str]]] = (), host: str = "127.0.0.1"
) -> Iterator[list[Program]]:
    """The members: the one that orders, the one that writes, one more; `places` runs them elsewhere."""
    insecure = ["env", "ORCALIKE_INSECURE=1"] if mode == "insecure" else ["env"]
    command = [*insecure, "PYTHONHASHSEED=0", sys.executable, str(MEMBER)]
    with ExitStack() as stack:
        programs: list[Program] = []
        address = ""
        for number in range(MEMBERS):
            words = ["join", address, mode] if number else ["make", host, mode]
            place = places[number] if places else lambda *words: list(map(str, words))
            programs.append(stack.enter_context(Program(place(*command, *words))))
            found = programs[-1].answer()
            address = address or str(found)
        yield programs


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    return run_script("keys", (__doc__, EXAMPLES), measure, time_limit=300, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
