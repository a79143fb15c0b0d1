"""Python's signal handlers wait while the main thread is inside the core.

While a member is open each handler that Python has is a `Deferring` object, which knows whether the
main thread is in the core (`transport.drivers.deferral`). A handler that the program sets meanwhile
becomes one too: `signal.signal`, asyncio and all others set handlers through `_signal.signal`. The
program sees none of it: `signal.getsignal` and what `signal.signal` returns are its own handlers.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

from orcalike.transport.drivers.deferral import Deferring, call_on_main, set_handler

_signal: Any = sys.modules["_signal"]  # C's, which `signal` is made of
_set = _signal.signal
_get = _signal.getsignal


def _set_deferring(number: int, handler: Any, /) -> Any:
    """`_signal.signal` while a member is open."""
    wraps = callable(handler) and not isinstance(handler, Deferring)
    return _own(_set(number, Deferring(handler) if wraps else handler))


def _get_own(number: int, /) -> Any:
    """`_signal.getsignal` while a member is open."""
    return _own(_get(number))


def _own(handler: Any) -> Any:
    return handler.handler if isinstance(handler, Deferring) else handler


class Handlers:
    """The process's signal handlers, which wait from the first `defer` to the last `restore`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0

    def defer(self) -> None:
        """A member is opened. Off the main thread, which alone may do it, it is done soon."""
        with self._lock:
            self._users += 1
        self._on_main()

    def restore(self) -> None:
        """A member is closed."""
        with self._lock:
            self._users -= 1
        self._on_main()

    def restore_in_child(self) -> None:
        """The same in a forked child, where another thread's lock is never let go."""
        self._lock = threading.RLock()
        self.restore()

    def _on_main(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._update()
        else:
            call_on_main(self._update)

    def _update(self) -> None:
        deferring = self._users > 0
        if deferring:
            _signal.signal, _signal.getsignal = _set_deferring, _get_own
        elif (_signal.signal, _signal.getsignal) == (_set_deferring, _get_own):
            _signal.signal, _signal.getsignal = _set, _get
        for number in signal.valid_signals():
            handler = _get(number)
            if deferring and callable(handler) and not isinstance(handler, Deferring):
                set_handler(number, Deferring(handler))
            elif not deferring and isinstance(handler, Deferring):
                set_handler(number, handler.handler)


handlers = Handlers()
"""The handlers are the whole process's, and so is this."""
