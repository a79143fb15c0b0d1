"""Failpoints: faults at named steps of the protocol, for tests (docs/internals/failpoints.md).

`ORCALIKE_FAIL=W5@3:kill,V2:stop` has this process kill itself when its core passes step W5 for the
third time, and stop itself (until it is continued by SIGCONT) when it first passes V2. A fault is
`STEP[@NTH][#FRAMES]:ACTION`; with `#2` it strikes when two of the frames that the step sends are with
the kernel, and none of the others are; what the same input put out before the step, as the mark
before it tells, leaves too. The actions:

- `kill`: SIGKILL to itself;
- `stop`: SIGSTOP to itself;
- `exit`: the process ends at once, with exit code 86;
- `delay-MS`: the thread that drives the core stands still for that many milliseconds.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from orcalike.transport.drivers.partial import pending, send_part
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.record import Record
from orcalike.transport.stack import Stack

VARIABLE = "ORCALIKE_FAIL"

EXIT_CODE = 86
"""How a process ends whose failpoint is `exit`."""

STEPS: dict[str, str] = {
    "W1": "the packet of a write is built, and not sent",
    "W2": "the packet is put out to the sequencer",
    "W3": "the sequencer has the packet, and no number for it",
    "W4": "the packet has its number, and no other member has it",
    "W5": "the numbered packet is put out to the members",
    "W6": "a member has the numbered packet, and has not stored it",
    "W7": "the member holds the packet, and the sequencer does not know",
    "W8": "the word that the member holds it is put out",
    "W9": "the sequencer knows that r + 1 members hold it, and no other member does",
    "W10": "the word that the packet is accepted is put out",
    "W11": "the packet is accepted at a member, and not applied",
    "W12": "the packet is applied at a member",
    "V1": "a member suspects another one",
    "V2": "the leader of a change of view has asked for promises",
    "V3": "a member has put out the packets that the leader lacks, and not its promise",
    "V4": "the leader has one promise more",
    "V5": "the leader has the promises that it needs, and has proposed nothing",
    "V6": "the proposal is put out",
    "V7": "the view is decided, and no other member knows",
    "V8": "the decided view is put out",
    "V9": "the layer of membership has the new view, and the layers above it do not",
    "J1": "a process has asked to be let in",
    "J2": "the first view of a joiner has come, and is not installed",
    "L1": "a member has asked to leave",
}
"""The steps that the core passes, each with what is done by then: of a write (W), of a change of
view (V), of a join (J) and of a leave (L)."""

_FORM = re.compile(
    r"(?P<step>[A-Z]\d+)(?:@(?P<nth>\d+))?(?:#(?P<frames>\d+))?"
    r":(?P<action>kill|stop|exit|delay)(?:-(?P<milliseconds>\d+))?"
)

_log = logging.getLogger("orcalike")


class Failpoint(Record):
    """One fault: at which passing of a step, after how many frames, and what it does."""

    step: str
    nth: int
    action: str
    milliseconds: int = 0
    frames: int | None = None
    """How many of the step's frames are sent first; None: what was put out stays here."""

    def __str__(self) -> str:
        frames = "" if self.frames is None else f"#{self.frames}"
        action = f"delay-{self.milliseconds}" if self.action == "delay" else self.action
        return f"{self.step}@{self.nth}{frames}:{action}"


def parse(text: str) -> tuple[Failpoint, ...]:
    """The faults in `text`, with commas between them; raises ValueError for anything else."""
    return tuple(_parse_one(part.strip()) for part in text.split(",") if part.strip())


def _parse_one(text: str) -> Failpoint:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{VARIABLE}: {text!r} is no STEP[@NTH][#FRAMES]:ACTION; the actions are kill, stop, "
            "exit and delay-MILLISECONDS"
        )
    step, action = found["step"], found["action"]
    if step not in STEPS:
        known = ", ".join(STEPS)
        raise ValueError(f"{VARIABLE}: {text!r}: the core has no step {step}; it has {known}")
    if (action == "delay") != (found["milliseconds"] is not None):
        wrong = "needs its milliseconds" if action == "delay" else "takes no number"
        raise ValueError(f"{VARIABLE}: {text!r}: {action} {wrong}")
    nth = int(found["nth"] or 1)
    if nth < 1:
        raise ValueError(f"{VARIABLE}: {text!r}: passings are counted from 1")
    frames = None if found["frames"] is None else int(found["frames"])
    return Failpoint(step, nth, action, int(found["milliseconds"] or 0), frames)


def find_failpoints(environ: Mapping[str, str] = os.environ) -> tuple[Failpoint, ...]:
    """The faults that `ORCALIKE_FAIL` asks for; raises ValueError if it makes no sense."""
    return parse(environ.get(VARIABLE, ""))


if TYPE_CHECKING:

    class Recorder(Protocol):
        """What records that a fault strikes: a history."""

        def fault(self, step: str, nth: int, action: str) -> None:
            """What the fault does comes right after this."""


class Trigger:
    """Counts the steps that one stack passes, and strikes."""

    def __init__(
        self,
        points: Iterable[Failpoint],
        stack: Stack,
        pump: Pump | None,
        recorder: Recorder | None,
        act: Callable[[Failpoint], None],
    ) -> None:
        self._points = {(point.step, point.nth): point for point in points}
        self._stack, self._pump, self._recorder, self._act = stack, pump, recorder, act
        self._passed: dict[str, int] = {}
        self._last = (-1, 0)  # the time of the input, and the frames, at the mark before

    def passed(self, step: str) -> None:
        """The core passes a step: `on_mark`. What the step sends has been put out by then."""
        nth = self._passed[step] = self._passed.get(step, 0) + 1
        point = self._points.get((step, nth))
        now, before = self._last
        self._last = self._stack.now, pending(self._stack)
        if point is None:
            return
        if point.frames is None or self._pump is None:
            self._strike(point)
            return
        earlier = before if now == self._stack.now else 0
        rest = send_part(self._pump, self._stack, earlier + point.frames)
        self._strike(point)
        rest()

    def _strike(self, point: Failpoint) -> None:
        _log.warning("failpoint %s", point)
        if self._recorder is not None:
            self._recorder.fault(point.step, point.nth, str(point).partition(":")[2])
        self._act(point)


def act(point: Failpoint) -> None:
    """Do to this process what a fault asks for."""
    match point.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "exit":
            os._exit(EXIT_CODE)
        case "delay":
            time.sleep(point.milliseconds / 1000)


def install(
    points: Iterable[Failpoint],
    stack: Stack,
    pump: Pump | None,
    recorder: Recorder | None = None,
    act: Callable[[Failpoint], None] = act,
) -> Trigger:
    """Have faults strike where `stack` passes their steps; `recorder` gets each first."""
    trigger = Trigger(points, stack, pump, recorder, act)
    stack.on_mark = trigger.passed
    return trigger
