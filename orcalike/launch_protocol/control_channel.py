"""A process's end of its line to the launcher: reports in both directions (`control_lines`).

Outside of a launched program nothing is sent and nothing arrives. What a rank has forked or started reports which
members it is, and nothing else, if it has the rank's descriptor.
"""

from __future__ import annotations

import functools
import os
import select
import threading
from collections.abc import Callable, Iterable

from orcalike.launch_protocol.control_lines import (
    Blocked,
    Cut,
    Describe,
    Described,
    Died,
    Ended,
    Gone,
    Heal,
    Hosts,
    IsMember,
    Joining,
    Lacks,
    Leaving,
    Left,
    Make,
    Role,
    Sequencer,
    SharedOrder,
    ToLauncher,
    Unblocked,
    encode,
    parse_for_process,
)
from orcalike.launch_protocol.deaths import Deaths
from orcalike.launch_protocol.outgoing_lines import OutgoingLines
from orcalike.launch_protocol.own_descriptor import held_descriptor, own_descriptor
from orcalike.transport.drivers.deferral import OwnThread
from orcalike.transport.view import Member

_ended: set[int] = set()
_died = Deaths()
_to_make: dict[str, int] = {}
"""By group: the member that was last named to make it."""
_cut: frozenset[Role] = frozenset()
_on_ended: list[Callable[[set[int]], None]] = []
_on_make: list[Callable[[int], None]] = []
_on_died: list[Callable[[int], None]] = []
_on_gone: list[Callable[[int], None]] = []
_on_cut: list[Callable[[frozenset[Role]], None]] = []
_on_describe: list[Callable[[Describe], None]] = []
_sent: dict[str, ToLauncher] = {}
_own_descriptor: tuple[int, int] | None = None
"""The descriptor of the witness's line, and the process that it belongs to."""
_reading = False
_lock = threading.RLock()
"""Held while listeners are called, so that each listener gets each report once, and the latest last."""


# Reports of the launcher.


def listen(listener: Callable[[set[int]], None]) -> None:
    """Call `listener` with the ranks that have ended, each time that there is another one.

    As with the other `listen_...`, it is called on a thread of its own (in the witness by `receive`),
    and at once, here, with what was reported before. It may only queue what it gets.
    """
    with _lock:
        _on_ended.append(listener)
        _start_reading()
        if _ended:
            listener(set(_ended))


def listen_make(listener: Callable[[int], None]) -> None:
    """Call `listener` with the incarnation of each member of this process that is to make its group (ADR-23)."""
    _listen(_on_make, listener, _to_make.values())


def listen_died(listener: Callable[[int], None]) -> None:
    """Call `listener` with the incarnation of each member of this host whose process was seen to end (H13)."""
    _listen(_on_died, listener, _died)


def listen_gone(listener: Callable[[int], None]) -> None:
    """Call `listener` with the incarnation of each member of another host that is said to be gone.

    The word may be wrong, so it counts once: what was said before is not repeated.
    """
    _listen(_on_gone, listener, ())


def _listen(
    listeners: list[Callable[[int], None]],
    listener: Callable[[int], None],
    said_before: Iterable[int],
) -> None:
    with _lock:
        listeners.append(listener)
        _start_reading()
        for incarnation in said_before:
            listener(incarnation)


def listen_cut(listener: Callable[[frozenset[Role]], None]) -> None:
    """Call `listener` with those that this process is cut off from: ranks, None for the witness.

    Each call replaces the one before; an empty set is the end of a partition.
    """
    with _lock:
        _on_cut.append(listener)
        _start_reading()
        if _cut:
            listener(_cut)


def listen_describe(listener: Callable[[Describe], None]) -> None:
    """Call `listener` with each question how this process's groups stand.

    It answers with `report_state`.
    """
    with _lock:
        _on_describe.append(listener)
        _start_reading()


def forget(listener: Callable[..., None]) -> None:
    """The end of `listen` or of a `listen_...`.

    It takes no lock: a forked child calls it, in which no thread would let the lock go.
    """
    for listeners in (_on_ended, _on_make, _on_died, _on_gone, _on_cut, _on_describe):
        if listener in listeners:
            listeners.remove(listener)


def receive(line: str) -> bool:
    """Take a line from the launcher; whether it was one for any process."""
    with _lock:
        return _take(line)


def _take(line: str) -> bool:
    global _cut
    match parse_for_process(line):
        case Ended(rank):
            _ended.add(rank)
            for on_ended in _on_ended.copy():
                on_ended(set(_ended))
        case Make(group, incarnation):
            _to_make[group] = incarnation
            for on_make in _on_make.copy():
                on_make(incarnation)
        case Died(incarnation):
            _died.add(incarnation)
            for on_died in _on_died.copy():
                on_died(incarnation)
        case Gone(incarnation):
            for on_gone in _on_gone.copy():
                on_gone(incarnation)
        case Cut(others):
            _cut = others
            _call_on_cut()
        case Heal():
            _cut = frozenset()
            _call_on_cut()
        case Describe() as question:
            for on_describe in _on_describe.copy():
                on_describe(question)
        case _:
            return False
    return True


def _call_on_cut() -> None:
    for on_cut in _on_cut.copy():
        on_cut(_cut)


def has_died(incarnation: int) -> bool:
    """Whether the process of this member, of this host, was seen to end (H13)."""
    return incarnation in _died


# Reports to the launcher.


def report_joining(group: str, incarnation: int) -> None:
    """This process asks to be let into the group as this member, or makes the group."""
    _sent.pop(group, None)
    _send(Joining(group, incarnation))


def report_leaving(group: str) -> None:
    """This process leaves the group, and is out of it soon; it may be called again."""
    _send_once(Leaving(group))


def report_left(group: str) -> None:
    """This process has left the group, or does not join it any more."""
    _sent.pop(group, None)
    _send(Left(group))


def report_member(incarnation: int) -> bool:
    """This process, which a rank has started, asks to be let into a group as this member; whether a launcher learns it.

    When it returns the launcher will read it, whatever becomes of this process and of the rank: so it knows of each such
    member before any other process does.
    """
    if is_open() or (descriptor := passed_descriptor()) is None:
        return False
    return _write_at_once(descriptor, encode(IsMember(incarnation)).encode() + b"\n")


def _write_at_once(descriptor: int, line: bytes) -> bool:
    """Write a line so short that the kernel takes it in one piece, as soon as it has room; whether it was taken."""
    ready = select.poll()
    ready.register(descriptor, select.POLLOUT)
    while True:
        try:
            os.write(descriptor, line)
        except BlockingIOError:
            ready.poll()
        except OSError:  # the rank, or the launcher, has ended
            return False
        else:
            return True


def report_unblocked(group: str) -> None:
    """A primary view was installed; it may be called for each."""
    _send_once(Unblocked(group))


def report_sequencer(group: str) -> None:
    """A primary view was installed in which this process orders; it may be called for each."""
    _send_once(Sequencer(group))


def report_shared_order(group: str) -> None:
    """A primary view was installed whose order is in shared memory; it may be called for each."""
    _send_once(SharedOrder(group))


def report_blocked(group: str, missing: Iterable[Member], rule: str) -> None:
    """No primary view can be formed without these members, by this rule.

    When all that is left of a program waits like this, for members whose processes have ended, the
    launcher ends it.
    """
    roles = ((member.incarnation, None if member.witness else member.rank) for member in missing)
    _send_once(Blocked(group, tuple(roles), rule))


def report_lacking(group: str, needed: int, rule: str) -> None:
    """This process waits until so many members with replicas are in its view.

    When all that is left of a program waits like this, and no more can come, the launcher ends it.
    """
    _send_once(Lacks(group, needed, rule))


def report_hosts(group: str, number: int) -> None:
    """This process has started so many that run, and are members of the group, or are to be."""
    _send(Hosts(group, number))


def report_state(described: Described) -> None:
    """How a group stands here, which the launcher has asked for."""
    _send(described)


def speak_by(descriptor: int) -> None:
    """Report by this descriptor: the witness, which reads its line by itself (`receive`)."""
    global _own_descriptor
    _own_descriptor = (descriptor, os.getpid())


def _send_once(report: ToLauncher) -> None:
    if _sent.get(report.group) != report:
        _sent[report.group] = report
        _send(report)


# The line itself.


def is_open() -> bool:
    """Whether this process has a line to a launcher."""
    return _descriptor() is not None


def _descriptor() -> int | None:
    """This process's own end of the line, which does not block; None if there is none.

    A rank's is named by `ORCALIKE_CONTROL_FD`; with another process's number it is what a rank has left to
    what it started.
    """
    if _own_descriptor is None:
        try:
            return own_descriptor(os.environ.get("ORCALIKE_CONTROL_FD", ""))
        except OSError:  # this program was started in the place of the rank's, which has closed it
            return None
    descriptor, pid = _own_descriptor
    return descriptor if pid == os.getpid() else None


def passed_descriptor() -> int | None:
    """The end of the rank's line that this process has, be it the rank or not; None if there is none.

    The launcher knows by the kernel what the rank has not written itself.
    """
    return held_descriptor(os.environ.get("ORCALIKE_CONTROL_FD", ""))


_send = OutgoingLines(_descriptor).send


def _start_reading() -> None:
    global _reading
    if _reading or _own_descriptor is not None or (descriptor := _descriptor()) is None:
        return
    _reading = True
    OwnThread(functools.partial(_read, descriptor), "orcalike control").start()


def _read(descriptor: int) -> None:
    rest = b""
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    while True:
        ready.poll()
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            continue
        except OSError:
            return
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            receive(line.decode(errors="replace"))
