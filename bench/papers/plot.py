"""Plots of shapes, by matplotlib if it is installed (`pip install 'orcalike[bench]'`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from orcalike.bench.papers.shapes import Curve, Shape

FLOOR = 20
"""So many times as high, and it needs another scale."""

STYLES = {"today": "-", "beside": ":", "original": "--"}


def can_plot() -> bool:
    """Whether matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def plot(shape: Shape, file: Path) -> None:
    """Two panels: today's figures with their quartiles, and all curves as shapes; an SVG file."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    try:
        figure.suptitle(f"{shape.number}: {shape.title}")
        (_bars if shape.categories else _lines)(shape, left, right)
        for panel in (left, right):
            panel.set_xlabel(shape.x_label)
            panel.grid(alpha=0.3)
            panel.legend(fontsize="small")
        right.set_ylim(bottom=0)
        if _spans_decades(shape):
            left.set_yscale("log")
        else:
            left.set_ylim(bottom=0)
        left.set_ylabel(f"{shape.y_label}, today")
        right.set_ylabel("share of the sum" if shape.categories else "beside the first point")
        figure.savefig(file, metadata={"Date": None})
    finally:
        pyplot.close(figure)


def _spans_decades(shape: Shape) -> bool:
    """Whether a curve would lie on the floor where another one is drawn."""
    highest = [max(point.y for point in curve.points) for curve in (*shape.today, *shape.beside)]
    return not shape.categories and max(highest) > FLOOR * min(highest)


def _lines(shape: Shape, left: Any, right: Any) -> None:
    for side, _, curve in shape.sides():
        xs, name = [point.x for point in curve.points], _label(side, curve)
        if side != "original":
            ys = [point.y for point in curve.points]
            below = [max(0.0, point.y - point.low) for point in curve.points]
            above = [max(0.0, point.high - point.y) for point in curve.points]
            left.errorbar(
                xs, ys, [below, above], label=name, linestyle=STYLES[side], marker="o", capsize=2
            )
        if len(xs) > 1:
            right.plot(xs, shape.relative(curve), STYLES[side], label=name, marker="o")


def _bars(shape: Shape, left: Any, right: Any) -> None:
    sides = shape.sides()
    width = 0.8 / len(sides)
    for number, (side, _, curve) in enumerate(sides):
        xs = [point.x + (number + 0.5) * width - 0.4 for point in curve.points]
        name = _label(side, curve)
        if side != "original":
            left.bar(xs, [point.y for point in curve.points], width, label=name)
        right.bar(xs, shape.relative(curve), width, label=name)
    for panel in (left, right):
        panel.set_xticks(range(len(shape.categories)), shape.categories)


def _label(side: str, curve: Curve) -> str:
    return f"original: {curve.name}" if side == "original" else curve.name
