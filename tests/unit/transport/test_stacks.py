"""Stack strings: what can be built is built, and what cannot says which layer is missing."""

from __future__ import annotations

import re

import pytest

from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.marshal import Codec
from orcalike.session.message_inbox import Inbox
from orcalike.transport import stacks
from orcalike.transport.config import StackConfig
from orcalike.transport.errors import OrcalikeError, StackError
from orcalike.transport.layers.base import Core, Layer
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
        "DROP(lose=10):TOTAL:DROP(delay=10,span=5):MBRSHIP:DROP:COM:sim",
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
    "XFER:MBRSHIP:COM:sim": "XFER needs TOTAL_ORDER from below: put TOTAL, RING or ORDER below it",
    "PACK:MBRSHIP:COM:sim": "PACK needs TOTAL_ORDER from below: put TOTAL, RING or ORDER below it",
    "MBRSHIP:TOTAL:COM:sim": "TOTAL needs VIEWS from below: put MBRSHIP below it",
    "TOTAL:XFER:MBRSHIP:COM:sim": "XFER needs TOTAL_ORDER from below",
    "NAK:COM:sim": "no layer 'NAK'; there are PACK, STABLE, XFER, TOTAL, RING, ORDER, MBRSHIP, COM, DROP",
    "total:MBRSHIP:COM:sim": "no layer 'total'",
    "TOTAL(:MBRSHIP:COM:sim": r"'TOTAL\(' in .* is not a layer: NAME or NAME\(parameter=value\)",
    "TOTAL::COM:sim": "'' in .* is not a layer",
    "TOTAL(8):MBRSHIP:COM:sim": "TOTAL takes parameters as name=value, not '8'",
    "TOTAL(size=8):MBRSHIP:COM:sim": r"TOTAL\(size=8\): .*unexpected keyword argument 'size'",
    "TOTAL(packets=2):MBRSHIP:COM:sim": "TOTAL needs a window of 4 packets",
    "TOTAL(packets=many):MBRSHIP:COM:sim": r"TOTAL\(packets=many\): ",
    "PACK(size=0):TOTAL:MBRSHIP:COM:sim": "PACK needs a size",
    "TOTAL:DROP(lose=20):MBRSHIP:COM:sim": (
        r"TOTAL needs FIFO, VIEWS from below: DROP\(lose=20\) below it takes FIFO and VIEWS away: "
        "leave it out, or change its parameters"
    ),
    "TOTAL:MBRSHIP:DROP(lose=20):COM:unix": (
        r"MBRSHIP needs FIFO from below: DROP\(lose=20\) below it takes FIFO away"
    ),
    "XFER:DROP(repeat=1):TOTAL:MBRSHIP:COM:sim": r"XFER needs .*DROP\(repeat=1\) below it takes TOTAL_ORDER and VIEWS away",
    "XFER:DROP(reorder=1):TOTAL:MBRSHIP:COM:sim": "XFER needs TOTAL_ORDER, VIEWS from below",
    "PACK:PACK:TOTAL:MBRSHIP:COM:sim": "PACK stands in it twice: once is enough",
    "TOTAL:XFER:TOTAL:MBRSHIP:COM:sim": "TOTAL stands in it twice",
    "PACK(size=9,size=10):TOTAL:MBRSHIP:COM:sim": "PACK is given 'size' twice",
    "PACK(size=2000000):TOTAL:MBRSHIP:COM:sim": "PACK takes a size of 1048576 bytes, 65536",
    "PACK(messages=65537):TOTAL:MBRSHIP:COM:sim": "PACK takes a size of 1048576 bytes, 65536",
    "PACK(bytes=67108865):TOTAL:MBRSHIP:COM:sim": "and 67108864 bytes at the most",
    "TOTAL(packets=9999999999999999999999):MBRSHIP:COM:sim": "TOTAL: packets has 22 digits",
    "TOTAL(packets=" + 5000 * "9" + "):MBRSHIP:COM:sim": "TOTAL: packets has 5000 digits",
    "STABLE(window=x):XFER:TOTAL:MBRSHIP:COM:sim": r"STABLE\(window=x\): ",
    "PACK(core=1):TOTAL:MBRSHIP:COM:sim": r"PACK\(core=1\): .*multiple values",
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


class Odd(Layer):
    """A layer whose constructor does what it should not."""

    name = "ODD"

    def __init__(self, core: Core, config: object, me: object, how: str = "") -> None:
        if how == "raises":
            raise KeyError(how)
        if how != "forgets":
            super().__init__(core)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("raises", r"ODD\(how=raises\): its constructor raised KeyError\('raises'\)"),
        ("forgets", r"ODD\(how=forgets\): its constructor must call super\(\).__init__\(core\)"),
    ],
)
def test_a_constructor_that_fails_is_a_stack_error(
    how: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "_LAYERS", dict(stacks._LAYERS))
    register(Odd)
    with pytest.raises(StackError, match=error):
        parse_stack(f"ODD(how={how}):COM:sim")
    spec = stacks.LayerSpec(Odd, {"how": "forgets"})
    with pytest.raises(StackError, match="must call super"):
        Stack([spec, *parse_stack("COM:sim")], StackConfig("group"), Member("sim:a", 1), 1)


def test_a_name_is_one_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "_LAYERS", dict(stacks._LAYERS))

    class Mine(Layer):
        name = "TOTAL"

    with pytest.raises(StackError, match=r"there is a layer TOTAL already: .*Total"):
        register(Mine)
    with pytest.raises(StackError, match="is not a layer: a layer is a class that derives from"):
        register(int)  # type: ignore[arg-type]
    assert register(Odd) is register(Odd)
    again = type("Odd", (Layer,), {"name": "ODD", "__module__": __name__})
    assert register(again) is again
    wrong = type("Wrong", (Layer,), {"name": "WRONG", "needs": {"FIFO"}})
    with pytest.raises(StackError, match=r"WRONG.needs is a frozenset"):
        register(wrong)


@pytest.mark.parametrize("text", [None, 5, b"COM:sim", ["COM:sim"]])
def test_a_stack_is_a_string(text: object) -> None:
    with pytest.raises(StackError, match="a stack is a string"):
        parse_stack(text)  # type: ignore[arg-type]


def test_a_bad_network_may_stand_anywhere_if_needs_are_not_checked() -> None:
    text = "TOTAL:DROP(lose=20):MBRSHIP:COM:sim"
    assert [str(spec) for spec in parse_stack(text, sound=False)][1] == "DROP(lose=20)"


OBJECTS = "the runtime of shared objects needs {} from below: {}"
UPPERS = {
    "TOTAL:MBRSHIP:COM:unix": ("PACKED, STATE", "put PACK below it; put XFER below it"),
    "XFER:TOTAL:MBRSHIP:COM:unix": ("PACKED", "put PACK below it"),
    "PACK:TOTAL:MBRSHIP:COM:unix": ("STATE", "put XFER below it"),
    "MBRSHIP:COM:unix": (
        "PACKED, STATE, TOTAL_ORDER",
        "put PACK below it; put XFER below it; put TOTAL, RING or ORDER below it",
    ),
    "COM:unix": (
        "PACKED, STATE, TOTAL_ORDER",
        "put PACK below it; put XFER below it; put TOTAL, RING or ORDER below it",
    ),
    "XFER:PACK:TOTAL:MBRSHIP:COM:unix": ("PACKED", "put XFER below PACK"),
    "DROP:PACK:XFER:TOTAL:MBRSHIP:COM:unix": ("PACKED", "put DROP below PACK"),
    "STABLE:PACK:XFER:TOTAL:MBRSHIP:COM:unix": ("PACKED", "put STABLE below PACK"),
    "PACK:DROP(lose=1):XFER:TOTAL:MBRSHIP:COM:unix": (
        "STATE",
        "DROP(lose=1) below it takes STATE away: leave it out, or change its parameters",
    ),
}


@pytest.mark.parametrize("text", UPPERS)
def test_what_stands_on_top_is_checked_as_a_layer_is(text: str) -> None:
    needs, remedy = UPPERS[text]
    if "lose" not in text:
        parse_stack(text)
    with pytest.raises(StackError) as caught:
        parse_stack(text, Runtime)
    assert OBJECTS.format(needs, remedy) in str(caught.value) or "PACK needs" in str(caught.value)


@pytest.mark.parametrize("text", [text for text in UPPERS if "lose" not in text])
def test_a_runtime_checks_the_stack_that_it_is_put_on(text: str) -> None:
    stack = Stack(parse_stack(text), StackConfig("group"), Member("sim:a", 1), 1)
    with pytest.raises(StackError, match=re.escape(OBJECTS.format(*UPPERS[text]))):
        Runtime(stack, lambda runtime: Codec(lambda value: None, lambda number: None), 1)


@pytest.mark.parametrize(
    "text", ["XFER:TOTAL:MBRSHIP:COM:unix", "XFER:PACK:TOTAL:MBRSHIP:COM:tcp", DEFAULT]
)
def test_messages_need_no_packets(text: str) -> None:
    parse_stack(text, Inbox)
    with pytest.raises(StackError, match=r"orcalike.messages needs STATE from below: put XFER"):
        parse_stack(text.replace("XFER:", ""), Inbox)
