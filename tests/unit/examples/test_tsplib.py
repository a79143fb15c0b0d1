"""The examples' reader of TSPLIB files: its distances, the forms of a matrix, what it refuses."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def tsplib(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as the example programs see it: beside them, in no package."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("tsplib")


def explicit(form: str, weights: str, size: int = 3) -> str:
    return (
        f"NAME: tiny\nTYPE: TSP\nDIMENSION: {size}\nEDGE_WEIGHT_TYPE: EXPLICIT\n"
        f"EDGE_WEIGHT_FORMAT: {form}\nEDGE_WEIGHT_SECTION\n{weights}\nEOF\n"
    )


def coordinates(kind: str, lines: str, size: int = 2) -> str:
    return f"DIMENSION : {size}\nEDGE_WEIGHT_TYPE : {kind}\nNODE_COORD_SECTION\n{lines}\nEOF\n"


@pytest.mark.parametrize(
    ("form", "weights"),
    [
        ("FULL_MATRIX", "0 1 2\n1 0 3\n2 3 0"),
        ("UPPER_ROW", "1 2\n3"),
        ("LOWER_ROW", "1\n2 3"),
        ("UPPER_DIAG_ROW", "0 1 2\n0 3\n0"),
        ("LOWER_DIAG_ROW", "0\n1 0\n2 3 0"),
    ],
)
def test_each_form_of_a_matrix_gives_the_same_distances(
    tsplib: ModuleType, form: str, weights: str
) -> None:
    expected = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    assert tsplib.parse(explicit(form, weights)).distances == expected
    one_line = weights.replace("\n", " ")  # lines of a section need not be the matrix's rows
    assert tsplib.parse(explicit(form, one_line)).distances == expected


@pytest.mark.parametrize(
    ("kind", "a", "b", "distance"),
    [
        ("EUC_2D", "0 0", "3 4", 5),
        ("EUC_2D", "0 0", "0 2.5", 3),  # a half goes up, also from an even number
        ("EUC_2D", "0 0", "0 2.4", 2),
        ("ATT", "0 0", "10 0", 4),  # sqrt(10) = 3.16, rounded 3: never down, so 4
        ("ATT", "0 0", "0 12", 4),  # 3.79
        ("ATT", "0 0", "30 10", 10),  # sqrt(100) exactly
        ("GEO", "16.47 96.10", "16.47 94.44", 153),  # burma14's first two cities
        ("GEO", "38.24 20.42", "36.08 -5.21", 2314),  # ulysses16: west of Greenwich
        ("GEO", "10.00 20.00", "10.00 20.00", 1),  # by the rule: two cities at one place
    ],
)
def test_a_distance_by_the_rule(
    tsplib: ModuleType, kind: str, a: str, b: str, distance: int
) -> None:
    instance = tsplib.parse(coordinates(kind, f"1 {a}\n2 {b}"))
    assert instance.distances == [[0, distance], [distance, 0]]


def test_degrees_are_cut_not_rounded(tsplib: ModuleType) -> None:
    # 54 minutes are 100.2 km. Rounded, 0.54 would be 1 degree less 46 * 5/3 hundredths: 26.0 km.
    assert tsplib.parse(coordinates("GEO", "1 0.0 0.0\n2 0.54 0.0")).distances[0][1] == 101
    assert tsplib.parse(coordinates("GEO", "1 0.0 0.0\n2 -0.54 0.0")).distances[0][1] == 101


def test_what_the_comments_tell(tsplib: ModuleType) -> None:
    text = explicit("UPPER_ROW", "1 2\n3")
    plain = tsplib.parse(text)
    assert (plain.name, plain.cities, plain.optimum) == ("tiny", ["1", "2", "3"], None)
    named = tsplib.parse(f"COMMENT: cities: Ur, Uruk\nCOMMENT: cities: Eridu\n{text}")
    assert named.cities == ["Ur", "Uruk", "Eridu"]
    assert tsplib.parse(f"COMMENT: optimum: 6\n{text}").optimum == 6
    assert tsplib.parse(f"COMMENT: 14-Staedte in Burma (Zaw Win)\n{text}").optimum is None


def test_cities_come_by_number_and_displays_are_left_out(tsplib: ModuleType) -> None:
    shuffled = coordinates("EUC_2D", "3 0 7\n1 0 0\n2 0 3", size=3)
    assert tsplib.parse(shuffled).distances[0] == [0, 3, 7]
    shown = explicit("UPPER_ROW", "1 2 3\nDISPLAY_DATA_SECTION\n1 5 5\n2 6 6\n3 7 7")
    assert tsplib.parse(shown).distances[0] == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "DIMENSION is missing"),
        ("DIMENSION: many", "DIMENSION is many"),
        ("DIMENSION: 0", "1 city or more"),
        ("DIMENSION: 3\nEDGE_WEIGHT_TYPE: XRAY1", "known are EUC_2D, ATT, GEO, EXPLICIT"),
        ("DIMENSION: 3", "EDGE_WEIGHT_TYPE is missing"),
        (explicit("UPPER_COL", "1 2 3"), "EDGE_WEIGHT_FORMAT is UPPER_COL"),
        (explicit("UPPER_ROW", "1 2"), "has 2 numbers: UPPER_ROW of 3 cities has 3"),
        (explicit("UPPER_ROW", "1 2 x"), "a weight is x"),
        (explicit("FULL_MATRIX", "0 1 2 1 0 3 2 4 0"), "not symmetric"),
        (coordinates("EUC_2D", "1 0 0"), "2 cities need 6"),
        (coordinates("EUC_2D", "1 0 0\n1 1 1"), "from 1 to 2, each once"),
        (coordinates("EUC_2D", "1 0 0\n2 1 inf"), "a coordinate is inf"),
        (coordinates("EUC_2D", "1 0 0\n2 1 east"), "a coordinate is east"),
        ("COMMENT: cities: Ur\n" + explicit("UPPER_ROW", "1 2 3"), "name 1 cities"),
        ("Dear reader", "neither `KEY: value` nor part of a section: Dear reader"),
    ],
)
def test_what_is_no_instance_is_refused_with_its_reason(
    tsplib: ModuleType, text: str, says: str
) -> None:
    with pytest.raises(tsplib.TsplibError, match=r"^[^\n]*$") as caught:
        tsplib.parse(text)
    assert says in str(caught.value)


def test_a_files_errors_name_the_file(tsplib: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "broken.tsp"
    path.write_text("DIMENSION: 0\n")
    with pytest.raises(tsplib.TsplibError, match=r"broken\.tsp: DIMENSION is 0"):
        tsplib.read(path)


def test_the_shipped_instance(tsplib: ModuleType) -> None:
    instance = tsplib.read(EXAMPLES / "silkroad.tsp")
    assert len(instance.distances) == len(instance.cities) == 21
    assert (instance.cities[0], instance.cities[-1]) == ("Xi'an", "Constantinople")
    assert instance.optimum == 15425


def test_a_random_instance_is_the_same_for_a_seed(tsplib: ModuleType) -> None:
    instance = tsplib.random_instance(8, seed=3)
    assert instance == tsplib.random_instance(8, seed=3)
    assert instance != tsplib.random_instance(8, seed=4)
    assert all(instance.distances[i][i] == 0 for i in range(8))
