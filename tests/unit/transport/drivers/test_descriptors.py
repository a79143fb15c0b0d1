"""Descriptors that members of one host give each other: which file is opened, and which is not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from orcalike.transport.drivers.descriptors import LANE, Descriptors, Handle
from orcalike.transport.drivers.pidfd import OwnProcess
from orcalike.transport.errors import ProtocolError
from tests.lib.descriptors import count_files

ME = 7
"""The incarnation that offers."""


@pytest.fixture
def process() -> OwnProcess:
    """What a process passes: here it is this one."""
    return OwnProcess()


def open_offered(process: OwnProcess, handle: Handle, flags: int = os.O_RDWR) -> int:
    """What another member makes of a handle."""
    return Descriptors(lambda incarnation: {ME: process.files}[incarnation]).open(ME, handle, flags)


def offer(fd: int) -> Handle:
    """The handle of a descriptor of this process."""
    return Descriptors(lambda _: -1).offer(ME, LANE, fd)


def test_memory_and_pipes_are_opened_anew(process: OwnProcess) -> None:
    memory = os.memfd_create("x")
    reader, writer = os.pipe()
    opened = open_offered(process, offer(memory)), open_offered(process, offer(writer))
    os.write(opened[0], b"lane")
    os.write(opened[1], b"alarm")
    assert os.pread(memory, 10, 0) == b"lane"
    assert os.read(reader, 10) == b"alarm"
    for fd in (memory, reader, writer, *opened):
        os.close(fd)


def test_a_number_that_another_file_has_meanwhile_is_not_opened(process: OwnProcess) -> None:
    """A member that leaves closes its alarm; a pipe of its program's gets the number."""
    reader, writer = os.pipe()
    handle = offer(writer)
    theirs = os.pipe()
    os.dup2(theirs[1], writer)
    files = count_files()
    with pytest.raises(FileNotFoundError, match="another file has its number"):
        open_offered(process, handle)
    assert count_files() == files
    os.close(writer)
    with pytest.raises(FileNotFoundError):
        open_offered(process, handle)
    for fd in (reader, *theirs):
        os.close(fd)


def test_neither_a_socket_nor_a_device_is_opened(process: OwnProcess) -> None:
    with socket.socket() as sock, open(os.devnull, "rb") as null:
        for each in (sock, null):
            with pytest.raises(ProtocolError, match="neither memory nor a pipe"):
                open_offered(process, offer(each.fileno()))


def test_a_process_that_has_passed_nothing() -> None:
    with pytest.raises(ProtocolError, match="has not passed its open files"):
        Descriptors(lambda _: -1).open(ME, (0, 0), os.O_RDONLY)


def test_a_process_that_has_ended() -> None:
    """Its directory stays open here, and has nothing in it."""
    program = "import os; print(os.getpid(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        pid = int(other.stdout.readline())
        files = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY)
        other.communicate("\n")
    with pytest.raises((FileNotFoundError, ProcessLookupError)):
        Descriptors(lambda _: files).open(ME, (0, 0), os.O_RDONLY)
    os.close(files)
