"""The instances that `tsp.py` solves: symmetric ones of TSPLIB 95, and random ones.

Distances are whole numbers by TSPLIB's own rules, so that a tour's length compares with the
published one. Known are EUC_2D, ATT, GEO and EXPLICIT in five forms. Beyond the format, a comment
`optimum: N` tells the length of the best tour, and comments `cities: A, B, ...` name the cities.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Point = tuple[float, float]


class TsplibError(ValueError):
    """The text is not an instance that this reader knows; it says what to change."""


@dataclass(frozen=True)
class Instance:
    name: str
    distances: list[list[int]]
    cities: list[str]  # as the comments name them, else "1", "2", ...
    optimum: int | None  # as the comments tell it


def read(path: str | Path) -> Instance:
    """The instance in a file.

    Raises:
        OSError: There is no such file, or it cannot be read.
        TsplibError: It is no instance of a kind known here.
    """
    # Old instances carry comments in Latin-1, which takes any byte; ours are plain ASCII.
    text = Path(path).read_text(encoding="latin-1")
    try:
        return parse(text)
    except TsplibError as error:
        raise TsplibError(f"{path}: {error}") from None


def parse(text: str) -> Instance:
    """The instance in a text.

    Raises:
        TsplibError: It is no instance of a kind known here.
    """
    keys, comments, sections = _split(text)
    size = _whole("DIMENSION", keys.get("DIMENSION", ""))
    if size < 1:
        raise TsplibError(f"DIMENSION is {size}: an instance has 1 city or more")
    kind = keys.get("EDGE_WEIGHT_TYPE", "")
    if kind == "EXPLICIT":
        distances = _matrix(size, keys.get("EDGE_WEIGHT_FORMAT", ""), sections)
    elif kind in METRICS:
        points = _points(size, sections)
        distances = [[METRICS[kind](a, b) if a is not b else 0 for b in points] for a in points]
    else:
        known = ", ".join([*METRICS, "EXPLICIT"])
        raise TsplibError(f"EDGE_WEIGHT_TYPE is {kind or 'missing'}: known are {known}")
    noted = [value for key, value in comments if key == "optimum"]
    named = [
        name.strip() for key, value in comments if key == "cities" for name in value.split(",")
    ]
    if named and len(named) != size:
        raise TsplibError(f"the comments name {len(named)} cities, DIMENSION is {size}")
    return Instance(
        name=keys.get("NAME", "unnamed"),
        distances=distances,
        cities=named or [str(number) for number in range(1, size + 1)],
        optimum=_whole("optimum", noted[-1]) if noted else None,
    )


def random_instance(cities: int, seed: int) -> Instance:
    """Cities at random places in a square: the same in each process, by the seed."""
    places = random.Random(seed)
    points = [(places.randrange(1000), places.randrange(1000)) for _ in range(cities)]
    return Instance(
        name=f"random {seed}",
        distances=[[euclidean(a, b) for b in points] for a in points],
        cities=[str(number) for number in range(1, cities + 1)],
        optimum=None,
    )


def euclidean(a: Point, b: Point) -> int:
    """EUC_2D: the length of the straight line, rounded."""
    return _nearest(math.hypot(a[0] - b[0], a[1] - b[1]))


def pseudo_euclidean(a: Point, b: Point) -> int:
    """ATT: a shortened line, never rounded down."""
    length = math.sqrt(((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) / 10)
    rounded = _nearest(length)
    return rounded + 1 if rounded < length else rounded


def geographical(a: Point, b: Point) -> int:
    """GEO: kilometres on TSPLIB's idea of the Earth, from latitudes and longitudes as DDD.MM."""
    (latitude_a, longitude_a), (latitude_b, longitude_b) = map(_radians, a), map(_radians, b)
    q1 = math.cos(longitude_a - longitude_b)
    q2 = math.cos(latitude_a - latitude_b)
    q3 = math.cos(latitude_a + latitude_b)
    # Rounding can carry the cosine of two cities at one place past 1.
    cosine = min(1.0, 0.5 * ((1 + q1) * q2 - (1 - q1) * q3))
    return int(6378.388 * math.acos(cosine) + 1)


METRICS: dict[str, Callable[[Point, Point], int]] = {
    "EUC_2D": euclidean,
    "ATT": pseudo_euclidean,
    "GEO": geographical,
}

# For each row of the matrix, the columns that the file gives, in its order.
FORMS: dict[str, Callable[[int, int], range]] = {
    "FULL_MATRIX": lambda row, size: range(size),
    "UPPER_ROW": lambda row, size: range(row + 1, size),
    "LOWER_ROW": lambda row, size: range(row),
    "UPPER_DIAG_ROW": lambda row, size: range(row, size),
    "LOWER_DIAG_ROW": lambda row, size: range(row + 1),
}


def _radians(angle: float) -> float:
    # TSPLIB's text says that degrees are rounded; its published optima are those of cutting
    # them, and of this pi.
    degrees = int(angle)
    return 3.141592 * (degrees + 5 * (angle - degrees) / 3) / 180


def _nearest(length: float) -> int:
    # Halves go up; Python's round() would take them to the even number.
    return int(length + 0.5)


def _split(text: str) -> tuple[dict[str, str], list[tuple[str, str]], dict[str, list[str]]]:
    """The `KEY : value` lines, the `key: value` comments, and each section's words."""
    keys: dict[str, str] = {}
    comments: list[tuple[str, str]] = []
    sections: dict[str, list[str]] = {}
    section: list[str] | None = None
    for line in text.splitlines():
        key, colon, value = (part.strip() for part in line.partition(":"))
        if key == "EOF":
            break
        if key == "COMMENT":
            word, _, rest = (part.strip() for part in value.partition(":"))
            comments.append((word, rest))
        elif key.endswith("_SECTION"):
            section = sections.setdefault(key, [])
        elif colon:
            keys[key] = value
            section = None
        elif section is not None:
            section.extend(line.split())
        elif key:
            raise TsplibError(f"this line is neither `KEY: value` nor part of a section: {key}")
    return keys, comments, sections


def _points(size: int, sections: dict[str, list[str]]) -> list[Point]:
    words = sections.get("NODE_COORD_SECTION", [])
    if len(words) != 3 * size:
        raise TsplibError(
            f"NODE_COORD_SECTION has {len(words)} numbers: {size} cities need {3 * size}, "
            "a line `number x y` for each"
        )
    points: dict[int, Point] = {}
    for at in range(0, len(words), 3):
        number = _whole("a city's number", words[at])
        points[number] = (_coordinate(words[at + 1]), _coordinate(words[at + 2]))
    if sorted(points) != list(range(1, size + 1)):
        raise TsplibError(f"NODE_COORD_SECTION must number its cities from 1 to {size}, each once")
    return [points[number] for number in range(1, size + 1)]


def _matrix(size: int, form: str, sections: dict[str, list[str]]) -> list[list[int]]:
    if form not in FORMS:
        raise TsplibError(
            f"EDGE_WEIGHT_FORMAT is {form or 'missing'}: known are {', '.join(FORMS)}"
        )
    words = sections.get("EDGE_WEIGHT_SECTION", [])
    places = [(row, column) for row in range(size) for column in FORMS[form](row, size)]
    if len(words) != len(places):
        raise TsplibError(
            f"EDGE_WEIGHT_SECTION has {len(words)} numbers: {form} of {size} cities has "
            f"{len(places)}"
        )
    distances = [[0] * size for _ in range(size)]
    for (row, column), weight in zip(places, _weights(words), strict=True):
        distances[row][column] = weight
        if form != "FULL_MATRIX":
            distances[column][row] = weight
    if any(distances[row][column] != distances[column][row] for row, column in places):
        raise TsplibError("the matrix is not symmetric: this reader takes TYPE: TSP alone")
    return distances


def _weights(words: list[str]) -> Iterator[int]:
    return (_whole("a weight", word) for word in words)


def _whole(what: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise TsplibError(f"{what} is {word or 'missing'}: it must be a whole number") from None


def _coordinate(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TsplibError(f"a coordinate is {word}: it must be a finite number")
    return value
