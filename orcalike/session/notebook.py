"""Groups and shared objects in a Jupyter notebook: cells may wait, and values are shown as tables.

A notebook runs its cells on the thread of an event loop, one at a time. A call that waits there
holds up only the notebook itself, as any long cell does, so it may.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from orcalike.runtime.event_loops import allow_blocking
from orcalike.runtime.replica import replica_of
from orcalike.session.group_info import GroupInfo

SHOWN_MAX = 200
"""Characters that are shown of an attribute's value."""


def shell() -> Any | None:
    """The notebook that this program runs in, or None."""
    ipython = sys.modules.get("IPython")
    found = ipython.get_ipython() if ipython is not None else None
    return found if getattr(found, "kernel", None) is not None else None


def let_cells_wait() -> None:
    """Allow calls that wait on the notebook's own event loop; elsewhere nothing changes."""
    if shell() is not None:
        import asyncio  # a notebook has imported it

        allow_blocking(asyncio._get_running_loop())


def show_objects_of(cls: type[Any]) -> None:
    """Have the notebook show objects of that class as tables, unless the class says how itself."""
    found = shell()
    if found is not None and not hasattr(cls, "_repr_html_"):
        found.display_formatter.formatters["text/html"].for_type(cls, html_of_object)


def html_of_object(obj: object) -> str | None:
    """A shared object as a table of its attributes; None for one that is not shared."""
    replica = replica_of(obj)
    if replica is None:
        return None
    head = f"<b>{_escaped(type(obj).__qualname__)}</b> {_escaped(repr(replica.name))}"
    return head + _table(("attribute", "value"), vars(obj).items())


def html_of_group(info: GroupInfo, *, shares_memory: bool) -> str:
    """A group as a table of its members; `shares_memory`: it has no sequencer."""
    view = info.view
    state = "" if info.blocked is None else f" · blocked: {info.blocked.rule}"
    head = (
        f"<b>Group</b> {_escaped(repr(info.name))} · view {view.number} · "
        f"this is rank {info.rank}{_escaped(state)}"
    )
    rows = [
        (
            "witness" if member.witness else f"rank {member.rank}",
            member.address or "this process",
            "orders the writes" if member == view.sequencer and not shares_memory else "",
        )
        for member in view.members
    ]
    return head + _table(("member", "address", ""), rows)


def _escaped(text: str) -> str:
    """A text as it stands in a page."""
    import html  # not at the top: few programs run in a notebook

    return html.escape(text)


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = ["".join(f"<th>{_escaped(name)}</th>" for name in head)]
    for row in rows:
        lines.append("".join(f"<td>{_escaped(_short(cell))}</td>" for cell in row))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
