"""Two notebooks on real Jupyter kernels: cells connect, share, wait, are interrupted, and start again."""

from __future__ import annotations

import os
import queue
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

jupyter = pytest.importorskip("jupyter_client", reason="the dev group of pyproject.toml has it")
pytest.importorskip("ipykernel", reason="the dev group of pyproject.toml has it")

DEADLINE = 120.0

JOBS = """
import orcalike as orca

@orca.shared
class Jobs:
    def __init__(self) -> None:
        self.jobs: list[int] = []

    @orca.write
    def put(self, job: int) -> int:
        self.jobs.append(job)
        return len(self.jobs)

    @orca.write
    def take(self) -> int:
        return self.jobs.pop(0)

    @take.when
    def _(self) -> bool:
        return bool(self.jobs)

    @orca.read
    def count(self) -> int:
        return len(self.jobs)
"""


class Notebook:
    """A kernel, and what its cells show."""

    def __init__(self, folder: Path) -> None:
        self.kernel = jupyter.KernelManager(kernel_name="python3")
        self.kernel.start_kernel(
            cwd=str(folder), env={**os.environ, "XDG_RUNTIME_DIR": str(folder)}
        )
        self.client = self.kernel.client()
        self.client.start_channels()
        self.begin()

    def begin(self) -> None:
        """Wait until the kernel answers, and what it shows arrives.

        That comes on a channel of its own, to which the client may not be connected anew when the kernel
        answers: a cell that is run then shows nothing, and its end is not seen. So it is asked until something comes.
        """
        self.client.wait_for_ready(timeout=DEADLINE)
        end = time.monotonic() + DEADLINE
        while True:
            self.client.kernel_info()
            with suppress(queue.Empty):
                self.client.get_iopub_msg(timeout=1)
                return
            assert time.monotonic() < end, "nothing that the kernel shows arrives"

    def cell(self, source: str, *, interrupt_at: str | None = None) -> str:
        """All that a cell shows, an error as `NAME: TEXT`; it is interrupted once it has shown that.

        A signal that comes while the kernel's loop sleeps does not wake it: ipykernel has its handler
        only note what to do, whatever the cell awaits (its issue 881). So the kernel gets a question
        as well, of the kind that front ends send all the time; both again each second, as a person does.
        """
        request = self.client.execute(source)
        shown = ""
        end = time.monotonic() + DEADLINE
        interrupted = False
        while True:
            try:
                message: dict[str, Any] = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                assert time.monotonic() < end, f"{source!r} did not end; it has shown {shown!r}"
                if interrupted:
                    self.interrupt()
                continue
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                shown += content["text"]
            elif kind == "execute_result":
                shown += content["data"].get("text/html") or content["data"]["text/plain"]
            elif kind == "error":
                shown += f"{content['ename']}: {content['evalue']}"
            elif kind == "status" and content["execution_state"] == "idle":
                return shown
            if interrupt_at is not None and interrupt_at in shown:
                interrupt_at, interrupted = None, True
                self.interrupt()

    def interrupt(self) -> None:
        """As the menu's Interrupt does, and wake the kernel's loop."""
        self.kernel.interrupt_kernel()
        self.client.kernel_info()

    def restart(self) -> None:
        """As the menu's Restart does."""
        self.kernel.restart_kernel()
        self.begin()

    def close(self) -> None:
        self.client.stop_channels()
        self.kernel.shutdown_kernel(now=True)
        self.kernel.cleanup_resources()


@pytest.fixture
def notebooks() -> Iterator[tuple[Notebook, Notebook, str]]:
    """Two kernels, and where they meet."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nb")))
        made = []
        for _ in range(2):
            made.append(Notebook(folder))
            stack.callback(made[-1].close)
        yield made[0], made[1], f"unix:{folder}/place"


def test_two_notebooks_share_an_object(notebooks: tuple[Notebook, Notebook, str]) -> None:
    first, second, place = notebooks
    connect = f"group = orca.connect(at={place!r}); jobs = group.share(Jobs, 'jobs')"
    for notebook in (first, second):
        assert notebook.cell(JOBS) == ""
        assert notebook.cell(connect) == ""
    assert first.cell("jobs.put(3)") == "1"
    assert second.cell("await jobs.put.aio(4)") == "2"
    assert first.cell("group.fence(); jobs.count()") == "2"
    assert "rank 1" in first.cell("group")
    assert "[3, 4]" in first.cell("jobs")  # a table
    assert first.cell("jobs.take(), jobs.take()") == "(3, 4)"
    tasks = "async with asyncio.TaskGroup() as tasks:\n    tasks.create_task(jobs.put.aio(5))"
    assert first.cell(f"import asyncio\n{tasks}\njobs.take()") == "5"

    # An interrupted cell gives up its call, which never runs; the next cell works.
    waits = "print('waits', flush=True)\n"
    assert "KeyboardInterrupt" in first.cell(waits + "jobs.take()", interrupt_at="waits")
    assert "Error" in first.cell(waits + "await jobs.take.aio()", interrupt_at="waits")
    assert first.cell("group.fence(); jobs.put(6), jobs.count()") == "(1, 1)"

    # A cell that declares the class again has another class.
    assert first.cell(JOBS.replace("return len(self.jobs)", "return -len(self.jobs)")) == ""
    assert "was declared again, with another source" in first.cell("group.share(Jobs, 'jobs')")
    assert first.cell("jobs.put(7)") == "2"
    assert first.cell("group.share(Jobs, 'others').put(7)") == "-1"

    # A kernel that is started again is another member, and finds what the group has.
    first.restart()
    assert first.cell(JOBS) == ""
    assert first.cell(connect) == ""
    assert first.cell("jobs.count()") == "2"
    assert second.cell("jobs.put(8)") == "3"

    # One that is killed is lost, and the other goes on.
    first.kernel.shutdown_kernel(now=True)
    assert second.cell("jobs.put(9)") == "4"
    assert second.cell("group.close()") == ""
    assert "GroupClosed" in second.cell("jobs.put(10)")
