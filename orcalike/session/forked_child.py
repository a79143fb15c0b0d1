"""What runs in a process that `group.fork` starts: it joins, runs one registered function, and leaves.

    python -P forked_child.py PARENT TASK REPORT

PARENT is the process that started it, TASK and REPORT are descriptors. TASK holds a line of JSON, and
the arguments after it. The child says on REPORT in one line of JSON which member it has become, or why
none; what comes later goes to standard error. The program is imported as `multiprocessing` imports it:
what stands under `if __name__ == "__main__"` does not run.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orcalike.group import Group

RANKS_TRIED_MAX = 1024


def main() -> None:
    """The program of the process."""
    parent, task_fd, report_fd = map(int, sys.argv[1:4])
    with open(task_fd, "rb") as file:
        file.seek(0)
        task = json.loads(file.readline())
        arguments = file.read()
    sys.path[:] = task["program"]["sys_path"]  # orcalike is found there
    from orcalike.launcher.bootstrap import (
        die_with_parent,
        hide_own_frames,
        load_orcalike,
        own_key,
    )

    die_with_parent(parent)
    load_orcalike()

    def show(kind: type[BaseException], error: BaseException, trace: object) -> None:
        hide_own_frames(error)
        sys.__excepthook__(kind, error, error.__traceback__)

    sys.excepthook = show
    # It ends with its parent, which decides what Ctrl-C means, and sends SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the thread that started it takes no signals
    os.set_inheritable(report_fd, False)
    from orcalike.launch_protocol.control_channel import passed_descriptor

    if (line := passed_descriptor()) is not None:
        os.set_inheritable(line, False)
    own_key()
    with open(report_fd, "w", encoding="ascii") as report:
        try:
            function = _import_function(task)
            _run(task, arguments, function, report)
        except BaseException as error:
            if not report.closed:  # the parent passes it on to the member that asked
                _say(report, {"failed": f"{type(error).__name__}: {error}"[:2000]})
            raise


def _say(report: Any, fact: dict[str, Any]) -> None:
    with contextlib.suppress(OSError), report:
        report.write(json.dumps(fact) + "\n")


def _import_function(task: dict[str, Any]) -> Any:
    """Import the program, and find the function that it registers."""
    import importlib
    from multiprocessing import spawn

    from orcalike.runtime import registered
    from orcalike.session import options

    options.forked_from.append(task["function"])
    try:
        spawn.prepare(task["program"])
        if task["function"] not in registered.functions and task["module"]:
            importlib.import_module(task["module"])
    finally:
        options.forked_from.clear()
    function = registered.functions.get(task["function"])
    if function is None:
        raise LookupError(
            f"{task['function']} is registered only when the program runs: orca.register belongs to the "
            'function itself, outside of `if __name__ == "__main__"`'
        )
    return function


def _run(task: dict[str, Any], arguments: bytes, function: Any, report: Any) -> None:
    with _joined(task) as group:
        args = _decode(group, task["function"], arguments)
        _say(report, {"joined": group.me.pack()})
        function(group, *args)


def _decode(group: Group, function: str, arguments: bytes) -> list[Any]:
    """The arguments; shared objects among them are this process's replicas."""
    from orcalike.errors import ForkFailed
    from orcalike.runtime.errors import Unreadable

    found: list[list[Any]] = []
    why: list[str] = []

    def decode(now: int) -> None:
        try:
            found.append(group._runtime.sender.codec.decode(arguments))
        except Unreadable as error:
            why.append(f"argument {error.argument} of {function} cannot be read here: {error}")

    group._session.pump.call(decode)
    if why:
        raise ForkFailed(why[0])
    return found[0]


@contextlib.contextmanager
def _joined(task: dict[str, Any]) -> Iterator[Group]:
    """The group, joined through the parent."""
    from orcalike.errors import JoinFailed
    from orcalike.launch_protocol.environment import find_layers
    from orcalike.session.joining import Joining
    from orcalike.session.layers import load_layers
    from orcalike.session.options import make_options

    load_layers(find_layers())
    options = make_options(**task["join"])
    first = task["rank_from"]
    for rank in [None] if first is None else range(first, first + RANKS_TRIED_MAX):
        joining = Joining(functools.partial(options.replace, own_rank=rank, rank_from=first))
        try:
            group = joining.__enter__()
        except JoinFailed as error:
            if rank is None or "is in the group already" not in str(error):
                raise
            continue  # another one was started at the same time
        with contextlib.ExitStack() as stack:
            stack.push(joining.__exit__)
            yield group
        return


if __name__ == "__main__":
    main()
