"""The bar of partitions: five hosts on a switch that loses frames, cut into parts again and again (G37).

Each host has one member, which writes and reads all the time, and joins again when it was expelled. What
they recorded is checked: no two primary views, and all else. No two are on one host, so no death is certain.

    python -m tests.campaign.partitions --cuts 20 --loss 0.1 --seed 3
"""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from orcalike.history_check.check import check_histories
from orcalike.history_check.records import load
from orcalike.launch_protocol.environment import DETECTION_OVER_TCP
from tests.campaign.bars import Bar, Figure, Scale
from tests.campaign.members import Member, Processes, Settings
from tests.campaign.models import model_of
from tests.lib.lossy_switch import LossySwitch, why_not
from tests.lib.processes import Stuck

HOSTS = 5
LOSSES = (0.05, 0.1, 0.2, 0.3)
DETECTION = DETECTION_OVER_TCP / 1e9
"""D, seconds, as it is by default."""
SETTLED_WITHIN = 120.0
"""Seconds in which all must be in one view again, and be done; TCP backs off while frames are lost."""
CUTS_OF_A_RUN = 10
SETTINGS = Settings(degree=1, interval=0.02, join_within=SETTLED_WITHIN)


def torment(
    folder: Path, switch: LossySwitch, cuts: int, seed: int, settings: Settings = SETTINGS
) -> tuple[list[str], int]:
    """Cut a group so many times; what was wrong, and how much was delivered."""
    rng = random.Random(seed)
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(32))
    processes = Processes(folder, settings, seed, switch.hosts, key)
    wrong: list[str] = []
    try:
        for _ in switch.hosts:
            member = processes.start()
            processes.until(
                lambda member=member: member.view or not member.runs,  # type: ignore[misc]
                "a member joins",
                SETTLED_WITHIN,
            )
        for _ in range(cuts):
            processes.until(processes.agreed, "all in one view", SETTLED_WITHIN)
            time.sleep(DETECTION * rng.uniform(0.2, 2))
            numbers = rng.sample(range(HOSTS), HOSTS)
            middle = rng.randint(1, HOSTS - 1)
            switch.cut(numbers[:middle], numbers[middle:])
            time.sleep(DETECTION * rng.uniform(0.3, 6))
            switch.heal()
        processes.until(processes.agreed, "all in one view", SETTLED_WITHIN)
        processes.finish(SETTLED_WITHIN)
    except Stuck as why:
        wrong.append(f"{folder}: {why}")
        time.sleep(0.5)  # until the stacks are written
    finally:
        processes.end()
    histories = load(folder / "history")
    verdict = check_histories(histories, settings.degree, model_of)
    wrong += [f"{folder}: {each}" for each in verdict.violations[:3]]
    wrong += [f"{folder}: {each}" for member in processes.members for each in faults_of(member)]
    return wrong, verdict.delivered


def faults_of(member: Member) -> list[str]:
    """What a member could not get over: to join again after Expelled is none, nor to be killed in the end."""
    code = member.process.returncode
    ended = [] if code in (0, -signal.SIGKILL) else [f"member {member.number} ended with {code}"]
    return member.trouble + ended


def run(cuts: int, loss: float, seed: int) -> list[str]:
    """One run on a switch of its own; a folder in which something is wrong stays."""
    folder = Path(tempfile.mkdtemp(prefix="orcalike-cuts-"))
    switch = LossySwitch(HOSTS, seed, loss)
    try:
        wrong, _ = torment(folder, switch, cuts, seed)
    finally:
        switch.close()
    if not wrong:
        shutil.rmtree(folder)
    return wrong


def measure_partitions(scale: Scale) -> list[Figure]:
    """G37: partitions between hosts, over TCP on a network that loses frames."""
    if (reason := why_not()) is not None:
        return [Figure("G37", f"not measured: {reason}", True)]
    cuts, begin = scale.of(40, 1_000), secrets.randbelow(1 << 32)
    wrong: list[str] = []
    done = number = 0
    while done < cuts:
        some = min(CUTS_OF_A_RUN, cuts - done)
        wrong += run(some, LOSSES[number % len(LOSSES)], begin + number)
        done, number = done + some, number + 1
    return [Figure("G37", f"{done} cuts, {len(wrong)} wrong", not wrong, wrong)]


BARS = [Bar(("G37",), {"G37": "40 cuts at 5 to 30 % loss, 0 dual primaries"}, measure_partitions)]


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(prog="tests.campaign.partitions", description=__doc__)
    parser.add_argument("--cuts", type=int, default=CUTS_OF_A_RUN)
    parser.add_argument("--loss", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = run(options.cuts, options.loss, options.seed)
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
