"""Names of a package that are imported when they are first used: a start is quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def attributes(
    package: str, modules: Mapping[str, str], submodules: Collection[str] = ()
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `modules` says which module has each of these names.

    `submodules` are attributes of the package, too, though no program imports them. What it returns raises
    AttributeError for any other name, as Python does.
    """

    def find(name: str) -> Any:
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")  # which makes it an attribute
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
