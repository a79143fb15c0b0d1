"""The scripts in testdata/: what every member does, frame by frame, in situations that matter.

Verbs: `add-members a b c [witness=a]`, `new d [rank=N] [NAME=VALUE]`, `join d through=a`,
`cast a data=x [count=N]`, `deliver a b [count=N]`, `stabilize [quiet=yes]`, `leave a`,
`credit b given=no`, `break a b`, `state a [layer=TOTAL]`, `stack LAYERS`, `version`, `bytes` (of all frames since).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orcalike.transport.layers.com import WIRE_VERSION
from tests.lib.manual_network import STACK, ManualNetwork
from tests.protocol import datadriven
from tests.protocol.datadriven import Command

SCRIPTS = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


class Recorder(ManualNetwork):
    """A network that keeps what arrives, byte by byte."""

    def __init__(self, stack: str = STACK) -> None:
        super().__init__(stack)
        self.arrived: list[bytes] = []

    def inject(self, target: str, link: int, frame: bytes) -> None:
        """As ever."""
        self.arrived.append(frame)
        super().inject(target, link, frame)

    def take_bytes(self) -> list[str]:
        """What has arrived since the last call, each once."""
        arrived, self.arrived = self.arrived, []
        return list(dict.fromkeys(frame.hex() for frame in arrived))


class Script:
    """One script's group."""

    def __init__(self) -> None:
        self.network = Recorder()

    def handle(self, command: Command) -> str:
        """What came of a command, a line each."""
        verb, *words = command.words
        result = getattr(self, "do_" + verb.replace("-", "_"))(words, command.options)
        return "\n".join(self.network.lines()) if result is None else str(result)

    def do_stack(self, words: list[str], options: dict[str, str]) -> None:
        self.network = Recorder(words[0] if words else STACK)

    def do_version(self, words: list[str], options: dict[str, str]) -> str:
        return str(WIRE_VERSION)

    def do_bytes(self, words: list[str], options: dict[str, str]) -> str:
        self.network.lines()
        return "\n".join(self.network.take_bytes())

    def do_add_members(self, words: list[str], options: dict[str, str]) -> None:
        self.network.form(" ".join(words), options.get("witness", ""))
        self.network.lines()

    def do_new(self, words: list[str], options: dict[str, str]) -> None:
        rank = options.pop("rank", None)
        self.network.add(words[0], None if rank is None else int(rank), options=options)

    def do_join(self, words: list[str], options: dict[str, str]) -> None:
        self.network.join(words[0], options.get("through", ""))

    def do_cast(self, words: list[str], options: dict[str, str]) -> None:
        count = int(options.get("count", 1))
        for i in range(1, count + 1):
            number = str(i) if count > 1 else ""
            self.network.cast(words[0], (options["data"] + number).encode())

    def do_deliver(self, words: list[str], options: dict[str, str]) -> None:
        self.network.deliver(words[0], words[1], int(options.get("count", 1)))

    def do_stabilize(self, words: list[str], options: dict[str, str]) -> None:
        self.network.stabilize()
        if "quiet" in options:
            self.network.lines()

    def do_leave(self, words: list[str], options: dict[str, str]) -> None:
        self.network.leave(words[0])

    def do_credit(self, words: list[str], options: dict[str, str]) -> None:
        self.network.credit(words[0], options["given"] == "yes")

    def do_break(self, words: list[str], options: dict[str, str]) -> None:
        self.network.break_links(words[0], words[1])

    def do_state(self, words: list[str], options: dict[str, str]) -> str:
        known = self.network.endpoints[words[0]].stack.dump()[options.get("layer", "TOTAL")]
        return " ".join(f"{name}={value}" for name, value in known.items())


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path, request: pytest.FixtureRequest) -> None:
    datadriven.run(path, Script().handle, rewrite=request.config.getoption("--rewrite"))
    assert path.read_text().endswith("\n")


def test_another_output_fails(tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("cast a data=x\n----\nsomething else\n")
    with pytest.raises(AssertionError, match=r"script.txt, line 1: cast a data=x"):
        datadriven.run(script, lambda command: "this")
    datadriven.run(script, lambda command: "this", rewrite=True)
    assert script.read_text() == "cast a data=x\n----\nthis\n"


def test_a_command_without_its_rule_is_no_script() -> None:
    with pytest.raises(ValueError, match="line 2: ---- should stand below 'cast a'"):
        datadriven.parse("cast a\nok\n")
