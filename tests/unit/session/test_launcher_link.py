"""One member's use of the line to the launcher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orcalike.launch_protocol import control_channel
from orcalike.session.launcher_link import LauncherLink, report_joining


class ManualPump:
    """A pump that does at once what is handed on to it."""

    receives_deaths = False

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
