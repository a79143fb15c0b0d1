"""The signatures of methods that are made of other functions, as `help` and editors show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature


def signature_of(
    body: Callable[..., Any], *, bound: bool, gives: Callable[..., Any] | None = None
) -> Signature:
    """The signature of a method with the parameters of `body`; `bound`: of one object, without `self`.

    It returns what `gives` does, or what a body of steps gives at its end.
    """
    import inspect  # not at the top: it takes long

    signature = inspect.signature(body)
    returned = inspect.signature(gives or body).return_annotation
    if isinstance(returned, str) and returned.startswith("Steps["):
        returned = returned.removeprefix("Steps[").removesuffix("]")
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    return signature.replace(parameters=parameters, return_annotation=returned)
