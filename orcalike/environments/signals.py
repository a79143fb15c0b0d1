"""Signals that engines send to all their processes, most of which are asked nothing by them.

`scancel --signal=USR1`, and a job's `--signal=USR1@120`, kill each process that does not expect it. And the first
process of a container, which a pod's is, has no default action for SIGTERM: it would not end before SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from orcalike.launcher import stack_dump


def be_a_process_of_an_engine() -> None:
    """Show stacks on SIGUSR1 and SIGUSR2, and end on SIGTERM, unless the program says otherwise."""
    stack_dump.install(signal.SIGUSR1, signal.SIGUSR2)
    on_main = threading.current_thread() is threading.main_thread()
    if os.getpid() == 1 and on_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(signum: int, frame: FrameType | None) -> None:
    sys.exit(128 + signum)
