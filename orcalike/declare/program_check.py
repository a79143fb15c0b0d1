"""A program's declarations, loaded without running the program, and all that is wrong with them."""

from __future__ import annotations

import ast
import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from orcalike.declare import registration
from orcalike.declare.forbidden_names import canonical_name
from orcalike.declare.outside_names import is_the_programs
from orcalike.runtime import classes
from orcalike.runtime.errors import DeclarationError

_CALLED = frozenset(
    {
        *("collections", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools"),
        *(
            "itertools",
            "logging.getLogger",
            "math",
            "operator",
            "pathlib",
            "random",
            "re",
            "string",
        ),
        *(
            "time.time",
            "time.monotonic",
            "types",
            "typing",
            "uuid",
            "zoneinfo",
            "typing_extensions",
        ),
        *("os._Environ", "os.getenv", "os.getpid", "os.uname", "os.path", "platform", "secrets"),
        "orcalike.runtime.registered.register",
    }
)
"""What may be called while constants are loaded: it does nothing but give a value."""
_BUILTINS = frozenset(
    {
        *("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "len"),
        *(
            "getattr",
            "list",
            "max",
            "min",
            "range",
            "set",
            "sorted",
            "str",
            "sum",
            "tuple",
            "object",
        ),
    }
)


@dataclass(frozen=True)
class Report:
    """What the check of one program came to; each entry begins with file and line."""

    findings: list[str]
    notes: list[str]
    """What it cannot know, or what is perhaps not meant."""
    declared: int
    """Shared classes and atomic functions, those of the program's own modules too."""


def check_program(path: Path) -> Report:
    """Load the declarations of a program and of the modules that it imports, and check them.

    Raises SyntaxError if it is no Python, OSError if it cannot be read.
    """
    path = path.resolve()
    source = path.read_bytes()
    _compile(source, path)
    declared: list[classes.ClassInfo | classes.AtomicInfo] = []
    cancel = classes.on_declared(declared.append)
    collected: list[str] = []
    registration.collected = collected
    sys.path.insert(0, str(path.parent))
    notes: dict[str, None] = {}
    try:
        notes.update(dict.fromkeys(_load(path, source, collected)))
        newest = {info.name: info for info in declared if _is_the_programs(info)}
        findings = dict.fromkeys(collected)
        for info in newest.values():
            findings.update(dict.fromkeys(registration.check_again(info, notes)))
    finally:
        registration.collected = None
        cancel()
        sys.path.pop(0)
    return Report(list(findings), list(notes), len(newest))


def _is_the_programs(info: classes.ClassInfo | classes.AtomicInfo) -> bool:
    if isinstance(info, classes.AtomicInfo):
        return is_the_programs(info.atomic.function.__code__.co_filename)
    module = sys.modules.get(info.cls.__module__)
    return is_the_programs(getattr(module, "__file__", None) or "<unknown>")


def _compile(source: bytes, path: Path) -> None:
    """Raise SyntaxError if this is no Python, also for what is seen of it as a whole only."""
    try:
        compile(source, str(path), "exec", dont_inherit=True)
    except (MemoryError, RecursionError):
        raise SyntaxError("it is nested too deeply") from None
    except ValueError as error:  # null bytes, for a Python before 3.11.4
        raise SyntaxError(str(error)) from None


def _load(path: Path, source: bytes, faults: list[str]) -> Iterator[str]:
    """Run the statements that declare something; gives those that could not be run, and adds what was refused."""
    linecache.checkcache(str(path))
    tree = ast.parse(source, str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        for statement in tree.body:
            if not _declares(statement, module):
                continue
            code = compile(ast.Module([statement], []), str(path), "exec")
            try:
                exec(code, vars(module))  # noqa: S102 - it is the program's own declaration
            except DeclarationError as error:  # of a decorator that cannot go on
                faults.append(_with_place(error))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the rest is checked all the same
                what = ast.unparse(statement).partition("\n")[0]
                yield f"{path}:{statement.lineno}: {what:.60} raised {error!r}, and is not checked"
    finally:
        if before is not None:
            sys.modules[path.stem] = before


def _with_place(error: DeclarationError) -> str:
    """What it says, after the file and line of the program that it says, or that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = [frame for frame in frames if is_the_programs(frame.filename)][-1]
    text = str(error)
    return text if re.match(r"[^\n]+:\d+: ", text) else f"{place.filename}:{place.lineno}: {text}"


def _declares(statement: ast.stmt, module: ModuleType) -> bool:
    """Whether a statement of a program only makes names that its classes may use."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
            return True
        case ast.AsyncFunctionDef():
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _gives_a_value(value, module)
        case ast.Expr(value=ast.Call() as call):
            return _gives_a_value(call, module)
        case ast.If(test=test, body=body, orelse=orelse):
            mentions = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
            if mentions & {"__name__", "TYPE_CHECKING"}:
                return False
            return all(_declares(each, module) for each in [*body, *orelse])
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            caught = [each for handler in handlers for each in handler.body]
            rest = [*body, *caught, *orelse, *final]
            return all(isinstance(each, ast.Pass) or _declares(each, module) for each in rest)
    return False


def _gives_a_value(expression: ast.expr, module: ModuleType) -> bool:
    return all(
        _may_be_called(node.func, module)
        for node in ast.walk(expression)
        if isinstance(node, ast.Call)
    )


def _may_be_called(function: ast.expr, module: ModuleType) -> bool:
    if isinstance(function, ast.Name) and function.id in _BUILTINS:
        return True
    if not isinstance(function, ast.Name | ast.Attribute):
        return False
    try:
        value = eval(compile(ast.Expression(function), "<name>", "eval"), vars(module))
    except Exception:  # noqa: BLE001 - what it is cannot be known
        return False
    name = canonical_name(value)
    while name:
        if name in _CALLED:
            return True
        name = name.rpartition(".")[0]
    return False
