"""Builds a copy with AddressSanitizer and UBSan, and runs the targets and unit tests on it: `make fuzz-asan`.

    python -m tests.fuzz.sanitized --seconds 120

Three quarters of the time are for `tests.fuzz`, the rest for tests of what is compiled. The copy
stays in `build/asan`, apart from the ordinary build, so that only what has changed is compiled again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPY = ROOT / "build" / "asan"
SHARE = 0.75
"""Of the time, for inputs that are drawn."""
TESTS = (
    *("runtime/test_stream", "runtime/test_marshal", "runtime/test_marshal_refusals"),
    *("runtime/test_marshal_arrays", "transport/wire/test_message"),
    *("runtime/test_arguments", "runtime/test_invoking", "transport/drivers/test_half_open"),
    *("transport/drivers/test_heartbeat", "transport/drivers/test_full_queues"),
    *("runtime/test_window", "runtime/test_threads", "runtime/test_atomic", "runtime/test_bounds"),
    "transport/membership/test_agreement",
)
"""Files of tests/unit, in this order, until the time is over; none that counts on addresses that are
used again, as AddressSanitizer uses none."""
OPTIONS = {
    # Python gives no memory back at its end, and what is asked for in vain is a MemoryError.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    "PYTHONMALLOC": "malloc",
    "PYTHONDONTWRITEBYTECODE": "1",
}


BEYOND = "import ctypes; ctypes.string_at((ctypes.c_ubyte * 64)(), 65)"
"""Reads a byte that is not there."""


class CannotRun(Exception):
    """The compiler has no sanitizers, the copy does not build, or nothing would be noticed."""


def libraries() -> str:
    """What must be loaded before Python: the compiler's sanitizers. Raises CannotRun."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    found = []
    for name in ("libasan.so", "libubsan.so"):
        try:
            asked = [compiler, f"-print-file-name={name}"]
            path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError) as error:
            raise CannotRun(f"{compiler} does not run: {error}") from None
        if not Path(path).is_absolute() or not Path(path).exists():
            raise CannotRun(f"{compiler} has no {name}: install GCC's sanitizers, or name it in CC")
        found.append(path)
    return ":".join(found)


def build() -> None:
    """Bring the copy up to date. Raises CannotRun."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = {ROOT / name for name in names.split("\0") if name and (ROOT / name).exists()}
    for source in wanted:
        target = COPY / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False) if not target.is_symlink() else None
    for folder in ("orcalike", "runtime", "transport", "tests"):
        for path in (COPY / folder).rglob("*.py*"):
            if ROOT / path.relative_to(COPY) not in wanted:
                path.unlink()
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=COPY, env=environment() | {"ORCALIKE_SANITIZE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise CannotRun("it does not build:\n" + (done.stdout + done.stderr)[-2000:])


def check(libraries: str) -> None:
    """Whether a fault would be noticed, in what is built too. Raises CannotRun."""
    env = environment() | OPTIONS | {"LD_PRELOAD": libraries}
    done = subprocess.run(
        [sys.executable, "-c", BEYOND],
        cwd=COPY,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if "heap-buffer-overflow" not in done.stderr:
        raise CannotRun("a read beyond an allocation is not noticed: " + done.stderr[-2000:])
    for path in (*COPY.glob("runtime/**/*.so"), *COPY.glob("transport/**/*.so")):
        if b"__asan_report_load" not in path.read_bytes():
            raise CannotRun(f"{path} was built without sanitizers")


def environment() -> dict[str, str]:
    """In which the copy's own packages are found before all others."""
    return os.environ | {"PYTHONPATH": str(COPY), "PYTHONDONTWRITEBYTECODE": "1"}


def run(libraries: str, seconds: float, *command: str, whole: bool) -> bool:
    """Run a module of the copy; returns whether nothing was found. What is not `whole` may be cut."""
    env = environment() | OPTIONS | {"LD_PRELOAD": libraries}
    with tempfile.TemporaryFile("w+") as errors:
        try:
            code = subprocess.run(
                [sys.executable, "-m", *command],
                cwd=COPY, env=env, stderr=errors, check=False, timeout=None if whole else seconds,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"{' '.join(command)}: the time is over")
            return True
        if code:
            errors.seek(0)
            said = errors.read()
            print(f"{' '.join(command)}: exit code {code}\n{said[:3000]}\n...\n{said[-9000:]}")
        return not code


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="tests.fuzz.sanitized",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    try:
        preload = libraries()
        print(f"building {COPY.relative_to(ROOT)}, some minutes at first", flush=True)
        build()
        check(preload)
    except CannotRun as error:
        print(f"fuzz-asan: {error}", file=sys.stderr)
        return 1
    start = time.monotonic()
    drawn = ["tests.fuzz", "--seconds", str(SHARE * options.seconds), "--seed", str(options.seed)]
    good = run(preload, options.seconds, *drawn, whole=True)
    for name in TESTS:
        left = start + options.seconds - time.monotonic()
        if left > 0:
            test = ["pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/unit/{name}.py"]
            good &= run(preload, left, *test, whole=False)
    print("no sanitizer found anything" if good else "see above")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
