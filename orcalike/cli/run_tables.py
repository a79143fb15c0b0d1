"""Runs as `orcalike status`, `objects` and `top` show them, made from the launchers' answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from orcalike.transport.wording import counted, listed, visible

Process = dict[str, Any]
Member = dict[str, Any]

NOT_KNOWN = "-"


class Rates:
    """What processes did between two looks at them; at the first look, since they began."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, int], Process] = {}
        self._now: dict[tuple[str, int], Process] = {}

    def note(self, runs: Iterable[dict[str, Any]]) -> None:
        """A look: the answers of all runs that are shown."""
        self._before, self._now = self._now, {}
        for run in runs:
            sent = _sent_by(run)
            for process in run["processes"]:
                known = {**process, "sent": sent.get(process["role"])}
                self._now[run["job"], process["pid"]] = known

    def cpu(self, job: str, pid: int) -> float | None:
        """The share of a core, in percent; None if it is not known."""
        used = self._per_second(job, pid, "cpu_seconds")
        return None if used is None else 100 * used

    def sent(self, job: str, pid: int) -> float | None:
        """Messages in a second, in all groups: writes, and what the groups themselves do."""
        return self._per_second(job, pid, "sent")

    def _per_second(self, job: str, pid: int, what: str) -> float | None:
        now = self._now.get((job, pid), {})
        before = self._before.get((job, pid), {})
        if now.get(what) is None or not now.get("age_seconds"):
            return None
        if before.get(what) is None or before.get("age_seconds") is None:
            return float(now[what] / now["age_seconds"])
        passed = now["age_seconds"] - before["age_seconds"]
        return max(now[what] - before[what], 0) / passed if passed > 0 else None


def _sent_by(run: dict[str, Any]) -> dict[int | str, int]:
    sent: dict[int | str, int] = {}
    for group in run["groups"]:
        for member in group["members"]:
            if member["sent"] is not None:
                sent[member["role"]] = sent.get(member["role"], 0) + member["sent"]
    return sent


def title_of_run(run: dict[str, Any]) -> str:
    """`job 7f3a · tsp.py · up 0:03:12 · 4 ranks on 2 hosts`."""
    # Of the ranks: the witness may be on another one.
    hosts = sorted({each["host"] for each in run["processes"] if each["role"] != "witness"})
    hosts = hosts or run["hosts"] or ["no host"]
    where = hosts[0] if len(hosts) == 1 else counted(len(hosts), "host")
    ranks = f"{counted(run['nprocs'], 'rank')} on {where}"
    program = visible(run["program"])
    return f"job {run['job']} · {program} · up {time_text(run['up_seconds'])} · {ranks}"


def title_of_group(group: dict[str, Any]) -> str:
    """`group default · view 5 · primary · order: shared memory · resilience 1`, or with the sequencer."""
    parts = [f"group {visible(group['name'])}", f"view {group['view'] or '?'}"]
    if group["primary"] is not None:
        parts.append("primary" if group["primary"] else "not primary")
    parts.append(_order_of(group))
    if group["resilience"] is not None:
        parts.append(f"resilience {group['resilience']}")
    return " · ".join(parts)


def _order_of(group: dict[str, Any]) -> str:
    """`order: shared memory`, `sequencer: rank 1`, ..."""
    sequencer = group["sequencer"]
    if group["order"] == "shared memory":
        return "order: shared memory"
    return f"sequencer: {f'rank {sequencer}' if isinstance(sequencer, int) else sequencer or 'none now'}"


def parts_of_run(run: dict[str, Any]) -> Iterator[tuple[str, list[tuple[Process, Member | None]]]]:
    """The tables of a run: a title, and for each row a process and its member in that group.

    All processes are in the first table, in those of further groups their members only.
    """
    processes = {process["role"]: process for process in run["processes"]}
    for number, group in enumerate(run["groups"]):
        members = {member["role"]: member for member in group["members"]}
        roles = processes if number == 0 else [role for role in members if role in processes]
        yield title_of_group(group), [(processes[role], members.get(role)) for role in roles]
    if not run["groups"]:
        yield "in no group", [(process, None) for process in processes.values()]


def state_of(process: Process, member: Member | None) -> str:
    """`member`, `joining`, `no answer`, `left (SIGKILL)`, ..."""
    if process["state"] in ("left", "restarting"):
        how = process["lost"] or process["signal"] or f"exit {process['exit_code']}"
        return f"{process['state']} ({how})"
    if member is None:
        return "running"
    return (
        "no answer" if not member["answers"] and member["state"] != "joining" else member["state"]
    )


def wait_of(process: Process) -> str:
    """The oldest call that waits in a process: `guard JobQueue.get on 'jobs' 1.2 s`."""
    if not process["waits"]:
        return NOT_KNOWN
    wait = process["waits"][0]
    words = [wait["kind"], wait["operation"]]
    if wait["object"]:
        words.append(f"on {wait['object']!r}")
    if wait["seconds"] is not None:
        words.append(f"{wait['seconds']:.1f} s")
    more = len(process["waits"]) - 1
    return " ".join(filter(None, words)) + (f" (+{more})" if more else "")


def complaints(group: dict[str, Any]) -> list[str]:
    """Which members of a group do not go on, and why: a line for each reason."""
    members: dict[tuple[str, str, str], list[str]] = {}
    for member in group["members"]:
        if member["state"] in ("blocked", "waits"):
            reason = listed(member["waits_for"]), visible(member["rule"])
            members.setdefault((member["state"], *reason), []).append(name_of(member["role"]))
    return [_complaint(names, *reason) for reason, names in members.items()]


def _complaint(names: list[str], state: str, missing: str, rule: str) -> str:
    are, wait = ("is", "waits") if len(names) == 1 else ("are", "wait")
    if state == "waits":
        return f"{listed(names)} {wait}: {rule}"
    if not missing:
        return f"{listed(names)} {are} blocked: {rule}; each member that is missing has ended"
    return f"{listed(names)} {are} blocked, and {wait} for {missing}: {rule}"


def name_of(role: int | str) -> str:
    """`rank 2`, or `the witness`."""
    return f"rank {role}" if isinstance(role, int) else f"the {role}"


def figure(member: Member | None, name: str) -> Any:
    """A figure of a member; None if it is not known."""
    return None if member is None else member[name]


def number_text(value: float | None, form: str = "d") -> str:
    """A number that may not be known."""
    return NOT_KNOWN if value is None else format(value, form)


def percent_text(value: float | None) -> str:
    """`98%`."""
    return NOT_KNOWN if value is None else f"{value:.0f}%"


def memory_text(value: int | None) -> str:
    """`61M`."""
    return NOT_KNOWN if value is None else f"{value / (1 << 20):.0f}M"


def time_text(seconds: float) -> str:
    """`0:03:12`."""
    hours, minutes = int(seconds // 3600), int(seconds // 60 % 60)
    return f"{hours}:{minutes:02}:{int(seconds % 60):02}"
