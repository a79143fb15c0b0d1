"""The scripts in testdata/agreement: each step of the agreement on views, and the effects that follow.

Verbs: `group a b c d [held=c:3] [degree=1] [state=a:NONE]`, `suspect ab of=c,d` (nothing after `of=`:
they are well), `crash c d`, `died a of=b [vouched=no]`, `join a new=x [rank=N] [through=N]`,
`leave a of=b`, `expel a of=b`, `proceed a`, `deliver a [to=b] [count=N]`, `lose a [count=N]`, `settle`,
`again a of=b`, `has a state=WHOLE`, `ask a`, `overdue a`, `unsettle a`, `reset a least=N`,
`lie a to=b ballot=N [kind=PROPOSE]`, `leased a of=b`, `leases a`. Below each stand all effects, in order.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from orcalike.simulator.transcript import describe_effect
from orcalike.transport.application_state import State
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership import events
from orcalike.transport.membership.messages import ControlMessage, Promised, Propose, Value
from orcalike.transport.membership.state import COORDINATOR, PARTICIPANT
from orcalike.transport.record import replaced
from orcalike.transport.view import Member
from tests.lib.agreement import FIRST, Group, flush
from tests.protocol import datadriven
from tests.protocol.datadriven import Command

SCRIPTS = sorted((Path(__file__).parent / "testdata" / "agreement").glob("*.txt"))


def member(name: str) -> Member:
    """The member that a letter means."""
    number = ord(name) - ord("a")
    return Member(f"sim:{name}", number, number)


def pairs(text: str) -> dict[str, str]:
    """`a:1,b:2`."""
    return dict(each.split(":") for each in text.split(",") if each)


class Script:
    """One script's group."""

    def __init__(self) -> None:
        self.group = Group()
        self.names: dict[int, str] = {}

    def handle(self, command: Command) -> str:
        """The effects of a command, a line each."""
        verb, *words = command.words
        self.group.log.clear()
        getattr(self, "do_" + verb)(words, command.options)
        return "\n".join(
            f"{name}: {describe_effect(effect, self.names, view or self.group.view)}"
            for name, view, effect in self.group.log
        )

    def do_group(self, words: list[str], options: dict[str, str]) -> None:
        held = {name: int(count) for name, count in pairs(options.get("held", "")).items()}
        degree = int(options.get("degree", 0))
        self.group = Group(*map(member, words), degree=degree, **held)
        self.names = {member(name).incarnation: name for name in "abcdefghxyz"}
        for name, state in pairs(options.get("state", "")).items():
            self.group[name].state = State[state]
        self.group.log.clear()

    def do_suspect(self, words: list[str], options: dict[str, str]) -> None:
        self.group.suspect(words[0], *(each for each in options["of"].split(",") if each))

    def do_crash(self, words: list[str], options: dict[str, str]) -> None:
        self.group.crash(*words)

    def do_died(self, words: list[str], options: dict[str, str]) -> None:
        vouched = options.get("vouched", "yes") == "yes"
        self.group[words[0]].died(member(options["of"]).incarnation, vouched=vouched)
        self.group[words[0]].proceed()

    def do_join(self, words: list[str], options: dict[str, str]) -> None:
        new = member(options["new"])
        rank = int(options["rank"]) if "rank" in options else new.rank
        joiner = Member(new.address, new.incarnation, rank)
        self.group[words[0]].step(events.JoinAsked(joiner, {}, int(options.get("through", -1))))

    def do_leave(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].ask_leave(member(options["of"]).incarnation)

    def do_proceed(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].proceed()

    def do_deliver(self, words: list[str], options: dict[str, str]) -> None:
        self.group.pass_on(words[0], options.get("to", ""), int(options.get("count", 99)))

    def do_lose(self, words: list[str], options: dict[str, str]) -> None:
        sent = self.group[words[0]].sent
        for _ in range(min(len(sent), int(options.get("count", 99)))):
            sent.popleft()

    def do_settle(self, words: list[str], options: dict[str, str]) -> None:
        self.group.settle()

    def do_again(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].again(member(options["of"]).incarnation)

    def do_ask(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].step(events.AskAgain())

    def do_has(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].state = State[options["state"]]

    def do_overdue(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].overdue()
        self.group[words[0]].proceed()

    def do_unsettle(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].step(events.Unsettled())
        self.group[words[0]].proceed()

    def do_expel(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].step(events.Expelled((member(options["of"]).incarnation,)))
        self.group[words[0]].proceed()

    def do_reset(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].reset(int(options["least"]))

    def do_lie(self, words: list[str], options: dict[str, str]) -> None:
        """A message that no member's agreement would send."""
        ballot, (liar,) = int(options["ballot"]), words
        position = self.group.view.position(member(liar).incarnation)
        after = replaced(self.group.view, number=2, ballot=ballot, follows=FIRST)
        made: dict[str, ControlMessage] = {
            "FLUSH": flush(ballot),
            "PROPOSE": Propose(ballot, Value(after, b"\x01")),
            "PROMISED": Promised(ballot),
        }
        with contextlib.suppress(ProtocolError):  # its link would be closed
            self.group[options["to"]].receive(position, made[options.get("kind", "FLUSH")])

    def do_leased(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].leased = {member(name).incarnation: 5_000 for name in options["of"]}

    def do_leases(self, words: list[str], options: dict[str, str]) -> None:
        self.group[words[0]].step(events.LeasesEnded(()))
        self.group[words[0]].proceed()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path, request: pytest.FixtureRequest) -> None:
    datadriven.run(path, Script().handle, rewrite=request.config.getoption("--rewrite"))


def test_there_are_scripts_of_each_change_of_state() -> None:
    text = "".join(path.read_text() for path in SCRIPTS)
    for role, table in (("participant", PARTICIPANT), ("coordinator", COORDINATOR)):
        for before, changes in table.items():
            for cause, after in changes.items():
                if after is not before and cause.name not in ("INSTALLED", "EXITED"):
                    line = f"{role} {before.name} -> {after.name}: {cause.name}"
                    assert line in text, line
    assert len(SCRIPTS) >= 25
