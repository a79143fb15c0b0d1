"""NumPy arrays that members share."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from orcalike.objects.arrays import Array
from tests.unit.objects.members import Lab, run_in_threads


def test_operations_on_slices_lose_nothing(lab: Lab) -> None:
    arrays: list[Array] = lab.at_each(Array, np.zeros((4, 3)))

    def add(array: Array) -> None:
        for _ in range(10):
            array.add(1.0, np.s_[1:3])
            array.add([1, 2, 3], 0)

    run_in_threads([lambda a=array: add(a) for array in arrays])  # type: ignore[misc]
    for group in lab.groups:
        group.fence()
    wanted = [[30, 60, 90], [30] * 3, [30] * 3, [0] * 3]
    for array in arrays:
        assert np.array_equal(np.asarray(array), wanted)
    lab.compare()


def test_all_operations(lab: Lab) -> None:
    here, there, _ = lab.at_each(Array, [1, 2, 3, 4], "f8")
    here[::2] = [10, 30]
    here[-1] = 7
    here += 1
    here *= 2
    assert list(here[:]) == [22, 6, 62, 16]
    here.minimum(20, [0, 3])
    here.maximum([0, 9, 0, 0])
    here.set(5, np.array([False, False, True, False]))
    assert (there.shape, there.ndim, there.size, len(there), there.dtype) == ((4,), 1, 4, 4, "f8")
    lab.groups[1].fence()
    assert list(there[:]) == [20, 9, 5, 16]
    assert there[2] == 5
    assert there[None, 1:].shape == (1, 3)
    part = there[:2]
    part[:] = 0  # a copy
    assert there[0] == 20
    with pytest.raises(IndexError):
        here[9] = 1
    with pytest.raises(ValueError, match="broadcast"):
        here.add([1, 2, 3])
    assert here.add.nowait(1, ...).result() is None
    assert repr(here).startswith("orcalike array(")
    lab.compare()


@pytest.mark.parametrize("dtype", ["u1", "i1", "u8", "f4", "c8"])
def test_a_number_of_python_takes_the_type_of_the_array(lab: Lab, dtype: str) -> None:
    shared, plain = lab.share(Array, [1, 2], dtype), np.array([1, 2], dtype)
    shared.add(1)
    shared.multiply(3, 0)
    plain += 1
    plain[0] *= 3
    assert (shared.dtype, list(shared[:])) == (plain.dtype, list(plain))
    lab.compare()


INDEXES = [
    True,
    False,
    np.True_,
    (0, True),
    ([True, False, True], 1),
    range(2),
    np.int64(1),
    (..., 0),
    (None, 1),
    (slice(None), [0, 1]),
    (),
]


@pytest.mark.parametrize("index", INDEXES, ids=repr)
def test_an_index_means_what_it_means_to_numpy(lab: Lab, index: Any) -> None:
    shared, plain = lab.share(Array, np.zeros((3, 4))), np.zeros((3, 4))
    shared[index] = 7
    plain[index] = 7
    assert np.array_equal(np.asarray(shared), plain)
    lab.compare()


@pytest.mark.parametrize("index", ["first", 1.0, (0, 1.5), object()])
def test_what_is_no_index(lab: Lab, index: Any) -> None:
    with pytest.raises(IndexError):
        lab.share(Array, [1, 2])[index] = 1


def test_a_complex_number_is_no_element_of_real_ones(lab: Lab) -> None:
    with pytest.raises(TypeError):
        lab.share(Array, [1.0, 2.0])[0] = 1j
