"""Pods of an indexed Job: as processes with a host name and an `/etc/hosts` of their own each.

There is no Kubernetes here. A namespace for host names and one for mounts gives each process what the system of a pod
gives it: its name, and the others' names, for which addresses of the loopback interface stand.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.lib import warm
from tests.lib.command import Cli
from tests.lib.engine_program import expected, lines_of, make_key, write_program
from tests.lib.processes import DEADLINE

JOB = "solve"
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "--uts"]
ENTER = 'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"'

STAYS = """
import sys
import time

import orcalike as orca
from orcalike.objects import Counter

with orca.join() as group:
    total = group.share(Counter, "total")
    total.add(1)
    print(f"in {group.rank}", flush=True)
    while total.get() < int(sys.argv[1]):
        time.sleep(0.02)
    group.barrier()
    print(f"rank {group.rank} ends", flush=True)
"""


class Pods:
    """The pods of one job."""

    def __init__(self, directory: Path, count: int) -> None:
        self._count = count
        # All pods have one port; those of tests that run at the same time have other addresses.
        self._network = f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(256)}"
        self._hosts = directory / "hosts"
        self._environment = os.environ | make_key(directory) | {"PYTHONHASHSEED": "0"}
        self.started: list[subprocess.Popen[str]] = []
        self.name(*range(count))

    def name(self, *indexes: int) -> None:
        """Have these pods' names known."""
        text = "127.0.0.1 localhost\n"
        text += "".join(f"{self._network}.{10 + i} {JOB}-{i}.{JOB} {JOB}-{i}\n" for i in indexes)
        self._hosts.write_text(text)

    def start(self, index: int, *command: str) -> subprocess.Popen[str]:
        """One pod."""
        variables = {
            "JOB_COMPLETION_INDEX": str(index),
            "ORCALIKE_WORLD_SIZE": str(self._count),
        }
        pod = subprocess.Popen(
            [
                *UNSHARE,
                "sh",
                "-c",
                ENTER,
                str(self._hosts),
                f"{JOB}-{index}",
                sys.executable,
                *command,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment | variables,
        )
        self.started.append(pod)
        return pod

    def end(self) -> tuple[list[str], int, str]:
        """(lines in some order, the first exit code that is not 0, standard errors)."""
        outputs = [process.communicate(timeout=DEADLINE) for process in self.started]
        codes = [process.returncode for process in self.started]
        lines = sorted(line for out, _ in outputs for line in out.splitlines())
        return lines, next(filter(None, codes), 0), "".join(errors for _, errors in outputs)


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    """Three pods."""
    probe = [*UNSHARE, "true"]
    if (
        not shutil.which("unshare")
        or subprocess.run(probe, check=False, capture_output=True).returncode
    ):
        pytest.skip("unshare --user --mount --uts is not permitted here")
    pods = Pods(tmp_path, 3)
    yield pods
    for process in pods.started:
        process.kill()
        process.communicate()


def test_pods_are_one_group_as_under_orcalike_run(pods: Pods, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    for index in range(3):
        pods.start(index, program, "7")
    lines, code, errors = pods.end()
    assert (lines, code) == expected(program, 3, "7"), errors


def test_names_may_be_known_late(pods: Pods, tmp_path: Path) -> None:
    """A pod is looked up before it is there: that is tried again."""
    program = write_program(tmp_path)
    pods.name(2, 1)
    late = pods.start(2, program)
    pods.start(1, program)
    with pytest.raises(subprocess.TimeoutExpired):
        late.communicate(timeout=3)
    pods.name(0, 1, 2)
    pods.start(0, program)
    lines, code, errors = pods.end()
    assert (lines, code) == (lines_of(3), 0), errors


@pytest.mark.parametrize("index", [0, 2])
def test_a_pod_that_is_started_again_comes_back(pods: Pods, tmp_path: Path, index: int) -> None:
    """Also that of index 0: it makes no second group beside the one that lives."""
    program = write_program(tmp_path, STAYS)
    for each in range(3):
        pods.start(each, program, "4")
    for each in range(3):
        output = pods.started[each].stdout
        assert output
        assert output.readline() == f"in {each}\n"
    killed = pods.started.pop(index)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    pods.start(index, program, "4")
    lines, code, errors = pods.end()
    assert code == 0, errors
    assert lines == [f"in {index}", *(f"rank {rank} ends" for rank in range(3))]


def resources(text: str) -> list[dict[str, Any]]:
    """What a manifest holds, which fits the schemas of Kubernetes."""
    found = list(yaml.safe_load_all(text))
    for each in found:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)
    return found


def manifest(cli: Cli, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`orcalike k8s manifest`."""
    return warm.python("-m", "orcalike", "k8s", "manifest", *arguments, cwd=cli.directory)


def test_the_manifest_is_a_service_and_an_indexed_job(cli: Cli) -> None:
    printed = manifest(cli, "-n", "3", "--image", "r/x:1", "/app/My_Prog.py", "--size", 'a "b"')
    assert printed.returncode == 0, printed.stderr
    service, job = resources(printed.stdout)
    assert (service["spec"]["clusterIP"], service["metadata"]["name"]) == ("None", "my-prog")
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"job-name": "my-prog"}
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"]) == (3, 3)
    assert (spec["completionMode"], spec["template"]["spec"]["subdomain"]) == ("Indexed", "my-prog")
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["python", "/app/My_Prog.py", "--size", 'a "b"']
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert variables["ORCALIKE_WORLD_SIZE"] == "3"
    (mount,), (volume,) = container["volumeMounts"], spec["template"]["spec"]["volumes"]
    assert Path(variables["ORCALIKE_KEY_FILE"]).parent == Path(mount["mountPath"])
    assert volume["secret"] == {"secretName": "my-prog-key", "defaultMode": 0o440}
    # A container that does not run as root reads it by this group, which all of its processes have.
    assert spec["template"]["spec"]["securityContext"] == {"fsGroup": 7471}
    assert "kubectl create secret generic my-prog-key --from-file=key=" in printed.stdout


def test_arguments_come_to_the_program_as_they_are(cli: Cli) -> None:
    """Also those that JSON would write otherwise, and what Kubernetes would replace."""
    arguments = ["prog.py", "\N{GRINNING FACE}", 'a "b"', "$(ORCALIKE_WORLD_SIZE)"]
    printed = manifest(cli, "-n", "2", "--image", "x:1", *arguments)
    assert "\N{GRINNING FACE}" in printed.stdout, "YAML has no pairs of surrogates, as JSON has"
    _, job = resources(printed.stdout)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", *arguments[:-1], "$$(ORCALIKE_WORLD_SIZE)"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("-n", "3", "prog.py"),
        ("--image", "x", "prog.py"),
        ("-n", "0", "--image", "x", "prog.py"),
        ("-n", "3", "--image", "x", "--name", "Big", "prog.py"),
        ("-n", "10", "--image", "x", "--name", "a" * 62, "prog.py"),
        ("-n", "3", "--image", "x", "7.py"),
    ],
)
def test_a_manifest_that_kubernetes_would_refuse_is_refused(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    refused = manifest(cli, *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
