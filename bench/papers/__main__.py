"""Measures the papers' own experiments, and draws them beside the originals, as shapes.

A51 to A62 are from the evaluation of Amoeba's group communication (1996), D23 and D24 from that of
active messages for shared objects (1994), H86 to H94 from that of Horus (1994). Each writes
DIR/NUMBER.csv and, with matplotlib, DIR/NUMBER.svg; DIR/papers.json has them all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from orcalike.bench.harness import BenchError, require_uvloop, time_limit
from orcalike.bench.papers import plot, shapes
from orcalike.bench.papers.groups import FULL, QUICK, Effort
from orcalike.bench.papers.shapes import Shape

EXPERIMENTS = {
    "A51": "delay",
    "A52": "delay",
    "A53": "rpc",
    "A54": "breakdown",
    "A56": "throughput",
    "A57": "sequencer",
    "A60": "disjoint",
    "A61": "degrees",
    "A62": "degrees",
    "D23": "latency",
    "D24": "senders",
    "H86": "layering",
    "H87": "fast",
    "H91": "rounds",
    "H94": "rounds",
    "H93": "ordering",
}
"""The modules of this package that measure them."""

LEFT_OUT = {
    "A55": "delay by the BB method: TOTAL has the PB method alone",
    "A58": "throughput by the BB method: the same",
    "A59": "overrun of receive buffers: links have flow control, and lose nothing",
    "H92": "UDP beside hardware multicast: COM has neither",
}
"""What cannot be measured, and why."""

EXAMPLES = """\
examples:
  python -m orcalike.bench.papers                          all; three to five minutes
  python -m orcalike.bench.papers --only A51,D23           two of them
  python -m orcalike.bench.papers --quick --out /tmp/look  a look; the figures mean little
"""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m orcalike.bench.papers",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", type=chosen, metavar="NUMBERS", help="of " + ", ".join([*EXPERIMENTS, *LEFT_OUT])
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bench-papers"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument("--quick", action="store_true", help="few and short rounds, small groups")
    parser.add_argument(
        "--time-limit", type=int, default=900, metavar="S", help="seconds; default: %(default)s"
    )
    return parser.parse_args(arguments)


def chosen(text: str) -> list[str]:
    """The numbers of `--only`; raises what argparse reports."""
    numbers = [number.strip().upper() for number in text.split(",") if number.strip()]
    for number in numbers:
        if number not in EXPERIMENTS and number not in LEFT_OUT:
            known = ", ".join([*EXPERIMENTS, *LEFT_OUT])
            raise argparse.ArgumentTypeError(f"no experiment {number!r}; there are {known}")
    return numbers


def measure(numbers: Sequence[str], effort: Effort) -> Iterator[Shape]:
    """The shapes of these numbers, one module after the other."""
    for module in dict.fromkeys(EXPERIMENTS[number] for number in numbers):
        found: Callable[[Effort], tuple[Shape, ...]]
        found = import_module(f"orcalike.bench.papers.{module}").measure
        yield from (shape for shape in found(effort) if shape.number in numbers)


def write(shape: Shape, folder: Path) -> list[Path]:
    """Its files."""
    files = [folder / f"{shape.number}.csv"]
    shapes.write_csv(shape, files[0])
    if plot.can_plot():
        files.append(folder / f"{shape.number}.svg")
        plot.plot(shape, files[1])
    return files


def run(options: argparse.Namespace) -> None:
    """Measure, print and write, one experiment at a time: what is done stays when it is stopped."""
    asked = options.only or [*EXPERIMENTS, *LEFT_OUT]
    options.out.mkdir(parents=True, exist_ok=True)
    done: list[Shape] = []
    files = [options.out / "papers.json"]
    wanted = [number for number in asked if number in EXPERIMENTS]
    for shape in measure(wanted, QUICK if options.quick else FULL):
        shapes.print_shape(shape)
        sys.stdout.flush()
        done.append(shape)
        files += write(shape, options.out)
        shapes.write_json(done, files[0])
    for number in asked:
        if number in LEFT_OUT:
            print(f"{number}  left out, {LEFT_OUT[number]}")
    if done:
        print("written:", *files)
        if not plot.can_plot():
            print("no plots: matplotlib draws them; pip install 'orcalike[bench]'")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure within the time limit; returns the exit code."""
    options = parse(arguments)
    try:
        require_uvloop()
        with time_limit(options.time_limit):
            run(options)
    except (BenchError, OSError) as error:
        print(f"papers: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
