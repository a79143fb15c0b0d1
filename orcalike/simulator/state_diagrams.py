"""The page of docs/internals with the states of the agreement on views, drawn from their tables.

python -m orcalike.simulator.state_diagrams docs/internals/states.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

from orcalike.transport.membership.state import (
    BOOTSTRAP,
    COORDINATOR,
    PARTICIPANT,
    BootstrapCause,
    BootstrapState,
    CoordinatorCause,
    CoordinatorState,
    ParticipantCause,
    ParticipantState,
    diagram,
    legend,
)

PAGE = """\
# States of the agreement on views

This page is written by `python -m orcalike.simulator.state_diagrams docs/internals/states.md` from the tables in
`transport/membership/state.py`. Each change of state of a member goes through them; one that is not in its table is an error
of orcalike itself. `orcalike simulate --story` shows the changes of a run.

Each member is a participant. The oldest that is not suspected is a coordinator as well, while a change of view is due;
two members may lead at once, and the ballots decide. What each message asks for is in `transport/membership/messages.py`, and what
follows from each step, as a list of effects, in the scripts of `tests/protocol/testdata/agreement`.

## Participant

```mermaid
{participant}
```

{participant_states}

{participant_causes}

## Coordinator

```mermaid
{coordinator}
```

{coordinator_states}

{coordinator_causes}

## Bootstrap

How a group is made if no launcher knows whether it was made before: by all ranks ([ADR-18](decisions/ADR-18-how-a-group-is-made.md)).

```mermaid
{bootstrap}
```

{bootstrap_states}

{bootstrap_causes}
"""


def page() -> str:
    """The whole page."""
    return PAGE.format(
        participant=diagram(PARTICIPANT),
        participant_states=legend("state", ParticipantState),
        participant_causes=legend("cause", ParticipantCause),
        coordinator=diagram(COORDINATOR),
        coordinator_states=legend("state", CoordinatorState),
        coordinator_causes=legend("cause", CoordinatorCause),
        bootstrap=diagram(BOOTSTRAP),
        bootstrap_states=legend("state", BootstrapState),
        bootstrap_causes=legend("cause", BootstrapCause),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m orcalike.simulator.state_diagrams")
    parser.description = "Draw the states of the agreement on views, and write them to a page."
    parser.add_argument("page", metavar="PAGE", type=Path)
    parser.parse_args().page.write_text(page(), encoding="utf-8")
