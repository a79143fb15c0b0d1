"""G19: hostile frames of a grammar, by non-members and by members.

python -m tests.protocol.hostile --frames 1 --seed N shows what one seed does.
"""

from __future__ import annotations

import re
import subprocess
import sys

from tests.campaign.bars import Bar, Figure, Scale

AT_ONCE = 20_000
"""Frames for one process: it keeps the stacks that it attacked."""
SEEDS_APART = 1_000
"""More seeds than so many frames need."""
COUNTED = re.compile(r"(\d+) frames \((\d+) by members\)")


def attack(frames: int, seed: int) -> tuple[int, int, str]:
    """Frames, those by members, and what broke, of one process."""
    command = [sys.executable, "-m", "tests.protocol.hostile"]
    command += ["--frames", str(frames), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = COUNTED.search(done.stdout)
    if done.returncode or found is None:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return 0, 0, f"--seed {seed}: exit code {done.returncode}: {last}"
    return int(found[1]), int(found[2]), ""


def measure_frames(scale: Scale) -> list[Figure]:
    """What a non-member sends changes nothing, and nothing ends another member."""
    wanted, frames, members, seed = scale.of(200_000, 5_000_000), 0, 0, 19_000_000
    wrong: list[str] = []
    while frames < wanted and len(wrong) < 10:
        seed += SEEDS_APART
        more, by_members, trouble = attack(min(AT_ONCE, wanted - frames), seed)
        frames, members = frames + more, members + by_members
        wrong += [trouble] if trouble else []
    text = f"{frames} frames, {members} by members, {len(wrong)} broke something"
    return [Figure("G19", text, not wrong, wrong)]


BARS = [Bar(("G19",), {"G19": "0 of 200,000 frames break anything (T2: 5 M)"}, measure_frames)]
