"""Requests to start a process, as they travel: what is registered, and what is believed of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime import registered
from orcalike.runtime.codes import Code
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.forks import Request


def work(group: orca.Group) -> None:
    """Never runs here."""


async def coroutine(group: orca.Group) -> None:
    """Is no function that a process could run."""


class Class:
    """Has a method."""

    def method(self) -> None:
        """Belongs to an object."""


@pytest.fixture(autouse=True)
def own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered, "functions", {})


def test_a_function_of_a_module_is_registered_by_its_name() -> None:
    assert orca.register(work) is work
    assert registered.functions == {registered.import_name(work): work}


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (coroutine, "is a coroutine function"),
        (Class.method, "stands in a module"),
        (Class().method, "stands in a module"),
        (lambda group: None, "stands in a module"),
        (print, "stands in a module"),
    ],
    ids=["coroutine", "method", "bound", "nested", "builtin"],
)
def test_no_other_function_is(function: Any, why: str) -> None:
    with pytest.raises(orca.DeclarationError, match=why):
        orca.register(function)
    assert registered.functions == {}


def test_a_group_of_one_listens_if_a_function_is_registered_and_not_else() -> None:
    with orca.join() as group:
        assert group.address == ""
        orca.register(work)
        with pytest.raises(orca.ForkFailed, match=r"register the function before join"):
            group.fork(work)
    with orca.join() as group:
        assert group.address.startswith("unix:")
        assert group.info().resilience == 0


class Starter:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def start(self, request: Request) -> None:
        """Is called for a request."""
        self.asked.append(request)

    def withdraw(self, source: int, ticket: int) -> None:
        """Is called for a call that is withdrawn."""
        self.asked.append((source, ticket))

    def describe(self) -> list[tuple[int | None, int, str]]:
        """There are no processes."""
        return []


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    """Of a group of one, which starts no processes, but notes what it is asked for."""
    with orca.join() as group:
        group._runtime.manager.forks.starter = Starter()
        yield group._runtime


def asked(runtime: Runtime) -> list[Any]:
    starter = runtime.manager.forks.starter
    assert isinstance(starter, Starter)
    return starter.asked


def invoke(runtime: Runtime, code: Code, *args: object) -> Any:
    return runtime.sender.invoke_group(code, args, "a test")


@pytest.mark.parametrize(
    "args", [(), ("x", "m:f", b""), (1, 2, b""), (1, "m:f", "x"), (1, 2, 3, 4)]
)
def test_what_is_no_request(runtime: Runtime, args: tuple[object, ...]) -> None:
    with pytest.raises((orca.ProtocolError, TypeError)):
        invoke(runtime, Code.FORK, *args).result()
    assert asked(runtime) == []


def test_a_member_that_is_not_there(runtime: Runtime) -> None:
    with pytest.raises(orca.ForkFailed, match="has left the group"):
        invoke(runtime, Code.FORK, runtime.incarnation ^ 1, "m:f", b"").result()
    assert asked(runtime) == []


def test_an_answer_ends_the_call_once(runtime: Runtime) -> None:
    call = runtime.manager.forks.invoke(runtime.me, "m:f", (1, "x"))
    (request,) = asked(runtime)
    assert request[:3] == (runtime.incarnation, call.ticket, "m:f")
    assert runtime.sender.codec.decode(request.arguments) == [1, "x"]
    assert not call.done()
    for source, ticket in ((runtime.incarnation ^ 1, call.ticket), (runtime.incarnation, 10**6)):
        invoke(runtime, Code.FORKED, source, ticket, runtime.me, "").result()
        assert not call.done()
    runtime.manager.forks.answer(request, runtime.me, "")
    assert call.result() == runtime.me
    runtime.manager.forks.answer(request, None, "again")
    assert call.result() == runtime.me


def test_an_answer_that_says_why_not(runtime: Runtime) -> None:
    call = runtime.manager.forks.invoke(runtime.me, "m:f", ())
    runtime.manager.forks.answer(asked(runtime)[0], None, "there is no room")
    with pytest.raises(orca.ForkFailed, match=r"rank 0 .* started no member: there is no room"):
        call.result()


def test_leaving_ends_what_is_asked_for() -> None:
    with orca.join() as group:
        group._runtime.manager.forks.starter = Starter()
        call = group._runtime.manager.forks.invoke(group.me, "m:f", ())
    with pytest.raises(orca.GroupClosed):
        call.result()
