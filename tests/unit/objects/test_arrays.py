"""NumPy arrays that members share."""

from __future__ import annotations

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
