"""Stack strings: what can be built is built, and what cannot says which layer is missing."""

from __future__ import annotations

import pytest

from orcalike.transport import stacks
from orcalike.transport.config import StackConfig
from orcalike.transport.errors import OrcalikeError, StackError
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import DEFAULT, layers, parse_stack, register
from orcalike.transport.view import Member


def test_the_default_stack_stands() -> None:
    specs = parse_stack(DEFAULT)
    assert [spec.cls.name for spec in specs] == ["PACK", "XFER", "TOTAL", "MBRSHIP", "COM"]
    assert specs[-1].medium == "unix"
    stack = Stack(specs, StackConfig("group"), Member("unix:/x", 1), 1)
    assert [layer.name for layer in stack.layers] == [spec.cls.name for spec in specs]
    assert stack.focus("TOTAL") is stack.layers[2]
    assert stack.focus("NAK") is None
    assert list(stack.dump()) == [spec.cls.name for spec in specs]


@pytest.mark.parametrize(
    "text",
    [
        DEFAULT,
        "TOTAL:MBRSHIP:COM:tcp",
        "PACK(size=1024):XFER:TOTAL(packets=8,bytes=4096):MBRSHIP:COM:sim",
        "TOTAL:DROP(lose=10,span=5):MBRSHIP:DROP:COM:sim",
    ],
)
def test_a_stack_prints_as_the_string_that_made_it(text: str) -> None:
    assert ":".join(str(spec) for spec in parse_stack(text)) == text


def test_spaces_do_not_matter() -> None:
    assert parse_stack(" TOTAL( packets = 8 ) : MBRSHIP : COM : sim ") == parse_stack(
        "TOTAL(packets=8):MBRSHIP:COM:sim"
    )


ERRORS = {
    "": "does not end in COM:medium, as in PACK:XFER:TOTAL:MBRSHIP:COM:unix",
    "TOTAL:MBRSHIP": "does not end in COM:medium",
    "TOTAL:MBRSHIP:COM": "does not end in COM:medium",
    "TOTAL:MBRSHIP:COM:": "COM knows no medium ''; it runs over unix, tcp, sim",
    "TOTAL:MBRSHIP:COM:carrier-pigeon": "COM knows no medium 'carrier-pigeon'",
    "COM:COM:sim": "COM stands at the bottom, once",
    "TOTAL:COM:sim": "TOTAL needs VIEWS from below: put MBRSHIP below it",
    "XFER:MBRSHIP:COM:sim": "XFER needs TOTAL_ORDER from below: put TOTAL below it",
    "PACK:MBRSHIP:COM:sim": "PACK needs TOTAL_ORDER from below: put TOTAL below it",
    "MBRSHIP:TOTAL:COM:sim": "TOTAL needs VIEWS from below: put MBRSHIP below it",
    "TOTAL:XFER:MBRSHIP:COM:sim": "XFER needs TOTAL_ORDER from below",
    "NAK:COM:sim": "no layer 'NAK'; there are PACK, STABLE, XFER, TOTAL, MBRSHIP, COM, DROP",
    "total:MBRSHIP:COM:sim": "no layer 'total'",
    "TOTAL(:MBRSHIP:COM:sim": r"'TOTAL\(' in .* is not a layer: NAME or NAME\(parameter=value\)",
    "TOTAL::COM:sim": "'' in .* is not a layer",
    "TOTAL(8):MBRSHIP:COM:sim": "TOTAL takes parameters as name=value, not '8'",
    "TOTAL(size=8):MBRSHIP:COM:sim": r"TOTAL\(size=8\): .*unexpected keyword argument 'size'",
    "TOTAL(packets=2):MBRSHIP:COM:sim": "TOTAL needs a window of 4 packets",
    "TOTAL(packets=many):MBRSHIP:COM:sim": r"TOTAL\(packets=many\): ",
    "PACK(size=0):TOTAL:MBRSHIP:COM:sim": "PACK needs a size",
    "DROP(lose=101):COM:sim": "DROP takes percentages, from 0 to 100, not 101",
    "DROP(span=0):COM:sim": "DROP needs a span of 1 ns",
}


@pytest.mark.parametrize("text", ERRORS)
def test_a_stack_that_cannot_hold_together_is_refused(text: str) -> None:
    with pytest.raises(StackError, match=ERRORS[text]) as caught:
        parse_stack(text)
    assert isinstance(caught.value, OrcalikeError)
    assert caught.value.__cause__ is None


def test_layers_tells_what_each_needs_and_gives() -> None:
    known = {info.name: info for info in layers()}
    assert known["TOTAL"].needs == {"VIEWS", "FIFO", "ANY_SIZE"}
    assert known["TOTAL"].promises == {"TOTAL_ORDER"}
    for info in known.values():
        assert info.doc.startswith(f"{info.name}: ")
        assert "\n\n" not in info.doc


def test_a_layer_of_ones_own_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(Layer):
        name = "MINE"
        needs = frozenset({"ETHER"})

        def __init__(self, core: object, config: object, me: object) -> None:
            super().__init__(core)  # type: ignore[arg-type]

    monkeypatch.setattr(stacks, "_LAYERS", dict(stacks._LAYERS))
    assert register(Mine) is Mine
    with pytest.raises(StackError, match="MINE needs ETHER from below: no layer gives that"):
        parse_stack("MINE:COM:sim")


def test_a_layers_name_is_in_capitals() -> None:
    class Mine(Layer):
        name = "Mine"

    with pytest.raises(StackError, match="a layer's name is in capitals, not 'Mine'"):
        register(Mine)
