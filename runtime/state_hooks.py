"""States that travel: while an object's `snapshot` or `restore` runs it is known which it is."""

from __future__ import annotations

from orcalike.runtime.replica import Replica
from orcalike.runtime.state import plain_state, set_plain_state
from orcalike.runtime.time_budget import TimeBudget
from orcalike.transport.drivers.driver import Driver


def give_state(budget: TimeBudget, driver: Driver, replica: Replica) -> object:
    """What `plain_state` gives; a `snapshot` that does not end is named in the log."""
    assert replica.info is not None
    if "snapshot" not in replica.info.hooks:
        return plain_state(replica)
    title = f"{replica.info.cls.__name__}.snapshot"
    return budget.run_hook(driver, replica, title, plain_state, replica)


def take_state(budget: TimeBudget, driver: Driver, replica: Replica, state: object) -> None:
    """What `set_plain_state` does; a `restore` that does not end is named in the log."""
    assert replica.info is not None
    if "restore" not in replica.info.hooks:
        set_plain_state(replica, state)
        return
    title = f"{replica.info.cls.__name__}.restore"
    budget.run_hook(driver, replica, title, set_plain_state, replica, state)
