"""All checkers, over one folder of histories."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from pathlib import Path

from orcalike.history_check import blackbox, objects, order, sessions, views, witness
from orcalike.history_check.models import ModelOf, no_model
from orcalike.history_check.records import History, Violation, load
from orcalike.transport.wording import counted


@dataclass
class Verdict:
    """What the checkers find in one run."""

    members: int = 0
    delivered: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Acknowledged, and lost with the member that crashed: possible with degree 0 alone."""
    violations: list[Violation] = field(default_factory=list)

    def __str__(self) -> str:
        found = counted(len(self.violations), "violation") if self.violations else "ok"
        lost = f", {self.lost} lost with crashed members" if self.lost else ""
        return (
            f"{counted(self.members, 'member')}, {counted(self.delivered, 'message')}, "
            f"{self.acknowledged} acknowledged{lost}: {found}"
        )


def check_folder(
    folder: Path, degree: int, group: str = "default", model_of: ModelOf = no_model
) -> Verdict:
    """Read a folder and check it; `degree` is the writes' resilience degree."""
    return check_histories(load(folder, group), degree, model_of)


def check_histories(
    histories: list[History],
    degree: int,
    model_of: ModelOf = no_model,
    most: int = 10_000,
) -> Verdict:
    """Check histories; the black-box search looks at `most` calls at the most."""
    gc.freeze()  # the records are no garbage
    canon = order.build(histories, degree)
    verdict = Verdict(len(histories), len(canon.entries), order.acknowledged(histories))
    verdict.lost = sum(
        (history.incarnation, record["ticket"]) not in canon.places
        for history in histories
        for record in history.of("ok")
    )
    verdict.violations += order.check(canon, histories, degree)
    verdict.violations += views.check(histories, degree)
    verdict.violations += objects.check(canon, histories, model_of)
    verdict.violations += sessions.check(canon, histories)
    if not canon.lost:  # a write that was seen and then lost has no place in any order
        verdict.violations += witness.check(canon, histories)
        verdict.violations += blackbox.check(histories, model_of, most)
    return verdict
