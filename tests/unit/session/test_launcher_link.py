"""One member's use of the line to the launcher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orcalike.launch_protocol import control_channel
from orcalike.launch_protocol.deaths import Deaths
from orcalike.session import launcher_link
from orcalike.session.launcher_link import LauncherLink, report_joining


class ManualPump:
    """A pump that does at once what is handed on to it."""

    receives_deaths = False

    def __init__(self) -> None:
        self.reported: list[object] = []
        """What was reported to it of other processes."""

    def report_death(self, incarnation: int) -> None:
        self.reported.append(("died", incarnation))

    def report_gone(self, incarnation: int) -> None:
        self.reported.append(("gone", incarnation))

    def later(self, call: Callable[[], None]) -> None:
        call()

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        function(*arguments, 0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """When the group was made."""
    monkeypatch.setattr(control_channel, "_to_make", {})
    return []


@pytest.fixture
def link(made: list[int]) -> Iterator[LauncherLink]:
    link = LauncherLink(
        "default",
        ManualPump(),  # type: ignore[arg-type]
        {},
        lambda ranks: None,
        lambda: None,
        lambda question: pytest.fail("nothing is asked"),
        made.append,
        shares_memory=lambda: True,
    )
    yield link
    link.forget()


def test_the_group_is_made_when_the_launcher_says_so(link: LauncherLink, made: list[int]) -> None:
    link.joining(7)
    link.listen()
    assert made == []
    assert control_channel.receive("make default 7")
    assert made == [0]


def test_also_if_it_was_said_before_the_link_listens(link: LauncherLink, made: list[int]) -> None:
    link.joining(7)
    assert control_channel.receive("make default 7")
    link.listen()
    assert made == [0]


def test_not_as_a_member_that_is_no_more(link: LauncherLink, made: list[int]) -> None:
    """It was said late: another incarnation joins, perhaps the group that this one had made."""
    link.joining(7)
    link.listen()
    link.joining(8)
    assert control_channel.receive("make default 7")
    assert made == []
    link.forget()
    assert control_channel.receive("make default 8")
    assert made == []


REPORTS = ["ended 3", "died 31", "gone 32", "cut 3,w", "heal"]


@pytest.fixture
def pump(monkeypatch: pytest.MonkeyPatch) -> ManualPump:
    """Of a process to which nothing was reported yet; it knows the addresses that it is cut off from."""
    pump = ManualPump()
    for name, value in (("_ended", set()), ("_died", Deaths()), ("_cut", frozenset())):
        monkeypatch.setattr(control_channel, name, value)
    monkeypatch.setattr(
        launcher_link, "sever", lambda it, addresses: pump.reported.append(("cut", addresses))
    )
    return pump


def test_what_the_launcher_reports_is_done_until_the_group_is_left(pump: ManualPump) -> None:
    """Another group of this process may be there still, so the line is read."""
    link = LauncherLink(
        "default",
        pump,  # type: ignore[arg-type]
        {3: "unix:/three", None: "unix:/witness", 4: "unix:/four"},
        lambda ranks: None,
        lambda: pump.reported.append("changed"),
        lambda question: pytest.fail("nothing is asked"),
        lambda now: pytest.fail("nothing is made"),
        shares_memory=lambda: True,
    )
    link.listen()
    for line in REPORTS:
        assert control_channel.receive(line)
    done, pump.reported = pump.reported, []
    cut = done.pop(3)
    assert done == ["changed", ("died", 31), ("gone", 32), ("cut", [])]
    assert sorted(cut[1]) == ["unix:/three", "unix:/witness"]  # type: ignore[index]
    assert link.ended == {3}
    link.leave()
    for line in (*REPORTS, "ended 4", "make default 0", "describe 1"):
        assert control_channel.receive(line)
    assert pump.reported == []
    assert link.ended == {3}


@pytest.mark.parametrize("taken", [True, False])
def test_what_a_rank_has_started_grants_leases_if_the_launcher_reports_its_end(
    monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    """Else they would only delay others: by TCP no other way is there to be certain of it (H13)."""
    reported: list[int] = []

    def report(incarnation: int) -> bool:
        reported.append(incarnation)
        return taken

    monkeypatch.setattr(control_channel, "report_member", report)
    pump = ManualPump()
    report_joining(None, pump, 7)  # type: ignore[arg-type]
    assert reported == [7]
    assert pump.receives_deaths is taken
