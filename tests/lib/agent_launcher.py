"""The launcher of an agent, and in place of the agent's host one that starts nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any, cast

from orcalike.launcher.agent import Agent
from orcalike.launcher.child import Start, Usage
from orcalike.launcher.frames import Frame, FrameReader, Kind
from orcalike.launcher.greeting import Assignment, HostReport, answer
from orcalike.launcher.run_plan import RunPlan

PLAN = RunPlan(identity="j", seed=1, program="prog.py")
ASSIGNMENT = Assignment(
    version="1", plan=PLAN, name="a", node=1, slots=2, key=b"k", drawn_from="", lease=60.0
)
HANDLED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1)
NONCE = bytes(range(16))


class Child:
    """In place of a process of this host."""

    def __init__(self, start: Start, stdin: int | None, pid: int) -> None:
        self.role, self.pid, self.usage = start.role, pid, Usage(1.5, 4096, 2.0)
        self.stdin = -1 if stdin is None else os.dup(stdin)
        self.calls: list[tuple[Any, ...]] = []
        self.observer: Any = None

    def observe(self, observer: object) -> None:
        self.observer = observer

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self.calls.append((name, *values))


class Host:
    """In place of a `LocalHost`."""

    last: Host

    def __init__(self, name: str, plan: RunPlan, *_: object) -> None:
        self.name, self.own, self.spared = name, "", {4711}
        self.on_left: Any = None
        self.children: list[Child] = []
        self.calls: list[str] = []
        self.reserved: list[object] = []
        self.template_for = 0
        self.refuses: OSError | None = None
        Host.last = self

    def start(self, start: Start, stdin: int | None = None) -> Child:
        if self.refuses is not None:
            raise self.refuses
        self.children.append(Child(start, stdin, 100 + len(self.children)))
        return self.children[-1]

    def reserve(self, roles: list[object]) -> list[str]:
        self.reserved += roles
        return [f"tcp:{self.own}:{number}" for number, _ in enumerate(roles, 1)]

    def load_template(self, ranks: int) -> None:
        self.template_for = ranks

    def kill_rest(self) -> None:
        self.calls.append("kill_rest")

    def reap_rest(self) -> None:
        self.calls.append("reap_rest")


class Launcher:
    """Both ends of the connection."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reads, self.writer = os.pipe()
        os.set_blocking(self._reads, False)
        self.reader, self._writes = os.pipe()
        self._frames = FrameReader()
        self.agent: Agent | None = None

    def make(self, **changes: Any) -> Agent:
        """An agent that has greeted."""
        assignment = ASSIGNMENT.replace(**changes)
        self.agent = Agent(
            assignment, b"k", self._directory, cast(Any, None), self.reader, self.writer
        )
        self.agent.greet()
        return self.agent

    def run(self, *frames: Frame, **changes: Any) -> list[Frame]:
        """An agent that is sent these frames and no more; what it has sent when it is over."""
        made = self.agent or self.make(**changes)
        made._over = False
        if frames:
            self.send(*frames)
        made.run()
        return self.received()

    def send(self, *frames: Frame) -> None:
        os.write(self._writes, b"".join(frame.encode() for frame in frames))

    def read_answer(self) -> bytes:
        """The line that comes before the agent's frames."""
        return os.read(self._reads, len(answer(NONCE)))

    def received(self) -> list[Frame]:
        """What the agent has sent since the last look."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self._reads, 1 << 20):
                data += more
        return list(self._frames.feed(data))

    def end(self) -> None:
        """Nothing more comes."""
        os.close(self._writes)
        self._writes = -1

    def close(self) -> None:
        if self.agent is not None:
            if self.agent._door is not None:
                self.agent._door.close()
            self.agent.stream.close()
            for child in self.agent.children.values():
                child._close_input()
            self.agent.selector.close()
            for started in Host.last.children:
                if started.stdin >= 0:
                    os.close(started.stdin)
        for each in (self._reads, self.writer, self.reader, self._writes):
            if each >= 0:
                os.close(each)


def start_of(role: int | None = 1) -> bytes:
    return json.dumps(Start(role=role, listen="tcp:10.0.0.1:1", seeds=()).named()).encode()


QUIT = Frame(Kind.QUIT)


def kinds(frames: list[Frame]) -> list[Kind]:
    return [frame.kind for frame in frames]


def report_of(frames: list[Frame]) -> HostReport:
    (hello,) = frames
    assert (hello.kind, hello.process) == (Kind.HELLO, 0)
    return HostReport.decode(hello.data)
