from typing import NamedTuple

class RowView(NamedTuple):
    """What a member says of itself."""

    row: int
    incarnation: int
    state: str
    """"joining", "member", or "struck": it does not count any more."""
    process: int
    applied: int
    """The slot that it applies next."""
    lag: int
    """Slots that it has not applied."""
    sleeps: bool
    """It is to be woken by the next news."""
    waits_for_room: bool

class OrderView(NamedTuple):
    """An order, as far as it was seen."""

    slots: int
    lane_bytes: int
    next: int
    """The slot behind the newest entry."""
    least: int
    """All members have applied what is below."""
    lap: int
    """How often the slots were gone round."""
    rows: list[RowView]

def look(fd: int) -> OrderView: ...
