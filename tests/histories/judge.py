"""All checkers, over one folder of histories."""

from __future__ import annotations

import argparse
import gc
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.histories import blackbox, objects, order, sessions, views, witness
from tests.histories.records import History, Violation, load


@dataclass
class Verdict:
    """What the checkers say of one run."""

    members: int = 0
    delivered: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Acknowledged, and lost with the member that crashed: possible with degree 0 alone."""
    violations: list[Violation] = field(default_factory=list)

    def __str__(self) -> str:
        found = f"{len(self.violations)} violations" if self.violations else "ok"
        lost = f", {self.lost} lost with members that crashed" if self.lost else ""
        return (
            f"{self.members} members, {self.delivered} messages, "
            f"{self.acknowledged} acknowledged{lost}: {found}"
        )


def judge(folder: Path, degree: int, group: str = "default", most: int = 10_000) -> Verdict:
    """Read a folder and check it; `degree` is the writes' resilience degree."""
    return judge_histories(load(folder, group), degree, most)


def judge_histories(histories: list[History], degree: int, most: int = 10_000) -> Verdict:
    """Check histories; of the black-box search's calls, as many as `most`."""
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
    verdict.violations += objects.check(canon, histories)
    verdict.violations += sessions.check(canon, histories)
    if not canon.lost:  # a write that was seen and then lost has no place in any order
        verdict.violations += witness.check(canon, histories)
        verdict.violations += blackbox.check(histories, most)
    return verdict


def main() -> None:
    """The command line: exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="tests.histories", description=__doc__)
    parser.add_argument("folder", type=Path, help="what ORCALIKE_HISTORY named")
    parser.add_argument("--r", type=int, default=0, help="the resilience degree (default: 0)")
    parser.add_argument("--group", default="default", help="the group's name")
    options = parser.parse_args()
    verdict = judge(options.folder, options.r, options.group)
    print(verdict)
    for violation in verdict.violations:
        print(f"  {violation}")
    sys.exit(bool(verdict.violations))
