"""Layers of the program's own, found by name: `orcalike run --layer module:Class`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from orcalike.errors import StackError
from orcalike.transport.stacks import register


def load_layers(names: Sequence[str], folder: str | None = None) -> None:
    """Import layers and make them known, so that stack strings may use them.

    `names` are `module:Class`; modules are looked for in `folder` last, if one is given. Raises
    StackError for a layer that cannot be imported, or is none.
    """
    if names and folder is not None and folder not in sys.path:
        sys.path.append(folder)
    for name in names:
        module, _, cls = name.partition(":")
        if not module or not cls:
            raise StackError(f"layer {name!r}: write module:Class, as in mylayers.check:Check")
        try:
            found = importlib.import_module(module)
        except Exception as error:
            raise StackError(f"layer {name!r}: {module} cannot be imported: {error!r}") from error
        if not hasattr(found, cls):
            raise StackError(f"layer {name!r}: {module} has no {cls}")
        register(getattr(found, cls))
