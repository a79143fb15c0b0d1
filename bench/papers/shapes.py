"""Shapes: what an experiment gives today, and what its original gave, each beside its first point.

Figures of the nineties and of today have nothing in common but how they grow: with the members of
the group, with the size of a message, with the senders. So a curve is drawn twice, as it was
measured and divided by its first point, and only the second is compared with the original.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from orcalike.bench.harness import Spread
from orcalike.bench.results import machine


@dataclass(frozen=True)
class Point:
    """The median of some samples at `x`, and their quartiles."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """Points in the order of x."""

    name: str
    points: tuple[Point, ...]

    @classmethod
    def of(cls, name: str, samples: Mapping[float, Sequence[float]], factor: float = 1.0) -> Curve:
        """From the samples at each x, each of them multiplied by `factor`."""
        points = []
        for x in sorted(samples):
            spread = Spread.of([sample * factor for sample in samples[x]])
            points.append(Point(x, spread.median, spread.low, spread.high))
        return cls(name, tuple(points))

    @classmethod
    def exactly(cls, name: str, values: Mapping[float, float]) -> Curve:
        """From one value at each x: the figures of a paper have no spread."""
        return cls(name, tuple(Point(x, y, y, y) for x, y in sorted(values.items())))

    def fitted(self, name: str, ends: Iterable[float]) -> Curve:
        """The straight line through the points (least squares), at the x of `ends`."""
        count = len(self.points)
        mean_x = sum(point.x for point in self.points) / count
        mean_y = sum(point.y for point in self.points) / count
        spread = sum((point.x - mean_x) ** 2 for point in self.points)
        common = sum((point.x - mean_x) * (point.y - mean_y) for point in self.points)
        slope = common / spread if spread else 0.0
        return Curve.exactly(name, {x: mean_y + slope * (x - mean_x) for x in ends})


@dataclass(frozen=True)
class Shape:
    """One experiment: today's curves, limits of the same run, and what the paper says."""

    number: str
    """The features' numbers, as `A51`."""
    title: str
    x_label: str
    y_label: str
    """With the unit of `today` and `beside`."""
    today: tuple[Curve, ...]
    beside: tuple[Curve, ...] = ()
    """Limits, and what people would use instead; measured in the same run."""
    original: tuple[Curve, ...] = ()
    original_unit: str = ""
    notes: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    """Names of the x 0, 1, ... if they are no numbers: then shapes are shares of the sum."""

    def sides(self) -> list[tuple[str, str, Curve]]:
        """All curves, each with its side and its unit."""
        return [
            *(("today", self.y_label, curve) for curve in self.today),
            *(("beside", self.y_label, curve) for curve in self.beside),
            *(("original", self.original_unit, curve) for curve in self.original),
        ]

    def relative(self, curve: Curve) -> list[float]:
        """Its points, each divided by the first one.

        If x are categories: by the sum, and what stands beside by that of today's first curve.
        """
        whole = curve.points[0].y
        if self.categories:
            sum_of = self.today[0] if curve in self.beside else curve
            whole = sum(point.y for point in sum_of.points)
        return [point.y / whole if whole else 0.0 for point in curve.points]


# For people.


def print_shape(shape: Shape) -> None:
    """One table: a line for each curve, with a column for each x."""
    print(f"{shape.number}  {shape.title}: {shape.y_label}, over {shape.x_label}")
    places = sorted({point.x for _, _, curve in shape.sides() for point in curve.points})
    heads = ["", *(shape.categories[int(x)] if shape.categories else f"{x:g}" for x in places)]
    lines = [heads, *(_cells(shape, side, curve, places) for side, _, curve in shape.sides())]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    for line in lines:
        padded = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        print(("  " + "  ".join(padded)).rstrip())
    for note in shape.notes:
        print(f"  ({note})")
    print()


def _cells(shape: Shape, side: str, curve: Curve, places: Sequence[float]) -> list[str]:
    shares = shape.relative(curve)
    found = {
        point.x: f"{_short(point.y)} {share:.0%}" if shape.categories else
        f"{_short(point.y)} ({share:.2f}x)" if len(shares) > 1 else _short(point.y)
        for point, share in zip(curve.points, shares, strict=True)
    }  # fmt: skip
    name = f"original, {curve.name}, {shape.original_unit}" if side == "original" else curve.name
    return [name, *(found.get(x, "") for x in places)]


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


# For programs.


def write_json(shapes: Sequence[Shape], file: Path) -> None:
    """All shapes, with the machine that they were measured on."""
    result = {
        "machine": machine(),
        "shapes": [
            {**asdict(shape), "relative": {c.name: shape.relative(c) for c in shape.today}}
            for shape in shapes
        ],
    }
    file.write_text(json.dumps(result, indent=1) + "\n")


def write_csv(shape: Shape, file: Path) -> None:
    """One shape: a line for each point."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["experiment", "side", "curve", "unit", "x", "y", "low", "high", "shape"])
        for side, unit, curve in shape.sides():
            for point, share in zip(curve.points, shape.relative(curve), strict=True):
                x = shape.categories[int(point.x)] if shape.categories else point.x
                row = [side, curve.name, unit, x, point.y, point.low, point.high, share]
                writer.writerow([shape.number, *row])
