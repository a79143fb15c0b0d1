"""What runs first in each process that `orcalike run` starts; then it runs the program.

It is started by its path and imports nothing but the standard library, so that an empty
program costs little more than a bare interpreter. It does seven things:

- where several ranks start, it is the template that they are forked from, with all loaded that they have in
  common (`orcalike.launcher.template`);
- the process dies with the launcher, even when that is killed with -9, and so does what it has started, as the
  reaper knows of its process group before the program begins;
- SIGUSR1 prints stacks and waits (as `orcalike.launcher.stack_dump.install` does);
- an uncaught exception's traceback goes to the launcher, which shows that of the rank that
  failed first and no other;
- the program finds itself as `python PROGRAM` or `python -m MODULE` would have run it;
- a program that imports orcalike finds it loaded, and left out of each collection of garbage.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib.util
import io
import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import socket

#: prctl's options, from <linux/prctl.h>.
SET_PDEATHSIG = 1
SET_CHILD_SUBREAPER = 36

#: Bytes of a request for a rank, and descriptors with it.
REQUEST_MAX, DESCRIPTORS_MAX = 1 << 17, 16

#: Errors that a rank raises because another one went away: never the first failure's cause.
CONSEQUENCES = frozenset(
    {"Expelled", "GroupClosed", "JoinFailed", "NotEnoughMembers", "NotPrimary"}
)

#: What orcalike raises for wrong arguments and the like, beside its own errors.
_ON_PURPOSE = (KeyboardInterrupt, TimeoutError, TypeError, ValueError)
_STARTER_FILES = (__file__, "<frozen importlib", "<frozen runpy")
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_EXAMPLES = os.path.join(_PACKAGE, "examples", "")


def _is_ours(kind: type[BaseException]) -> bool:
    """Whether an exception of that class is orcalike's own."""
    return kind.__module__.partition(".")[0] == "orcalike"


def prctl(option: int, value: int) -> None:
    """Set one attribute of this process.

    Raises OSError if the kernel refuses it.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def die_with_parent(parent: int) -> None:
    """Be killed when `parent` dies; if it has died already, be killed now."""
    prctl(SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Set the process up by its environment, and run the program of its command line."""
    # Until the program begins Ctrl-C ends it without a word: there is no traceback to show.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    line = os.environ.pop("ORCALIKE_TEMPLATE_FD", "")
    code = _be_template(int(line)) if line else None
    die_with_parent(int(os.environ.pop("ORCALIKE_LAUNCHER")))
    _name_group()
    _take_signals()
    report = int(os.environ.pop("ORCALIKE_REPORT_FD"))
    os.set_inheritable(report, False)
    control = int(os.environ["ORCALIKE_CONTROL_FD"])
    os.set_inheritable(control, False)
    os.environ["ORCALIKE_CONTROL_FD"] = _as_own(control)
    os.environ["ORCALIKE_RANK_PID"] = str(os.getpid())  # what it starts is no rank
    own_key()
    _report_exceptions(report)
    # A shell's background job ignores SIGINT; here it comes from the launcher alone.
    signal.signal(signal.SIGINT, interrupt if callable(interrupt) else signal.default_int_handler)
    as_module = sys.argv[1] == "-m"
    del sys.argv[: 2 if as_module else 1]
    if as_module:
        _run_module(sys.argv[0], report)
    else:
        _run_file(sys.argv[0], code)


def _name_group() -> None:
    """Tell the reaper of this process's group: the launcher could be killed before it does (`reaper.Reaper.watch`)."""
    reaper = int(os.environ.pop("ORCALIKE_REAPER_FD"))
    with contextlib.suppress(BrokenPipeError):  # it was killed
        os.write(reaper, b"+%d\n" % os.getpid())
    os.close(reaper)  # it acts when no process has this end


# The template


def _be_template(line: int) -> CodeType | None:
    """Load what the ranks have in common, then fork those that the launcher asks for.

    Returns in each rank, as if that had been started by itself: the program's code, if it is a file that compiles.
    """
    import socket  # not at the top: a rank that is alone needs none

    launcher = int(os.environ["ORCALIKE_LAUNCHER"])
    die_with_parent(launcher)
    requests = socket.socket(fileno=line)
    requests.set_inheritable(False)
    code = None
    if sys.argv[1] == "-m":  # it is not looked for: that may run what is around it
        _set_first_path(os.getcwd())
        load_orcalike()
    else:
        with contextlib.suppress(Exception):  # each rank says what it is
            code = _compiled(_find_file(sys.argv[1]))
            _load_if_named(code)
    if "orcalike.group" in sys.modules and ":ORDER:" in os.environ["ORCALIKE_STACK"]:
        importlib.import_module("orcalike.transport.layers.order")
    if _may_have_threads():  # which would be in none of the ranks
        os._exit(0)
    requests.send(b"ready")
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_MAX, DESCRIPTORS_MAX)
        if not request:
            os._exit(0)
        if _fork_twice(requests):
            break
        for descriptor in descriptors:
            os.close(descriptor)
    _be_rank(launcher, json.loads(request), descriptors)
    requests.send(json.dumps({"pid": os.getpid()}).encode())
    requests.close()
    return code


def _may_have_threads() -> bool:
    """Whether this process has another thread, or there is no /proc that tells."""
    try:
        return len(os.listdir("/proc/self/task")) > 1
    except OSError:
        return True


def _fork_twice(requests: socket.socket) -> bool:
    """Whether this is the new process: an orphan, so that it becomes a child of the launcher, as all others are."""
    between = -1
    try:
        between = os.fork()
        if between == 0 and os.fork() == 0:
            return True
    except OSError as error:
        requests.send(json.dumps({"errno": error.errno}).encode())
    if between == 0:
        os._exit(0)
    if between > 0:
        os.waitpid(between, 0)
    return False


def _be_rank(launcher: int, request: dict[str, Any], descriptors: list[int]) -> None:
    """Be what a new process of the launcher would be, in a session of its own."""
    between = os.getppid()
    if between != launcher:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            pidfd = os.pidfd_open(between)
            ended = select.poll()
            ended.register(pidfd, select.POLLIN)
            ended.poll()
            os.close(pidfd)
    os.setsid()
    for standard, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    for standard, name in enumerate(("stdin", "stdout", "stderr")):
        made = _made_anew(standard, getattr(sys, name))
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    for name in request["removed"]:
        os.environ.pop(name, None)
    os.environ.update(request["changed"])
    os.environ.update(zip(request["names"], map(str, descriptors[3:]), strict=True))


def _made_anew(standard: int, stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """A standard stream as Python makes it: one that is there knows whether what it had before can be sought in."""
    raw: Any = io.FileIO(standard, "rb" if standard == 0 else "wb", closefd=False)
    raw.name = stream.name
    binary, buffered = raw, not isinstance(stream.buffer, io.RawIOBase)
    if buffered:
        binary = io.BufferedReader(raw) if standard == 0 else io.BufferedWriter(raw)
    made: Any = io.TextIOWrapper(
        binary,
        stream.encoding,
        stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering or (buffered and raw.isatty()),
        write_through=stream.write_through,
    )
    made.mode = "r" if standard == 0 else "w"
    return made  # type: ignore[no-any-return]


def own_key() -> None:
    """The descriptor of the run's key is this process's, and of nothing that it starts."""
    key = os.environ.get("ORCALIKE_KEY_FD", "")
    if key.isdecimal():
        os.set_inheritable(int(key), False)
        os.environ["ORCALIKE_KEY_FD"] = _as_own(int(key))


def _as_own(descriptor: int) -> str:
    """`FD:PID:DEVICE:INODE`, which names a descriptor for this process alone (`orcalike/launch_protocol/own_descriptor.py`)."""
    file = os.fstat(descriptor)
    return f"{descriptor}:{os.getpid()}:{file.st_dev}:{file.st_ino}"


def _take_signals() -> None:
    faulthandler.enable()
    signal.signal(signal.SIGUSR1, _on_stacks_wanted)
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)


def _on_stacks_wanted(signum: int, frame: FrameType | None) -> None:
    if "orcalike" in sys.modules:
        from orcalike.launcher.stack_dump import write_waits

        write_waits()


def _report_exceptions(report: int) -> None:
    """Send what would be printed for an uncaught exception to the launcher instead."""
    pid = os.getpid()

    def hook(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        value.__traceback__ = _from_the_program_on(traceback)
        hide_own_frames(value)
        if os.getpid() != pid:  # a forked child is not this rank
            sys.__excepthook__(kind, value, value.__traceback__)
            return
        consequence = _is_ours(kind) and kind.__name__ in CONSEQUENCES
        stderr, sys.stderr = sys.stderr, io.StringIO()
        try:
            sys.__excepthook__(kind, value, value.__traceback__)
            text = sys.stderr.getvalue()
        finally:
            sys.stderr = stderr
        _send(report, "consequence" if consequence else "error", text)

    sys.excepthook = hook


def _send(report: int, kind: str, text: str) -> None:
    data = f"{kind}\n{text}".encode(errors="backslashreplace")
    while data:
        data = data[os.write(report, data) :]


def _from_the_program_on(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on."""
    while traceback and traceback.tb_frame.f_code.co_filename.startswith(_STARTER_FILES):
        traceback = traceback.tb_next
    return traceback


def hide_own_frames(error: BaseException) -> None:
    """Take orcalike's frames out of the tracebacks of an error and of those behind it.

    They stay in an error that orcalike did not raise on purpose: it may be a fault of its own.
    """
    _hide_own_frames(error, set())


def _hide_own_frames(error: BaseException | None, seen: set[int]) -> None:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    frames = []
    traceback = error.__traceback__
    while traceback:
        frames.append(traceback)
        traceback = traceback.tb_next
    on_purpose = _is_ours(type(error)) or isinstance(error, _ON_PURPOSE)
    if frames and (on_purpose or not _is_own(frames[-1])):
        for frame in reversed([frame for frame in frames if not _is_own(frame)]):
            traceback = TracebackType(traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        error.__traceback__ = traceback
    _hide_own_frames(error.__cause__, seen)
    _hide_own_frames(error.__context__, seen)
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            _hide_own_frames(each, seen)


def _is_own(frame: TracebackType) -> bool:
    """Whether it is orcalike's own frame, compiled or not, and no example's."""
    file = frame.tb_frame.f_code.co_filename
    if file.endswith(".pyx"):  # as it was named when it was compiled
        return file.startswith("orcalike/")
    return file.startswith(_PACKAGE) and not file.startswith(_EXAMPLES)


def _run_file(program: str, code: CodeType | None) -> None:
    path = _find_file(program)
    loader = SourceFileLoader("__main__", path)
    main_module = _new_main(__file__=path, __loader__=loader, __spec__=None, __package__=None)
    _run(_compiled(path) if code is None else code, main_module)


def _find_file(program: str) -> str:
    """The program's path; modules beside it come first."""
    path = os.path.abspath(program)
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    return path


def _compiled(path: str) -> CodeType:
    loader = SourceFileLoader("__main__", path)
    return loader.source_to_code(loader.get_data(path), path)


def _run_module(name: str, report: int) -> None:
    _set_first_path(os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations is not None:
            name += ".__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not error.name or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    code: CodeType | None = None
    if spec and spec.loader:
        code = spec.loader.get_code(name)  # type: ignore[attr-defined]
    if spec is None or code is None:
        _refuse(report, f"no module named {name!r}")
    sys.argv[0] = spec.origin or name
    main_module = _new_main(
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __spec__=spec,
        __package__=spec.parent,
    )
    _run(code, main_module)


def _run(code: CodeType, main_module: ModuleType) -> None:
    _load_if_named(code)
    exec(code, main_module.__dict__)  # noqa: S102 - to run the program is its purpose


def _load_if_named(code: CodeType) -> None:
    if any(name.partition(".")[0] == "orcalike" for name in code.co_names):
        load_orcalike(code.co_names)


def load_orcalike(names: Sequence[str] = ()) -> None:
    """Load what a member needs, and of `orcalike.objects` what the program names.

    There is no object of the program's own yet. All that exists by now lasts as long as the process. Collections that
    went through it, some of them as Python ends, took a fifth of what an empty member costs.
    """
    if "orcalike.group" in sys.modules:
        return
    gc.disable()
    with contextlib.suppress(Exception):  # the program's own import says why
        for needed in ("orcalike.session.joining", "orcalike.declare.registration"):
            importlib.import_module(needed)
        if "orcalike.objects" in names:
            ready = importlib.import_module("orcalike.objects")
            for name in filter(ready.__all__.__contains__, names):
                getattr(ready, name)
    gc.freeze()
    gc.enable()


def _refuse(report: int, text: str) -> NoReturn:
    _send(report, "usage", text)
    sys.exit(2)


def _set_first_path(directory: str) -> None:
    if not sys.flags.safe_path:  # else Python put nothing there to be replaced
        sys.path[0] = directory


def _new_main(**attributes: object) -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__.update(attributes, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    return module


if __name__ == "__main__":
    main()
