"""What `orcalike chaos` does to a run: kill, pause, cut off, heal.

A question is `{"do": "kill", "member": 2}`; `member` is a rank, "sequencer" or "witness". `pause` has
`seconds`; `partition` has `parts`, lists of ranks and "witness", and `seconds`, which may be null.
`heal` and `describe` have nothing more. The answer is `{"done": TEXT}` or `{"error": TEXT}`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

from orcalike.launch_protocol.control_lines import Role
from orcalike.launcher.child import Child
from orcalike.launcher.control_socket import Answer, Refused
from orcalike.launcher.group_status import name_of, names_of
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.timers import Timers

#: The longest pause or partition: an hour.
SECONDS_MAX = 3600.0


class Chaos:
    """Answers the questions of one run's control socket."""

    def __init__(self, table: ProcessTable, timers: Timers, notice: Callable[[str], None]) -> None:
        self._table = table
        self._timers = timers
        self._notice = notice

    def answer(self, question: object) -> Answer:
        """Do what is asked for; raises Refused if it cannot be done."""
        match question:
            case {"do": "describe"}:
                return self._describe()
            case {"do": "kill", "member": name}:
                done = self._kill(*self._find(name))
            case {"do": "pause", "member": name, "seconds": seconds}:
                done = self._pause(*self._find(name), _seconds(seconds))
            case {"do": "partition", "parts": [*parts], "seconds": None}:
                done = self._partition(parts, None)
            case {"do": "partition", "parts": [*parts], "seconds": seconds}:
                done = self._partition(parts, _seconds(seconds))
            case {"do": "heal"}:
                self._timers.cancel("heal")
                done = "healed" if self._table.heal() else "no rank was cut off"
            case _:
                raise Refused(f"not understood: {question!r:.200}")
        self._notice(f"orcalike chaos: {done}")
        return {"done": done}

    def _describe(self) -> Answer:
        options = self._table.job.options
        return {
            "job": self._table.job.identity,
            "program": options.program,
            "nprocs": options.nprocs,
            "ranks": {rank: child.pid for rank, child in self._table.ranks.items()},
            "witness": self._table.witness.pid if self._table.witness else None,
        }

    def _find(self, name: object) -> tuple[Role, Child]:
        role = self._sequencer() if name == "sequencer" else self._parse(name)
        child = self._table.find(role)
        if child is None:
            raise Refused(f"{name_of(role)} does not run")
        return role, child

    def _sequencer(self) -> Role:
        known = self._table.groups.sequencers()
        if not known and any(group.shares_memory for group in self._table.groups.by_name.values()):
            raise Refused("the order is in shared memory: no member is the sequencer; name a rank")
        if not known:
            raise Refused("no member orders now, as far as the launcher knows: name a rank")
        if len(set(known)) > 1:
            raise Refused(f"several order, each a group: {names_of(set(known))}; name one")
        return known[0]

    def _parse(self, role: object) -> Role:
        """A rank of this run, or the witness if it has one."""
        options = self._table.job.options
        match role:
            case "witness":
                if options.sequencer == "witness":
                    return None
                raise Refused("this run has no witness; with --sequencer witness it has one")
            case int() if not isinstance(role, bool) and 0 <= role < options.nprocs:
                return role
        raise Refused(f"there is no rank {role!r:.50}: they are 0 to {options.nprocs - 1}")

    def _kill(self, role: Role, child: Child) -> str:
        child.signal_alone(signal.SIGKILL)
        done = f"killed {name_of(role)} (pid {child.pid})"
        if not self._table.job.options.outlives_failures:
            done += "; without --keep-going or --restart the run ends with it"
        return done

    def _pause(self, role: Role, child: Child, seconds: float) -> str:
        child.signal_alone(signal.SIGSTOP)
        self._timers.at(f"pause {child.pid}", seconds, partial(self._resume, role, child))
        return f"{name_of(role)} (pid {child.pid}) is stopped, and continues in {seconds:g} s"

    def _resume(self, role: Role, child: Child) -> None:
        if self._table.find(role) is child:
            child.signal_alone(signal.SIGCONT)
            self._notice(f"orcalike chaos: {name_of(role)} goes on")

    def _partition(self, named: list[object], seconds: float | None) -> str:
        parts = []
        for part in named:
            if not isinstance(part, list) or not part:
                raise Refused("a partition has parts such as 0,1/2, and none of them is empty")
            parts.append([self._parse(role) for role in part])
        if len(parts) < 2:
            raise Refused("a partition has two parts or more, such as 0,1/2")
        whole = [role for part in parts for role in part]
        if len(set(whole)) < len(whole):
            raise Refused("a rank can be in one part only")
        roles: list[Role] = list(range(self._table.job.options.nprocs))
        if self._table.job.options.sequencer == "witness":
            roles.append(None)
        parts[0] += [role for role in roles if role not in whole]
        self._table.separate(parts)
        self._timers.cancel("heal")
        if seconds is not None:
            self._timers.at("heal", seconds, self._heal)
        lasts = "until it is healed" if seconds is None else f"for {seconds:g} s"
        return f"cut apart {lasts}: {' | '.join(map(names_of, parts))}"

    def _heal(self) -> None:
        if self._table.heal():
            self._notice("orcalike chaos: healed")


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= SECONDS_MAX:
        return float(value)
    raise Refused(f"{value!r:.50} is not a time of at most {SECONDS_MAX:g} s")
