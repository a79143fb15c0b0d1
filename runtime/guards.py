"""What may be the guard of an operation, or of an atomic function."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

from orcalike.runtime.errors import DeclarationError
from orcalike.runtime.registered import title_of

if TYPE_CHECKING:
    from orcalike.runtime.classes import Declared


def refuse_guard(declared: Declared, guard: object, complete: bool) -> None:
    """Raise DeclarationError for what cannot be its guard; `complete`: its class was declared already."""
    name = title_of(declared.function)
    if complete:
        problem = f"{name} was declared with its class; write the guard there, below the operation"
    elif declared.guard is not None:
        problem = f"{name} has a guard already; write one that looks at both conditions"
    elif not isinstance(guard, FunctionType):
        problem = (
            f"the guard of {name} is not a plain function but {guard!r}; "
            "decorate one with `when` alone"
        )
    elif guard.__name__ == declared.function.__name__ != "<lambda>":
        problem = f"the guard of {name} has its name, and would take its place; call it `_`"
    else:
        return
    code = (guard if isinstance(guard, FunctionType) else declared.function).__code__
    raise DeclarationError(f"{code.co_filename}:{code.co_firstlineno}: {problem}")
