"""Stack strings: `PACK:XFER:TOTAL:MBRSHIP:COM:unix` (Horus, section 4: H50 to H53; A34).

Layers stand top first, with parameters where they take some: `PACK(size=1024)`. What follows COM
is the driver that moves its frames. Each layer names the properties that it needs from below and
those that it gives; a stack whose needs are not met is refused, and the layer to add is named.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any

from orcalike.transport.config import StackConfig
from orcalike.transport.errors import StackError
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.layers.com import Com
from orcalike.transport.layers.drop import Drop
from orcalike.transport.layers.mbrship import Mbrship
from orcalike.transport.layers.pack import Pack
from orcalike.transport.layers.stable import Stable
from orcalike.transport.layers.total import Total
from orcalike.transport.layers.xfer import Xfer

MEDIA = {
    "unix": "Unix sockets, on one host",
    "tcp": "TCP, between hosts",
    "sim": "the simulator's virtual network",
}
"""What COM can run over."""

DEFAULT = "PACK:XFER:TOTAL:MBRSHIP:COM:unix"
"""The stack of a group on one host."""

_LAYERS: dict[str, type[Layer]] = {}
_ITEM = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\((?P<params>[^()]*)\))?\Z")


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """A layer of a stack string, with its parameters."""

    cls: type[Layer]
    params: dict[str, Any] = field(default_factory=dict)
    medium: str | None = None
    """What COM runs over; None for the other layers."""

    def make(self, core: Core, config: Any, me: Any) -> Layer:
        """The layer, for one stack."""
        return self.cls(core, config, me, **self.params)  # type: ignore[call-arg]

    def __str__(self) -> str:
        params = ",".join(f"{name}={value}" for name, value in self.params.items())
        text = f"{self.cls.name}({params})" if params else self.cls.name
        return f"{text}:{self.medium}" if self.medium else text


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """What people may know of a layer."""

    name: str
    promises: frozenset[str]
    needs: frozenset[str]
    doc: str


def register(cls: type[Layer]) -> type[Layer]:
    """Make a layer known by its `name`, so that stack strings may use it; usable as a decorator."""
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", cls.name):
        raise StackError(f"a layer's name is in capitals, not {cls.name!r}")
    _LAYERS[cls.name] = cls
    return cls


for _layer in (Pack, Stable, Xfer, Total, Mbrship, Com, Drop):
    register(_layer)


def layers() -> list[LayerInfo]:
    """All layers that are known, in the order in which they usually stand."""
    infos = []
    for cls in _LAYERS.values():
        module = inspect.getmodule(cls)
        doc = (module.__doc__ if module else None) or cls.__doc__ or ""
        infos.append(LayerInfo(cls.name, cls.gives, cls.needs, doc.split("\n\n")[0]))
    return infos


def parse_stack(text: str) -> list[LayerSpec]:
    """The layers of a stack string, top first.

    Raises StackError where the string cannot be read, names a layer that does not exist, or puts
    a layer where it lacks what it needs from below.
    """
    parts = [part.strip() for part in text.split(":")]
    if len(parts) < 2 or parts[-2].split("(")[0] != "COM":
        raise StackError(f"{text!r} does not end in COM:medium, as in {DEFAULT}")
    if parts[-1] not in MEDIA:
        known = ", ".join(MEDIA)
        raise StackError(f"COM knows no medium {parts[-1]!r}; it runs over {known}")
    specs = [_parse_item(part, text) for part in parts[:-1]]
    specs[-1] = LayerSpec(specs[-1].cls, specs[-1].params, parts[-1])
    if any(spec.cls is Com for spec in specs[:-1]):
        raise StackError(f"COM stands at the bottom, once: {text}")
    _check_needs(specs)
    return specs


def _parse_item(item: str, text: str) -> LayerSpec:
    match = _ITEM.match(item)
    if match is None:
        raise StackError(f"{item!r} in {text!r} is not a layer: NAME or NAME(parameter=value)")
    name = match["name"]
    cls = _LAYERS.get(name)
    if cls is None:
        raise StackError(f"no layer {name!r}; there are {', '.join(_LAYERS)}")
    params: dict[str, Any] = {}
    for pair in filter(None, (match["params"] or "").split(",")):
        key, equals, value = (word.strip() for word in pair.partition("="))
        if not equals:
            raise StackError(f"{name} takes parameters as name=value, not {pair.strip()!r}")
        params[key] = int(value) if re.fullmatch(r"-?\d+", value) else value
    try:
        cls(Core(), StackConfig(""), None, **params)  # type: ignore[call-arg]
    except (TypeError, ValueError) as error:
        raise StackError(f"{item}: {error}") from None
    return LayerSpec(cls, params)


def _check_needs(specs: list[LayerSpec]) -> None:
    given: set[str] = set()
    for spec in reversed(specs):
        missing = sorted(spec.cls.needs - given)
        if missing:
            helpers = [cls.name for cls in _LAYERS.values() if missing[0] in cls.gives]
            remedy = f"put {' or '.join(helpers)} below it" if helpers else "no layer gives that"
            raise StackError(f"{spec.cls.name} needs {', '.join(missing)} from below: {remedy}")
        given |= spec.cls.gives
