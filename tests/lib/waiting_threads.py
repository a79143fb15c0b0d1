"""Threads of the tests that wait in a call of the runtime."""

from __future__ import annotations

import threading

from orcalike.runtime import waits


def stays_in_wait(thread: threading.Thread, kind: str) -> bool:
    """Whether a thread waits for that, as `waits.Wait` has it, and nothing comes of it for a while."""
    found = waits.waiting.get(thread.ident or 0)
    if found is None or found.kind != kind:
        return False
    thread.join(0.5)
    return waits.waiting.get(thread.ident or 0) is found


def until_it_stays(thread: threading.Thread, kind: str) -> bool:
    """Wait until a thread waits for that, and stays in it; False if it has ended without."""
    while thread.is_alive() and not stays_in_wait(thread, kind):
        thread.join(0.01)
    return thread.is_alive()
