"""Stack strings: `PACK:XFER:TOTAL:MBRSHIP:COM:unix` (Horus, section 4: H50 to H53; A34).

Layers stand top first, with parameters where they take some: `PACK(size=1024)`. What follows COM
is the driver that moves its frames. Each layer names the properties that it needs from below, those
that it gives, and those that it takes away; a stack whose needs are not met is refused, and the
layer to add is named. What is to stand on top of the stack has needs too, and is checked with it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from orcalike.transport.config import StackConfig
from orcalike.transport.errors import StackError
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.layers.com import Com
from orcalike.transport.layers.mbrship import Mbrship
from orcalike.transport.layers.pack import Pack
from orcalike.transport.layers.stable import Stable
from orcalike.transport.layers.total import Total
from orcalike.transport.layers.xfer import Xfer
from orcalike.transport.record import Record
from orcalike.transport.view import Member

MEDIA = {
    "unix": "Unix sockets, on one host",
    "tcp": "TCP, between hosts",
    "sim": "the simulator's virtual network",
}
"""What COM can run over."""

_MANY_HOSTS = frozenset({"tcp"})
"""Those whose members may be on different hosts."""

DEFAULT = "PACK:XFER:TOTAL:MBRSHIP:COM:unix"
"""The stack of a group that a sequencer orders, over Unix sockets."""

DEFAULT_LAYERS = DEFAULT.rpartition(":")[0]
"""The same without its medium: what the members of a group must agree on."""

_ADJACENT = frozenset({"PACKED"})
"""Properties that hold only right above the layer that gives them: what stands there marshals into
its packets in place, past the downcalls of any layer in between."""

DIGITS_MAX = 18
"""Digits of a parameter that is a number."""

_LAYERS: dict[str, type[Layer]] = {}
"""The layers that are known, by name."""

_ON_DEMAND = {
    "RING": "orcalike.transport.layers.ring:SharedOrder",
    "ORDER": "orcalike.transport.layers.order:EitherOrder",
    "DROP": "orcalike.transport.layers.drop:Drop",
}
"""Those that few stacks have: each is imported when it is named."""

_USUAL = ("PACK", "STABLE", "XFER", "TOTAL", "RING", "ORDER", "MBRSHIP", "COM", "DROP")
"""The order in which they are listed."""

_ITEM = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\((?P<params>[^()]*)\))?\Z")


class LayerSpec(Record):
    """A layer of a stack string, with its parameters."""

    cls: type[Layer]
    params: Mapping[str, Any] = MappingProxyType({})
    medium: str | None = None
    """What COM runs over; None for the other layers."""
    takes: frozenset[str] = frozenset()
    """The properties that the layer takes away with these parameters."""

    def make(self, core: Core, config: StackConfig, me: Member) -> Layer:
        """The layer, for one stack."""
        return self.cls(core, config, me, **self.params)  # type: ignore[call-arg]

    def __str__(self) -> str:
        params = ",".join(f"{name}={value}" for name, value in self.params.items())
        text = f"{self.cls.name}({params})" if params else self.cls.name
        return f"{text}:{self.medium}" if self.medium else text


class LayerInfo(Record):
    """What people may know of a layer."""

    name: str
    promises: frozenset[str]
    needs: frozenset[str]
    doc: str


def register(cls: type[Layer]) -> type[Layer]:
    """Make a layer known by its `name`, so that stack strings may use it; usable as a decorator.

    Raises StackError if the name is another layer's: a definition that is run again replaces
    the first.
    """
    if not (isinstance(cls, type) and issubclass(cls, Layer)):
        raise StackError(f"{cls!r} is not a layer: a layer is a class that derives from Layer")
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", cls.name):
        raise StackError(f"a layer's name is in capitals, not {cls.name!r}")
    for which in ("needs", "gives", "takes"):
        if not isinstance(getattr(cls, which), frozenset):
            raise StackError(f"{cls.name}.{which} is a frozenset of names of properties")
    known = _find(cls.name) or cls
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise StackError(
            f"there is a layer {cls.name} already: {known.__module__}.{known.__name__}"
        )
    _LAYERS[cls.name] = cls
    return cls


def _find(name: str) -> type[Layer] | None:
    """The layer of that name."""
    if name not in _LAYERS and name in _ON_DEMAND:
        module, _, cls = _ON_DEMAND[name].partition(":")
        _LAYERS[name] = getattr(importlib.import_module(module), cls)
    return _LAYERS.get(name)


for _layer in (Pack, Stable, Xfer, Total, Mbrship, Com):
    register(_layer)


def _known() -> list[type[Layer]]:
    """All layers, in the order in which they usually stand; those of programs come last."""
    for name in _ON_DEMAND:
        _find(name)
    own = (name for name in _LAYERS if name not in _USUAL)
    return [_LAYERS[name] for name in (*_USUAL, *own)]


def layers() -> list[LayerInfo]:
    """All layers that are known, in the order in which they usually stand."""
    infos = []
    for cls in _known():
        module = sys.modules.get(cls.__module__)
        doc = (module.__doc__ if module else None) or cls.__doc__ or ""
        infos.append(LayerInfo(cls.name, cls.gives, cls.needs, doc.split("\n\n")[0]))
    return infos


def parse_stack(
    text: str, above: type[Layer] | None = None, *, sound: bool = True
) -> list[LayerSpec]:
    """The layers of a stack string, top first, for `above` to stand on.

    Raises StackError if the string cannot be read, names a layer that does not exist, or puts
    a layer where it lacks what it needs from below; `above` is checked as a layer is. With
    `sound=False` needs are not looked at: so tests put a bad network anywhere.
    """
    if not isinstance(text, str):
        raise StackError(f"a stack is a string, as {DEFAULT!r}, not {text!r:.80}")
    parts = [part.strip() for part in text.split(":")]
    if len(parts) < 2 or parts[-2].split("(")[0] != "COM":
        raise StackError(f"{text!r} does not end in COM:medium, as in {DEFAULT}")
    if parts[-1] not in MEDIA:
        known = ", ".join(MEDIA)
        raise StackError(f"COM knows no medium {parts[-1]!r}; it runs over {known}")
    specs = [_parse_item(part, text) for part in parts[:-1]]
    specs[-1] = specs[-1].replace(medium=parts[-1])
    if any(spec.cls is Com for spec in specs[:-1]):
        raise StackError(f"COM stands at the bottom, once: {text}")
    if sound:
        _check_needs(specs, above)
    return specs


def name_layers(specs: list[LayerSpec]) -> str:
    """The layers as a string without their medium: what the members of a group must agree on."""
    return ":".join(map(str, specs)).rpartition(":")[0]


def _parse_item(item: str, text: str) -> LayerSpec:
    match = _ITEM.match(item)
    if match is None:
        raise StackError(f"{item!r} in {text!r} is not a layer: NAME or NAME(parameter=value)")
    name = match["name"]
    cls = _find(name)
    if cls is None:
        names = ", ".join(each.name for each in _known())
        raise StackError(f"no layer {name!r}; there are {names}")
    params: dict[str, Any] = {}
    for pair in filter(None, (match["params"] or "").split(",")):
        key, equals, value = (word.strip() for word in pair.partition("="))
        if not equals:
            raise StackError(f"{name} takes parameters as name=value, not {pair.strip()!r}")
        if key in params:
            raise StackError(f"{name} is given {key!r} twice")
        if not re.fullmatch(r"-?[0-9]+", value):
            params[key] = value
        elif len(value) <= DIGITS_MAX:
            params[key] = int(value)
        else:
            raise StackError(f"{name}: {key} has {len(value)} digits")
    return LayerSpec(cls, params, None, _try(cls, params, item).takes)


def _try(cls: type[Layer], params: dict[str, Any], item: str) -> Layer:
    """A layer with these parameters, of no stack; StackError where it cannot be made."""
    core = Core()
    try:
        layer = cls(core, StackConfig(""), Member("", 0), **params)  # type: ignore[call-arg]
    except (TypeError, ValueError, OverflowError) as error:
        raise StackError(f"{item}: {error}") from None
    except Exception as error:
        raise StackError(f"{item}: its constructor raised {error!r}") from error
    if layer.core is not core:
        raise StackError(f"{item}: its constructor must call super().__init__(core)")
    return layer


def check_above(layers: Sequence[Layer], above: type[Layer]) -> None:
    """Raise StackError if `above` lacks what it needs from a stack of these layers, top first.

    `parse_stack` says so of a string; what is put on a stack that is there asks here.
    """
    _check_needs([LayerSpec(type(layer), takes=layer.takes) for layer in layers], above)


def _check_needs(specs: list[LayerSpec], above: type[Layer] | None) -> None:
    """From the bottom up: each layer's needs are met by what holds below it."""
    given: set[str] = set()
    taken: dict[str, LayerSpec] = {}
    seen: set[type[Layer]] = set()
    for spec in reversed(specs):
        _check_layer(spec.cls, given, taken)
        if spec.cls in seen and spec.cls.gives:
            raise StackError(f"{spec.cls.name} stands in it twice: once is enough")
        seen.add(spec.cls)
        for lost in given & (spec.takes | _ADJACENT):
            taken[lost] = spec
        given = given - spec.takes - _ADJACENT | spec.cls.gives
        if spec.cls is Com and spec.medium not in _MANY_HOSTS:
            given.add("ONE_HOST")
    if above is not None:
        _check_layer(above, given, taken)


def _check_layer(cls: type[Layer], given: set[str], taken: dict[str, LayerSpec]) -> None:
    missing = sorted(cls.needs - given)
    if not missing:
        return
    remedies: dict[str, None] = {}
    for lost in missing:
        *others, last = [each.name for each in _known() if lost in each.gives] or [""]
        helpers = f"{', '.join(others)} or {last}" if others else last
        taker = taken.get(lost)
        if lost == "ONE_HOST":
            remedies["run it over unix"] = None
        elif taker is not None and lost in taker.takes:
            names = " and ".join(each for each in missing if taken.get(each) is taker)
            change = ", or change its parameters" if taker.params else ""
            remedies[f"{taker} below it takes {names} away: leave it out{change}"] = None
        elif taker is not None:
            remedies[f"put {taker} below {helpers}"] = None
        else:
            remedies[f"put {helpers} below it" if helpers else "no layer gives that"] = None
    needs = ", ".join(missing)
    raise StackError(f"{cls.name} needs {needs} from below: {'; '.join(remedies)}")
