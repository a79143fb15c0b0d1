"""`orcalike run --stack` and `--layer`: one stack for the ranks, the witness and all groups."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lib.orders import OVER_RANK, OVER_WITNESS
from tests.lib.warm import WarmCli

if TYPE_CHECKING:
    from tests.lib.command import Cli

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "docs" / "how-to-write-a-layer.md"
PLAIN = "PACK:XFER:TOTAL:MBRSHIP:COM:unix"
PROGRAM = """
    import orcalike as orca
    from orcalike.objects import Counter

    with orca.join() as group, orca.join("other") as other:
        counters = [group.share(Counter, "total"), other.share(Counter, "total")]
        for counter in counters:
            counter.add(10)
        group.barrier()
        other.barrier()
        layers = [each._session.stack.config.options["stack"] for each in (group, other)]
        print([counter.value for counter in counters], *layers)
"""


@pytest.fixture
def cli(tmp_path: Path) -> WarmCli:
    """The command, for this test."""
    return WarmCli(tmp_path)


@pytest.fixture
def program(cli: Cli) -> str:
    return cli.write(PROGRAM)


@pytest.fixture
def own_layer(program: str) -> str:
    """The layer of the manual, in a module beside the program."""
    code = re.search(r"```python\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    assert code is not None
    (Path(program).parent / "mylayers.py").write_text(code[1])
    return "mylayers:Check"


@pytest.mark.parametrize(
    ("order", "medium", "options"),
    [("TOTAL", "unix", OVER_RANK), ("TOTAL", "tcp", OVER_WITNESS), ("RING", "unix", ())],
    ids=["rank", "witness", "memory"],
)
def test_a_layer_of_the_programs_own(
    cli: Cli, program: str, own_layer: str, order: str, medium: str, options: tuple[str, ...]
) -> None:
    layers = f"PACK:XFER:{order}:CHECK(salt=7):MBRSHIP:COM"
    ended = cli.run(
        "-n2", *options, "--layer", own_layer, "--stack", f"{layers}:{medium}", "--no-prefix",
        program,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [f"[20, 20] {layers} {layers}"] * 2


def test_a_rank_that_asks_for_another_stack(cli: Cli, program: str) -> None:
    Path(program).write_text(Path(program).read_text().replace("join()", f"join(stack={PLAIN!r})"))
    stack = "PACK:STABLE:XFER:TOTAL:MBRSHIP:COM:unix"
    ended = cli.run("-n1", "--sequencer", "witness", "--stack", stack, program)
    assert ended.returncode == 1
    assert "has the stack PACK:STABLE:XFER:TOTAL:MBRSHIP:COM, not PACK:XFER" in ended.stderr


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--stack", "PACK:TOTAL"], "--stack: 'PACK:TOTAL' does not end in COM:medium"),
        (["--stack", "MBRSHIP:COM:unix"], "needs STATE, TOTAL_ORDER from below"),
        (["--stack", "TOTAL:COM:unix"], "--stack: TOTAL needs VIEWS from below: put MBRSHIP"),
        (["--stack", PLAIN.replace("unix", "sim")], "COM:sim runs in the simulator only"),
        (["--tcp", "--stack", PLAIN], "--stack ends in COM:unix, which --tcp is not"),
        (["--layer", "check"], "layer 'check': write module:Class"),
        (["--layer", "nowhere:Check"], "nowhere cannot be imported: ModuleNotFoundError"),
        (["--layer", "mylayers:Chek"], "layer 'mylayers:Chek': mylayers has no Chek"),
        (["--layer", "mylayers:SIZE"], "4 is not a layer"),
    ],
)
def test_what_cannot_be_a_stack(
    cli: Cli, program: str, own_layer: str, options: list[str], error: str
) -> None:
    ended = cli.run("-n2", *options, program)
    assert ended.returncode == 2
    assert error in ended.stderr
    assert ended.stdout == ""
