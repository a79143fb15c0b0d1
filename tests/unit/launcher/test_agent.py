"""What an agent does with the frames of its launcher, and when it ends; the launcher here is the test."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from orcalike.launcher import agent as module
from orcalike.launcher import orphans, probes
from orcalike.launcher.child import Exit
from orcalike.launcher.frames import (
    CREDIT,
    NUMBER,
    SIGNAL,
    STATUS,
    WINDOW,
    Frame,
    Kind,
)
from orcalike.launcher.probes import NO_DATAGRAMS
from tests.lib.agent_launcher import (
    QUIT,
    Host,
    Launcher,
    kinds,
    report_of,
    start_of,
)


def test_what_a_host_reports_of_itself(launcher: Launcher) -> None:
    launcher.make()
    report = report_of(launcher.received())
    assert (report.trouble, report.host, report.pid) == ("", "127.0.0.1", os.getpid())
    assert report.addresses == ("tcp:127.0.0.1:1", "tcp:127.0.0.1:2", "tcp:127.0.0.1:3")
    assert Host.last.reserved == [0, 1, None]  # a witness, too, may have to be here
    assert Host.last.template_for == 2
    assert report.door.startswith("tcp:127.0.0.1:")


def test_a_host_without_what_it_needs(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "missing_packages", lambda plan: "no package x")
    launcher.make()
    report = report_of(launcher.received())
    assert (report.trouble, report.addresses, report.door) == ("no package x", (), "")


@pytest.mark.parametrize(
    ("error", "changes", "trouble"),
    [
        (ValueError("no such interface"), {}, "its own address: no such interface"),
        (OSError(99, "Cannot assign"), {"interface": "eth9"}, "eth9: Cannot assign"),
        (OSError("of no number"), {"advertise": "h", "interface": "e"}, "h: of no number"),
    ],
)
def test_a_host_without_an_address(
    launcher: Launcher,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    changes: dict[str, str],
    trouble: str,
) -> None:
    def none(**_: object) -> str:
        raise error

    monkeypatch.setattr(module, "own_host", none)
    launcher.make(**changes)
    report = report_of(launcher.received())
    assert report.trouble == (
        f"{trouble}; say at which address others reach it: --interface NAME or NETWORK, or "
        "--advertise HOST=ADDRESS"
    )


def test_processes_are_started_and_reported_of(launcher: Launcher) -> None:
    frames = launcher.run(
        Frame(Kind.START, 5, start_of()),
        Frame(Kind.START, 6, start_of()),
        Frame(Kind.PING, 0, NUMBER.pack(60)),
        QUIT,
    )[1:]
    assert frames == [
        Frame(Kind.STARTED, 5, NUMBER.pack(100)),
        Frame(Kind.STARTED, 6, NUMBER.pack(101)),
        Frame(Kind.PONG, 0, b'{"5": [1.5, 4096, 2.0], "6": [1.5, 4096, 2.0]}'),
    ]
    assert [child.stdin for child in Host.last.children] == [-1, -1]
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN  # as processes have it at first


def test_a_process_that_is_over_is_reported_of_no_more(launcher: Launcher) -> None:
    made = launcher.make()
    launcher.run(Frame(Kind.START, 5, start_of()), QUIT)
    observer = Host.last.children[0].observer
    observer.ended(Exit(0))
    observer.output_ended(1)
    observer.output_ended(2)
    assert launcher.received()[-3:] == [
        Frame(Kind.ENDED, 5, STATUS.pack(0)),
        Frame(Kind.OUT, 5),
        Frame(Kind.ERR, 5),
    ]
    assert made.children == {}


def test_what_is_for_a_process_reaches_it(launcher: Launcher) -> None:
    frames = [
        Frame(Kind.SIGNAL, 5, SIGNAL.pack(15, 0)),
        Frame(Kind.SIGNAL, 5, SIGNAL.pack(10, 1)),
        Frame(Kind.LINE, 5, b"heal"),
        Frame(Kind.CLOSE, 5),
    ]
    unknown = [frame._replace(process=9) for frame in frames]
    unknown += [Frame(Kind.INPUT, 9, b"x"), Frame(Kind.CREDIT, 9, b"of one that has ended")]
    launcher.run(Frame(Kind.START, 5, start_of()), *unknown, *frames, Frame(Kind.KILL_REST), QUIT)
    (child,) = Host.last.children
    assert child.calls == [
        ("signal", 15),
        ("signal_alone", 10),
        ("send_line", b"heal"),
        ("close_output",),
    ]
    assert Host.last.calls == ["kill_rest"]


def test_credit_reaches_a_process(launcher: Launcher) -> None:
    launcher.make()
    launcher.run(Frame(Kind.START, 5, start_of()), Frame(Kind.KILL_REST), QUIT)
    (child,) = Host.last.children
    child.observer.output(1, bytes(WINDOW))
    assert child.calls == [("pause", 1)]
    launcher.run(Frame(Kind.CREDIT, 5, CREDIT.pack(1, WINDOW)), QUIT)
    assert child.calls == [("pause", 1), ("resume", 1)]


def test_input_is_for_rank_0(launcher: Launcher) -> None:
    frames = launcher.run(
        Frame(Kind.START, 5, start_of(0)),
        Frame(Kind.INPUT, 5, b"a line\n"),
        Frame(Kind.INPUT, 5, b""),
        QUIT,
    )
    (child,) = Host.last.children
    assert os.read(child.stdin, 100) == b"a line\n"
    assert os.read(child.stdin, 100) == b""
    assert Frame(Kind.CREDIT, 5, CREDIT.pack(0, 7)) in frames


@pytest.mark.parametrize("role", [0, 1])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.EAGAIN, "Resource temporarily"), b'[11, "Resource temporarily"]'),
        (OSError("of no number"), b'[0, "of no number"]'),
    ],
)
def test_a_process_that_cannot_be_started(
    launcher: Launcher, role: int, error: OSError, text: bytes
) -> None:
    """The agent goes on, and keeps nothing of it."""
    launcher.make()
    Host.last.refuses = error
    frames = launcher.run(
        Frame(Kind.START, 5, start_of(role)), Frame(Kind.PING, 0, NUMBER.pack(60)), QUIT
    )
    assert frames[1:] == [
        Frame(Kind.REFUSED, 5, text),
        Frame(Kind.PONG, 0, b"{}"),
    ]


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.START, 5, start_of()),
        Frame(Kind.START, 6, b"{}"),
        Frame(Kind.START, 6, b"no JSON"),
        Frame(Kind.PING, 0, b"short"),
        Frame(Kind.PROBE, 0, b'["tcp:127.0.0.1:x"]'),
        Frame(Kind.PROBE, 0, b"1"),
        Frame(Kind.CREDIT, 5, CREDIT.pack(1, 1)),
        Frame(Kind.HELLO, 0, b"{}"),
    ],
    ids=lambda frame: f"{frame.kind.name} {frame.data[:9]!r}",
)
def test_a_frame_that_cannot_be_believed_ends_all(launcher: Launcher, frame: Frame) -> None:
    frames = launcher.run(
        Frame(Kind.START, 5, start_of()), frame, Frame(Kind.PING, 0, NUMBER.pack(60))
    )
    assert kinds(frames) == [Kind.HELLO, Kind.STARTED]


def test_an_error_of_its_own_is_no_fault_of_the_launcher(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher.make()
    monkeypatch.setattr(Host, "kill_rest", lambda host: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        launcher.run(Frame(Kind.KILL_REST))


def test_its_door_is_open_until_processes_start(launcher: Launcher) -> None:
    made = launcher.make()
    report = report_of(launcher.received())
    probe = Frame(Kind.PROBE, 0, json.dumps([report.door]).encode())

    def quit_when_probed() -> None:
        while not (frames := launcher.received()):
            time.sleep(0.005)
        answers.extend(frames)
        launcher.send(QUIT)

    answers: list[Frame] = []
    for frames in ([probe], [Frame(Kind.START, 5, start_of()), probe]):
        thread = threading.Thread(target=quit_when_probed)
        thread.start()
        made._over = False
        launcher.send(*frames)
        made.run()
        thread.join()
        answers += launcher.received()
    probed = [frame.data for frame in answers if frame.kind is Kind.PROBED]
    assert probed == [b'[""]', b'["Connection refused"]']


def test_what_does_not_answer_is_given_up(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "PROBE_SECONDS", 0.05)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute,
    ):
        mute.bind(listener.getsockname())
        address = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
        made = launcher.make()
        found: list[list[str]] = []

        def probed(troubles: list[str]) -> None:
            found.append(troubles)
            launcher.send(QUIT)

        monkeypatch.setattr(made, "_probed", probed)
        launcher.run(Frame(Kind.PROBE, 0, json.dumps([address]).encode()))
        assert found == [[NO_DATAGRAMS]]


def test_it_ends_with_the_connection(launcher: Launcher) -> None:
    launcher.make()
    launcher.end()
    assert kinds(launcher.run()) == [Kind.HELLO]


def test_it_ends_when_nothing_has_come_for_the_time_of_the_lease(launcher: Launcher) -> None:
    began = time.monotonic()
    assert kinds(launcher.run(lease=0.2)) == [Kind.HELLO]
    assert time.monotonic() - began >= 0.2
    assert launcher.run() == []  # that time is over


def test_what_had_come_when_it_was_let_run_again_counts(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped meanwhile, say, for longer than the lease."""

    def go_on(host: Host) -> None:
        launcher.send(Frame(Kind.PING, 0, NUMBER.pack(60)), QUIT)

    monkeypatch.setattr(Host, "kill_rest", go_on)
    frames = launcher.run(Frame(Kind.PING, 0, NUMBER.pack(60)), Frame(Kind.KILL_REST), lease=-1.0)
    assert kinds(frames) == [Kind.HELLO, Kind.PONG, Kind.PONG]
    frames = launcher.run(Frame(Kind.PING, 0, NUMBER.pack(0)))
    assert kinds(frames) == [Kind.PONG]  # the lease is as long as the launcher has said last


def test_what_comes_while_it_is_stopped_counts(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks once more when the time of the lease is over."""
    clock = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def be_stopped(host: Host) -> None:
        clock[0] += 100.0
        launcher.send(Frame(Kind.PING, 0, NUMBER.pack(60)), QUIT)

    monkeypatch.setattr(Host, "kill_rest", be_stopped)
    assert kinds(launcher.run(Frame(Kind.KILL_REST))) == [Kind.HELLO, Kind.PONG]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(Host, "kill_rest", lambda host: signal.raise_signal(number))
    frames = launcher.run(Frame(Kind.KILL_REST))
    assert kinds(frames) == [Kind.HELLO]


def test_what_has_ended_is_reaped(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process has left behind is this one's to wait for."""
    monkeypatch.setattr(Host, "kill_rest", lambda host: signal.raise_signal(signal.SIGCHLD))
    launcher.run(Frame(Kind.PING, 0, NUMBER.pack(60)), QUIT)
    assert Host.last.calls == []
    launcher.run(Frame(Kind.KILL_REST), QUIT)
    assert Host.last.calls == ["reap_rest"]
    launcher.run(Frame(Kind.PING, 0, NUMBER.pack(60)), QUIT)
    assert Host.last.calls == ["reap_rest"]


def test_all_that_it_has_started_is_killed(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    spared: list[object] = []
    monkeypatch.setattr(orphans, "kill_orphans", spared.append)
    launcher.run(Frame(Kind.START, 5, start_of()), Frame(Kind.START, 6, start_of()), QUIT)
    assert launcher.agent is not None
    launcher.agent.kill_all()
    assert [child.calls for child in Host.last.children] == [[("signal", signal.SIGKILL)]] * 2
    assert spared == [{4711}]
