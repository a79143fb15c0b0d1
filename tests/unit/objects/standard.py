"""CPython's own tests of a type, run against a shared one."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping
from typing import Any

import orcalike as orca
from tests.unit.objects.members import Lab


def plain_data(value: Any) -> Any:
    """An argument of a constructor as `share` takes it: data, not an iterator; raises TypeError."""
    if value is None or type(value) in (dict, list, tuple, set, frozenset, str, bytes, int):
        return value
    return dict(value) if isinstance(value, Mapping) else list(value)


def sharing(cls: type[Any], lab: Lab, adapt: Callable[[Any], Any] = plain_data) -> type[Any]:
    """A class like `cls` whose objects are shared when they are made; subclasses of it are plain."""

    class Sharing(type(cls)):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if self is not shared:
                return super().__call__(*args, **kwargs)
            return lab.share(self, *map(adapt, args), **kwargs)

    shared = orca.shared(Sharing(cls.__name__, (cls,), {"__module__": __name__}))
    return shared


def adapted(
    case: type[Any],
    title: str,
    lab: Lab | None,
    failing: Mapping[str, str],
    skipped: Mapping[str, str],
    **attributes: Any,
) -> type[unittest.TestCase]:
    """A test case like CPython's, for objects that `lab` shares, whose replicas it compares.

    The tests that cannot apply are named with the reason. Those that are `failing` must fail: so one
    that has come to pass is seen. Not every version of Python has all of them.
    """
    body: dict[str, Any] = dict(attributes)
    for name, reason in failing.items():
        if hasattr(case, name):
            body[name] = _failing(getattr(case, name), reason)
    for name, reason in skipped.items():
        if hasattr(case, name):
            body[name] = unittest.skip(reason)(getattr(case, name))
    bases = (case,) if issubclass(case, unittest.TestCase) else (case, unittest.TestCase)
    made: Any = type(title, bases, body)
    if lab is not None:
        end = made.tearDown

        def compare_replicas(self: unittest.TestCase) -> None:
            end(self)
            lab.compare()

        made.tearDown = compare_replicas
    return made  # type: ignore[no-any-return]


def _failing(test: Callable[..., None], reason: str) -> Callable[..., None]:
    @unittest.expectedFailure
    def failing(self: Any) -> None:
        test(self)

    failing.__doc__ = reason
    return failing
