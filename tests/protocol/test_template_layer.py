"""The layer that docs/how-to-write-a-layer.md makes does what the page says."""

from __future__ import annotations

import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orcalike.simulator.simulation import Run
from orcalike.transport import stacks
from orcalike.transport.layers.base import Core, Layer
from tests.lib.manual_network import ManualNetwork
from tests.protocol.conformance import check_headers, check_layer
from tests.protocol.test_swarm import calm

PAGE = Path(__file__).parents[2] / "docs" / "how-to-write-a-layer.md"
STACK = "PACK:XFER:TOTAL:MBRSHIP:CHECK(salt=7):COM:sim"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What the page's code defines, with its layer registered."""
    monkeypatch.setattr(stacks, "_LAYERS", dict(stacks._LAYERS))
    code = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "page.py").write_text("\n".join(code))
    return runpy.run_path(str(tmp_path / "page.py"))


def test_the_page_makes_a_stack(page: dict[str, Any]) -> None:
    assert ":".join(str(spec) for spec in page["specs"]) == STACK


def test_the_layer_conforms(page: dict[str, Any]) -> None:
    check = page["Check"]
    check_layer(check, {"cast", "send", "contact", "up_cast", "up_send"})
    check_headers(check)
    assert isinstance(check(Core(), None, None), Layer)


def test_groups_with_the_layer_keep_the_promises(page: dict[str, Any]) -> None:
    for seed in range(20):
        assert Run(replace(calm(seed), stack=STACK)).run().views


def test_a_garbled_message_is_thrown_away(page: dict[str, Any]) -> None:
    network = ManualNetwork(STACK)
    network.form("a b")
    network.cast("b", b"x")
    frame = bytearray(network.frames("b")[0])
    frame[-1] ^= 1
    network.inject("a", network.link("a", "b"), bytes(frame))
    assert network.endpoints["a"].stack.dump()["CHECK"] == {"garbled": 1}
    assert network["a"].errors == ["a garbled message by link 0"]
    network.stabilize()
    assert network["a"].bodies == network["b"].bodies == [b"x"]
