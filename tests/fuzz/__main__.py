"""Run the targets in interleaved rounds until the time is over, or repeat one batch.

    python -m tests.fuzz --seconds 60
    python -m tests.fuzz --only marshal,stream --seed 7 --batches 1

It stops at the first error, and says with which arguments the batch comes again. Of a process that
a sanitizer ended, the last line of its output says the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.fuzz.decoders import DECODERS
from tests.fuzz.endpoints import ENDPOINTS
from tests.fuzz.sealed import SEALED
from tests.protocol.hostile import Rng

TARGETS = {**DECODERS, **ENDPOINTS, **SEALED}


def run(
    names: Sequence[str], seed: int, seconds: float, batches: int
) -> dict[str, tuple[int, float]]:
    """Run batches of each target; returns its inputs and seconds. Raises what a target raises."""
    done = dict.fromkeys(names, (0, 0.0))
    end = time.monotonic() + seconds
    for number in range(seed, seed + batches):
        for name in names:
            if number > seed and time.monotonic() > end:
                return done
            count, took = batch(name, number)
            done[name] = done[name][0] + count, done[name][1] + took
    return done


def batch(name: str, seed: int) -> tuple[int, float]:
    """One batch of one target."""
    again = f"python -m tests.fuzz --only {name} --seed {seed} --batches 1"
    print(again, file=sys.stderr, flush=True)
    rng, count, start = Rng(seed), 0, time.monotonic()
    try:
        target = TARGETS[name]()
        try:
            for _ in range(target.inputs):
                count += target.one(rng)
        finally:
            target.close()
    except BaseException as error:
        error.add_note(again)
        raise
    return count, time.monotonic() - start


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--batches", type=int, default=1 << 30, help="of each target, at the most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(TARGETS), help="targets, with commas")
    options = parser.parse_args()
    done = run(options.only.split(","), options.seed, options.seconds, options.batches)
    for name, (count, took) in done.items():
        print(f"{name:<12}{count:>10} inputs {took:>8.0f} s")
    print(f"{'all':<12}{sum(count for count, _ in done.values()):>10} inputs: nothing broke")


if __name__ == "__main__":
    main()
