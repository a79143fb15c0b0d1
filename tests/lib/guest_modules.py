"""`orcalike.ext.dask` and `orcalike.ext.ray`, to be looked at: without Dask and Ray, which need not be installed.

Both are imported with stand-ins for what they take of their engine, so nothing in them can be called.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

ENGINES = ("distributed", "distributed.comm", "distributed.utils", "ray")


class _StandIn(ModuleType):
    """A module that has a class of each name."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _guest(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        for engine in ENGINES:
            patch.setitem(sys.modules, engine, _StandIn(engine))
        return importlib.import_module(f"orcalike.ext.{name}")


GUESTS = (_guest("dask"), _guest("ray"))
