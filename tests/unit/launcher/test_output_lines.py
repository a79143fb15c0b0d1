"""The output pump's line rules, and files that take nothing for now, without processes."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import selectors
import time
import tty
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orcalike.launcher.output_lines import LINE_MAX, PARTIAL_SECONDS, Destination, Stream, prefix
from orcalike.launcher.output_relay import OutputRelay


@pytest.fixture
def pipe() -> Iterator[tuple[int, Destination]]:
    """A pipe's reading end, and a destination that writes to the other."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    destination = Destination(writer)
    yield reader, destination
    close(destination, reader, writer)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The side of a terminal that shows, and the one that is written to; it changes no bytes."""
    shown, written = pty.openpty()
    tty.setraw(written)
    yield shown, written
    os.close(shown)
    os.close(written)


def close(destination: Destination, *descriptors: int) -> None:
    """Close a destination, which may have a descriptor of its own, and these."""
    for descriptor in {destination.fd, *descriptors}:
        os.close(descriptor)


def written(pipe: tuple[int, Destination]) -> bytes:
    reader, destination = pipe
    parts = []
    while destination:
        destination.drain()
        parts.append(os.read(reader, 1 << 16))
    return b"".join(parts)


def test_lines_are_marked_and_kept_whole(pipe: tuple[int, Destination]) -> None:
    one, two = (Stream(pipe[1], prefix(label, color=False)) for label in "12")
    one.feed(b"a\nb", 0.0)
    two.feed(b"c\n", 0.0)
    one.feed(b"b\n\n", 0.0)
    assert written(pipe) == b"[1] a\n[2] c\n[1] bb\n[1] \n"


def test_partial_line_waits_for_its_time(pipe: tuple[int, Destination]) -> None:
    stream = Stream(pipe[1], b"[0] ")
    stream.feed(b"na", 10.0)
    stream.feed(b"me? ", 10.1)
    assert stream.deadline == 10.0 + PARTIAL_SECONDS
    assert written(pipe) == b""
    stream.flush()
    assert stream.deadline is None
    stream.feed(b"yes\n", 11.0)
    assert written(pipe) == b"[0] name? yes\n"


def test_cut_line_is_marked_again(pipe: tuple[int, Destination]) -> None:
    one, two = Stream(pipe[1], b"[1] "), Stream(pipe[1], b"[2] ")
    one.feed(b"begun", 0.0)
    one.flush()
    two.feed(b"other\n", 0.0)
    one.feed(b" and ended\n", 0.0)
    assert written(pipe) == b"[1] begun\n[2] other\n[1]  and ended\n"


def test_newline_of_a_cut_line_adds_no_empty_one(pipe: tuple[int, Destination]) -> None:
    one, two = Stream(pipe[1], b"[1] "), Stream(pipe[1], b"[2] ")
    one.feed(b"text", 0.0)
    one.flush()
    two.feed(b"other\n", 0.0)
    one.feed(b"\n", 0.0)
    one.feed(b"next\n", 0.0)
    assert written(pipe) == b"[1] text\n[2] other\n[1] next\n"


def test_an_empty_line_after_a_cut_one_that_went_on_is_shown(
    pipe: tuple[int, Destination],
) -> None:
    """Only the newline that ends the cut line itself is left out."""
    one, two = Stream(pipe[1], b"[1] "), Stream(pipe[1], b"[2] ")
    one.feed(b"a", 0.0)
    one.flush()
    two.feed(b"b\n", 0.0)
    one.feed(b"c\n", 0.0)
    two.feed(b"d\n", 0.0)
    one.feed(b"\n", 0.0)
    assert written(pipe) == b"[1] a\n[2] b\n[1] c\n[2] d\n[1] \n"


def test_very_long_line_is_shown_in_parts(pipe: tuple[int, Destination]) -> None:
    stream = Stream(pipe[1])
    stream.feed(b"x" * (LINE_MAX + 1), 0.0)
    assert stream.deadline is None
    assert written(pipe) == b"x" * (LINE_MAX + 1), "no time has passed"
    stream.feed(b"x\n", 0.0)
    assert written(pipe) == b"x\n"


@pytest.mark.parametrize("ends", [os.pipe, pty.openpty], ids=["pipe", "terminal"])
def test_reader_that_has_gone_is_the_destinations_error(
    ends: Callable[[], tuple[int, int]],
) -> None:
    reader, writer = ends()
    destination = Destination(writer)
    os.close(reader)
    Stream(destination).feed(b"x\n", 0.0)
    destination.drain()
    assert isinstance(destination.error, BrokenPipeError)
    assert not destination
    close(destination, writer)


def test_the_first_error_is_kept() -> None:
    destination = Destination(os.open("/dev/full", os.O_WRONLY))
    for _ in range(2):
        Stream(destination).feed(b"x\n", 0.0)
        destination.drain()
        assert not destination
    assert destination.error is not None
    assert destination.error.errno == errno.ENOSPC
    os.close(destination.fd)


def test_full_pipe_does_not_block(pipe: tuple[int, Destination]) -> None:
    text = b"".join(b"%d\n" % number for number in range(100_000))
    Stream(pipe[1]).feed(text, 0.0)
    pipe[1].drain()
    assert len(pipe[1]) > 0
    assert written(pipe) == text


def test_terminal_that_is_not_read_does_not_block(terminal: tuple[int, int]) -> None:
    """It counts as writable while it has room for one byte, and a write to it blocks until all is taken."""
    shown, written = terminal
    destination = Destination(written)
    text = b"".join(b"%d\n" % number for number in range(100_000))
    Stream(destination).feed(text, 0.0)
    destination.drain()
    assert len(destination) > 0
    seen = b""
    while len(seen) < len(text):
        destination.drain()
        seen += os.read(shown, 1 << 16)
    assert seen == text
    assert destination.error is None
    assert not fcntl.fcntl(written, fcntl.F_GETFL) & os.O_NONBLOCK, "the shell has it, too"
    os.close(destination.fd)


def test_other_side_of_a_terminal_is_not_opened_anew(terminal: tuple[int, int]) -> None:
    """That would be another terminal."""
    shown, written = terminal
    destination = Destination(shown)
    Stream(destination).feed(b"typed\n", 0.0)
    destination.drain()
    assert os.read(written, 100) == b"typed\n"


def test_what_is_writable_and_takes_nothing_is_tried_again(
    pipe: tuple[int, Destination], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(descriptor: int, data: bytes) -> int:
        raise BlockingIOError

    Stream(pipe[1]).feed(b"text\n", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        pipe[1].drain()
    assert pipe[1].retry_at is not None
    assert pipe[1].error is None
    assert written(pipe) == b"text\n"
    assert pipe[1].retry_at is None


def test_no_event_is_waited_for_that_comes_again_and_again(
    pipe: tuple[int, Destination], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orcalike.launcher.output_relay.destinations", lambda color: (pipe[1],) * 2)
    with selectors.DefaultSelector() as selector:
        relay = OutputRelay(selector, prefix=True, color=None)
        relay.notice("x" * (1 << 17))
        relay.write()
        assert [key.fd for key in selector.get_map().values()] == [pipe[1].fd]
        with monkeypatch.context() as patch:
            patch.setattr(pipe[1], "drain", lambda: setattr(pipe[1], "retry_at", 5.0))
            relay.write()
        assert not selector.get_map()
        assert relay.next_deadline() == 5.0


def test_a_part_of_a_line_is_shown_only_if_the_rest_was_looked_for(
    pipe: tuple[int, Destination], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the launcher was held up after it had looked."""
    monkeypatch.setattr("orcalike.launcher.output_relay.destinations", lambda color: (pipe[1],) * 2)
    child: Any = object()
    clock = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    with selectors.DefaultSelector() as selector:
        relay = OutputRelay(selector, prefix=True, color=None)
        relay.attend(child, "0")
        relay.feed(child, 1, b"one ")
        clock = looked_at = 100.1
        clock = 200.0
        relay.show_partial(looked_at)
        assert written(pipe) == b""
        looked_at = 201.0
        clock = 202.0
        relay.feed(child, 1, b"two ")
        relay.show_partial(looked_at)
        assert written(pipe) == b"", "there may be more"
        relay.feed(child, 1, b"three\nfour")
        assert written(pipe) == b"[0] one two three\n"
        relay.show_partial(clock + PARTIAL_SECONDS)
        assert written(pipe) == b"[0] four"


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.binary(max_size=8) | st.sampled_from([b"\n", b"a\nb"])),
        max_size=40,
    )
)
def test_each_streams_lines_come_whole_and_in_order(chunks: list[tuple[int, bytes]]) -> None:
    reader, writer = os.pipe()
    destination = Destination(writer)
    streams = [Stream(destination, b"%d:" % number) for number in range(3)]
    for number, chunk in chunks:
        streams[number].feed(chunk, 0.0)
    for stream in streams:
        stream.feed(b"\n", 0.0)
    destination.drain()
    close(destination, writer)
    with os.fdopen(reader, "rb") as file:
        lines = file.read().split(b"\n")[:-1]
    for number in range(3):
        sent = b"".join(chunk for which, chunk in chunks if which == number) + b"\n"
        label = b"%d:" % number
        shown = [line.removeprefix(label) for line in lines if line.startswith(label)]
        assert shown == sent.split(b"\n")[:-1]


def test_marks() -> None:
    assert prefix("12", color=False) == b"[12] "
    assert prefix("0", color=True) == b"\x1b[36m[0]\x1b[0m "
    assert prefix("witness", color=True) == b"\x1b[37m[witness]\x1b[0m "
