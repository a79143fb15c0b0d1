"""How the API reference reads docstrings and signatures: what autodoc and napoleon cannot know."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# autodoc would import these with `TYPE_CHECKING` set, and they have no lazy names then.
import orcalike.messages
import orcalike.objects
import orcalike.testing
from orcalike.objects.sending import Sending
from orcalike.objects.steps import Method

NOT_CONSTRUCTED = {
    "orcalike.Group",
    "orcalike.ext.dask.Attachment",
    "orcalike.ext.ray.Attachment",
    "orcalike.messages.MessageGroup",
    "orcalike.objects.Subscription",
    "orcalike.testing.Process",
}
"""Classes whose instances a function returns: a program does not call them."""


def give_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """The signature as a reader needs it; autodoc cannot resolve or shorten some types."""
    if name in NOT_CONSTRUCTED:
        return "", ""
    if signature:
        signature = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", signature)
        return re.sub(r"~(\w+\.)*~?", "", signature), returns
    return None


def read_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Add how a property is called, and keep napoleon from reading "type: text" where none is."""
    if what == "property" and name.startswith("orcalike.Group."):
        returned = typing.get_type_hints(obj.fget)["return"]
        if "__call__" in vars(returned):
            lines += ["", *(inspect.getdoc(returned.__call__) or "").splitlines()]
    if what in {"attribute", "data", "property"}:
        lines[:0] = ["..", ""]  # an empty comment: napoleon looks at the first line alone


def show_bodies(cls: type) -> None:
    """Put the functions in the place of descriptors that are made of them, which autodoc cannot read."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, Method):
            body = value.steps
            returns = re.sub(r"^Steps\[(.*)\]$", r"\1", body.__annotations__["return"])
            body.__annotations__["return"] = returns
        elif isinstance(value, Sending):
            body = value.ready
            del body.__annotations__["return"]  # the arguments of the operation
        else:
            continue
        setattr(cls, name, body)


def with_signatures(compiled: type) -> type:
    """A class with the docstrings of a compiled one, and the signatures of its stub."""
    module = sys.modules[compiled.__module__]
    name = f"{module.__name__.rpartition('.')[2]}.pyi"
    stub = ast.parse((Path(module.__file__ or "").parent / name).read_text(encoding="utf-8"))
    (cls,) = (n for n in stub.body if isinstance(n, ast.ClassDef) and n.name == compiled.__name__)
    cls.bases, cls.decorator_list = [], []
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and (doc := getattr(compiled, node.name).__doc__):
            node.body.insert(0, ast.Expr(ast.Constant(doc)))
    program = ast.fix_missing_locations(ast.Module([cls], []))
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(program, name, "exec", flags=annotations.compiler_flag), names)  # noqa: S102 - our own stub
    made: type = names[compiled.__name__]
    return made


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls first."""
    modules = (orcalike, orcalike.objects, orcalike.testing)
    # All are imported before anything changes: declarations look at the descriptors.
    public = [
        (module, name, getattr(module, name)) for module in modules for name in module.__all__
    ]
    classes = [(module, name, value) for module, name, value in public if isinstance(value, type)]
    for base in {base for _, _, cls in classes for base in cls.__mro__}:
        show_bodies(base)
    for module, name, cls in classes:
        if str(getattr(sys.modules[cls.__module__], "__file__", "")).endswith(".so"):
            setattr(module, name, with_signatures(cls))
    app.connect("autodoc-process-signature", give_signature)
    app.connect("autodoc-process-docstring", read_docstring, priority=400)  # napoleon has 500
    return {"parallel_read_safe": True}
