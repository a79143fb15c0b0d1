"""The table as pictures: how far each figure is from its bar, and how writes go with the members.

It needs matplotlib, which is the extra `bench`. The pictures are SVG, the same for the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orcalike.bench.harness import BenchError
from orcalike.bench.table import Row

COLORS = {"aim": "tab:green", "met": "tab:blue", "near": "tab:orange", "short": "tab:red"}
WAITS = ("write that waits, thread", "write that waits, coroutine")
BURSTS = ("write, no wait, (int)", "write, no wait, (str, int)", "write, no wait, (int), uvloop")


def check() -> None:
    """Raises BenchError if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise BenchError("no matplotlib: pip install 'orcalike[bench]'") from None


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw what the rows are enough for; returns the files."""
    check()
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "orcalike"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, picture in (
        ("bars", _bars(rows)),
        ("waits", _waits(rows)),
        ("bursts", _bursts(rows)),
    ):
        if picture is not None:
            drawn.append(folder / f"{name}.svg")
            picture.savefig(drawn[-1], metadata={"Date": None}, bbox_inches="tight")
    return drawn


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def _bars(rows: Sequence[Row]) -> Any | None:
    """What must be is 1, and to the left of it is better; what is aimed at is a diamond."""
    checked = [(row, limit) for row in rows for limit in row.limits][::-1]
    if not checked:
        return None
    figure, axes = _figure(8, 1 + 0.3 * len(checked))
    for place, (row, limit) in enumerate(checked):
        values = (limit.samples.low, limit.samples.median, limit.samples.high)
        parts = [limit.must / it if limit.at_least else it / limit.must for it in values]
        low, median, high = max(min(parts), 0.001), max(parts[1], 0.001), max(parts)
        axes.plot([low, high], [place, place], color=COLORS[row.verdict], linewidth=2)
        axes.plot(median, place, "o", color=COLORS[row.verdict])
        if limit.aim is not None:
            aim = limit.must / limit.aim if limit.at_least else limit.aim / limit.must
            axes.plot(aim, place, "D", color="gray", markerfacecolor="none")
    axes.set_yticks(range(len(checked)), [f"{row.what} ({row.members})" for row, _ in checked])
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("share of what must be; left is better; diamond: what is aimed at")
    axes.set_title("Each figure and its bar (in brackets: members)")
    return figure


def _waits(rows: Sequence[Row]) -> Any | None:
    """Microseconds over members."""
    figure, axes = _figure(6, 4)
    drawn = False
    for what in WAITS:
        found = sorted((row for row in rows if row.what == what), key=lambda row: row.members)
        if len(found) > 1:
            drawn = True
            members = [row.members for row in found]
            axes.plot(members, [row.ours.median for row in found], "o-", label=what)
            limit = [row.theirs.median for row in found]
            axes.plot(members, limit, "x--", label=f"{found[0].beside}, {what.split()[-1]}")
    return _finish(figure, axes, "us", "A write that waits, on one core") if drawn else None


def _bursts(rows: Sequence[Row]) -> Any | None:
    """Millions a second over members."""
    figure, axes = _figure(6, 4)
    drawn = False
    for what in BURSTS:
        found = sorted((row for row in rows if row.what == what), key=lambda row: row.members)
        rates = [(row.members, row.rate.median / 1e6) for row in found if row.rate]
        if len(rates) > 1:
            drawn = True
            axes.plot(*zip(*rates, strict=True), "o-", label=what)
    return _finish(figure, axes, "million a second", "Writes that do not wait") if drawn else None


def _finish(figure: Any, axes: Any, unit: str, title: str) -> Any:
    axes.set_xlabel("members")
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    axes.set_title(title)
    return figure
