"""G19, G36: hostile frames, at a stack, and over TCP at a member that has a key.

G19 is of a grammar, by non-members and by members; `python -m tests.protocol.hostile --frames 1 --seed N` shows
what one seed does. G36 is of connections before they have proved the key, and after, captures replayed
among them; `python -m tests.fuzz --only before_proof --seed N --batches 1` is one batch of it.
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


TAKEN = re.compile(r"^(before_proof|after_proof) +(\d+) inputs", re.MULTILINE)
BATCHES = 20
"""Of each of the two targets, for one process: it must not grow meanwhile."""


def attack_keyed(seed: int) -> tuple[dict[str, int], str]:
    """Frames by target, and what broke, of one process."""
    command = [sys.executable, "-m", "tests.fuzz", "--only", "before_proof,after_proof"]
    command += ["--seconds", "100000", "--batches", str(BATCHES), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {name: int(count) for name, count in TAKEN.findall(done.stdout)}
    if done.returncode or len(found) < 2:
        last = done.stderr.strip().splitlines()[-3:] or ["it said nothing"]
        return {}, f"--seed {seed}: exit code {done.returncode}: {' '.join(last)}"
    return found, ""


def measure_keyed(scale: Scale) -> list[Figure]:
    """Whatever comes over TCP, without the key or with it, changes nothing, and memory is bounded."""
    wanted, seed = scale.of(200_000, 5_000_000), 36_000_000
    frames = {"before_proof": 0, "after_proof": 0}
    wrong: list[str] = []
    while sum(frames.values()) < wanted and len(wrong) < 10:
        more, trouble = attack_keyed(seed)
        seed += BATCHES
        for name, count in more.items():
            frames[name] += count
        wrong += [trouble] if trouble else []
    before, after = frames.values()
    text = f"{before} frames before the key was proved, {after} after, {len(wrong)} broke something"
    return [Figure("G36", text, not wrong, wrong)]


BARS = [
    Bar(("G19",), {"G19": "0 of 200,000 frames break anything (T2: 5 M)"}, measure_frames),
    Bar(("G36",), {"G36": "0 of 200,000 frames over TCP break anything (T2: 5 M)"}, measure_keyed),
]
