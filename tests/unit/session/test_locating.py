"""What a process finds out before it listens: it is tried until the time of the join is over."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.session.options import JoinOptions, make_options
from tests.lib.processes import DEADLINE, until


def folder_of(address: str) -> Path:
    """Where a Unix socket is."""
    return Path(address.removeprefix("unix:")).parent


def test_a_joiner_waits_for_the_folder_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens in that folder, which may be made by the first member, as the seed's socket is."""
    looked = []
    located = JoinOptions.located

    def look(options: JoinOptions) -> JoinOptions:
        looked.append(options)
        return located(options)

    monkeypatch.setattr(JoinOptions, "located", look)
    address = f"unix:{tmp_path}/later/group"
    with ThreadPoolExecutor() as threads:
        joining = threads.submit(orca.connect, seeds=address, timeout=DEADLINE)
        until(lambda: bool(looked) or joining.done(), "the joiner looks for the folder")
        (tmp_path / "later").mkdir()
        with (
            orca.join(listen=address, size=2) as group,
            contextlib.closing(joining.result()) as joined,
        ):
            assert joined.rank == 1
            assert [folder_of(each.address) for each in group.members] == [tmp_path / "later"] * 2


MISSING = r"within 0.05 s: no folder of a seed is there: /.*/later$"


def test_a_folder_that_does_not_come_is_named(tmp_path: Path) -> None:
    with pytest.raises(orca.JoinFailed, match=MISSING):
        orca.connect(seeds=f"unix:{tmp_path}/later/group", timeout=0.05)


async def test_a_folder_that_does_not_come_is_named_on_an_event_loop(tmp_path: Path) -> None:
    with pytest.raises(orca.JoinFailed, match=MISSING):
        async with orca.join(seeds=f"unix:{tmp_path}/later/group", timeout=0.05):
            pytest.fail("there is no group")


def test_a_process_listens_beside_the_first_seed_whose_folder_is_there(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/group"
    seeds = [f"unix:{tmp_path}/gone/group", address]
    assert make_options(seeds=seeds).is_located
    with orca.join(listen=address), orca.join(seeds=seeds) as joined:
        assert folder_of(joined.address) == tmp_path
