"""Rows in files: as JSON with all samples, to be read again, and as CSV."""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from orcalike.bench.bars import Bar
from orcalike.bench.harness import BenchError, Spread
from orcalike.bench.rows import Row

DIGITS = 6
"""What is kept of a figure in a file."""


def machine() -> dict[str, Any]:
    """What the figures belong to, in general terms."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
    }


def words_of(machine: dict[str, Any]) -> str:
    """The same in a line."""
    return f"{machine['cores']} cores, {machine['python']}, {machine['system']}"


def write_json(rows: Sequence[Row], file: Path) -> None:
    """All rows with their samples and verdicts, a line each."""
    lines = [json.dumps({**_rounded(asdict(row)), "verdict": row.verdict}) for row in rows]
    head = json.dumps(machine())
    file.write_text(f'{{"machine": {head}, "rows": [\n' + ",\n".join(lines) + "\n]}\n")


def read_json(file: Path) -> tuple[dict[str, Any], list[Row]]:
    """The machine and the rows of such a file; raises BenchError for another one."""
    try:
        result = json.loads(file.read_text())
        return result["machine"], [_row_of(it) for it in result["rows"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BenchError(f"{file} has no results: {error}") from None


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(it) for name, it in value.items()}
    return [_rounded(it) for it in value] if isinstance(value, list) else value


def _row_of(it: dict[str, Any]) -> Row:
    fields = {name: value for name, value in it.items() if name != "verdict"}
    for name in ("ours", "theirs", "ratio", "rate"):
        fields[name] = Spread(**it[name]) if it[name] else None
    fields["bar"] = Bar(**it["bar"]) if it["bar"] else None
    return Row(**fields)


def write_csv(rows: Sequence[Row], file: Path) -> None:
    """One line for each row: medians and quartiles, in the row's unit."""
    quartiles = [f"{it}_{part}" for it in ("ours", "theirs", "ratio") for part in Spread.PARTS]
    heads = ["what", "members", "unit", "beside", *quartiles]
    heads += ["writes_per_second", "must", "aim", "verdict"]
    with file.open("w", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(heads)
        for row in rows:
            spreads = (row.ours, row.theirs, row.ratio)
            figures = [getattr(it, part) for it in spreads for part in Spread.PARTS]
            figures += [row.rate.median] if row.rate else []
            words = [f"{value:.6g}" for value in figures] + ([] if row.rate else [""])
            bar = row.bar or Bar()
            words += [bar.words(row.unit), bar.words(row.unit, aim=True), row.verdict]
            lines.writerow([row.what, row.members, row.unit, row.beside, *words])
