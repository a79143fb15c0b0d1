"""In a notebook cells may wait on its event loop, and groups and objects are shown as tables."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import orcalike as orca
from orcalike.messages import (
    Data,
    create_group,
    leave_group,
    receive_from_group,
    send_to_group,
)
from orcalike.runtime.event_loops import allow_blocking
from tests.lib.shared_classes import Counter

Show = Callable[[Any], str | None]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[type[Any], Show]]:
    """A notebook: what it shows, by class."""
    shows: dict[type[Any], Show] = {}
    formatters = {"text/html": SimpleNamespace(for_type=shows.__setitem__)}
    shell = SimpleNamespace(
        kernel=object(), display_formatter=SimpleNamespace(formatters=formatters)
    )
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    yield shows
    allow_blocking(None)


def test_cells_may_wait(shown: dict[type[Any], Show]) -> None:
    async def cells() -> None:
        group = orca.connect()
        counter = group.share(Counter, "counter")
        assert counter.add(1) == 1
        assert await counter.add.aio(1) == 2
        assert counter.add.nowait(1).result() == 3
        group.fence()
        group.close()
        with orca.join("other") as other:
            assert other.size == 1
        chat = create_group()
        send_to_group(chat, b"hello")
        assert isinstance(receive_from_group(chat), Data)
        leave_group(chat)

    asyncio.run(cells())


def test_no_other_loop_may_wait(shown: dict[type[Any], Show]) -> None:
    async def in_a_loop() -> None:
        with pytest.raises(orca.BlockingInLoop):
            group.fence()

    with orca.join() as group:
        asyncio.run(in_a_loop())


def test_an_object_is_a_table(shown: dict[type[Any], Show], group: orca.Group) -> None:
    counter = group.share(Counter, "<counter>")
    counter.add(42)
    text = shown[Counter](counter)
    assert text is not None
    assert "<b>Counter</b> &#x27;&lt;counter&gt;&#x27;" in text
    assert "<td>42</td>" in text
    assert shown[Counter](Counter()) is None


@pytest.mark.parametrize("layer", ["TOTAL", "RING"])
def test_a_group_is_a_table(shown: dict[type[Any], Show], layer: str, tmp_path: Path) -> None:
    group = orca.connect(listen=f"unix:{tmp_path}/a", stack=f"PACK:XFER:{layer}:MBRSHIP:COM:unix")
    text = group._repr_html_()
    assert "this is rank 0" in text
    assert ("<td>orders the writes</td>" in text) == (layer == "TOTAL")
    with orca.join(seeds=group.address, stack=f"PACK:XFER:{layer}:MBRSHIP:COM:unix") as other:
        assert other._repr_html_().count("orders the writes") == (layer == "TOTAL")
    group.close()
    assert group._repr_html_() == "<b>Group</b> 'default': left"


def test_a_class_that_was_declared_again_is_explained(group: orca.Group) -> None:
    def run(cell: str) -> type[Any]:
        exec(cell, names)  # noqa: S102 - as a notebook does
        cls: type[Any] = names["Cell"]
        return cls

    cell = """
@orca.shared
class Cell:
    @orca.write
    def add(self, n: int) -> int:
        return n + {}
"""
    names: dict[str, Any] = {"orca": orca, "__name__": "notebook"}
    first = group.share(run(cell.format(1)), "cell")
    assert group.share(run(cell.format(1)), "cell") is first  # run again, and not changed
    changed = run(cell.format(2))
    with pytest.raises(orca.ClassMismatch, match="notebook:Cell was declared again, with another"):
        group.share(changed, "cell")
    group.drop(first)
    assert group.share(changed, "cell").add(1) == 3
