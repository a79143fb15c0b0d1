"""What a shared container is as a plain one: the other operand of a comparison or an operator."""

from __future__ import annotations

from typing import Any


class Container:
    """A shared object that shows what it holds as a plain container of its Python type."""

    def _plain(self) -> Any:
        """A plain copy, as it stands at this replica."""
        raise NotImplementedError


def plain(value: Any) -> Any:
    """A plain copy of a shared container; any other value as it is."""
    return value._plain() if isinstance(value, Container) else value
