"""A member is killed while it holds what the others wait for (`orcalike.objects`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from tests.lib.processes import DEADLINE, Facts
from tests.lib.programs import Programs


def test_a_lock_is_released_when_its_holder_is_killed(programs: Programs) -> None:
    command = ["-m", "orcalike", "run", "--no-prefix", "-q", "--keep-going", "-n", "4"]
    with subprocess.Popen(
        [sys.executable, *command, programs.path("locker.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=programs.environment,
    ) as run:
        assert run.stdout is not None
        holder: Facts = json.loads(run.stdout.readline())
        os.kill(holder["pid"], signal.SIGKILL)
        rest, errors = run.communicate(timeout=DEADLINE)
    facts: list[Facts] = [json.loads(line) for line in rest.splitlines()]
    assert sorted(fact["rank"] for fact in facts) == [1, 2, 3], errors
    assert {fact["first"] for fact in facts} == {holder["token"]}
    tokens = {fact["token"] for fact in facts}
    assert len(tokens) == 3
    assert min(tokens) > holder["token"]
    assert sorted(fact["term"] for fact in facts) == [2, 3, 4]
    assert all(fact["permit"] for fact in facts)
