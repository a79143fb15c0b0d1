"""Frames between launcher and agent: whole ones whatever pieces they come in, and nothing else."""

from __future__ import annotations

import os
import random
import selectors
from collections.abc import Iterator

import pytest

from orcalike.launcher.frame_stream import QUEUE_MAX, FrameStream
from orcalike.launcher.frames import FRAME_MAX, HEADER, Frame, FrameError, FrameReader, Kind

FRAMES = [
    Frame(Kind.OUT, 7, b"some output\n"),
    Frame(Kind.ERR, 7),
    Frame(Kind.LINE, 2**32 - 1, bytes(range(256))),
    Frame(Kind.QUIT),
]


def test_frames_come_in_any_pieces() -> None:
    data = b"".join(frame.encode() for frame in FRAMES)
    for size in (1, 2, 8, 9, 10, len(data)):
        reader = FrameReader()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert [frame for piece in pieces for frame in reader.feed(piece)] == FRAMES


def test_what_is_no_frame_is_refused_before_memory_is_taken() -> None:
    for kind, length in ((0, 0), (255, 0), (Kind.OUT, FRAME_MAX + 1), (Kind.OUT, 2**32 - 1)):
        with pytest.raises(FrameError):
            list(FrameReader().feed(HEADER.pack(kind, 0, length)))


def test_each_frame_ends_a_line() -> None:
    """Else Open MPI keeps it until there is a newline in a later one, or the process ends."""
    for frame in FRAMES:
        data = frame.encode()
        assert data.endswith(b"\n")
        assert list(FrameReader().feed(data[:-1])) == []
        with pytest.raises(FrameError, match="without its end"):
            list(FrameReader().feed(data[:-1] + b"\0"))


def test_random_bytes_are_frames_or_refused() -> None:
    rng = random.Random(5)
    for _ in range(2000):
        reader = FrameReader()
        try:
            for _ in range(8):
                for frame in reader.feed(rng.randbytes(rng.randrange(40))):
                    assert len(frame.data) <= FRAME_MAX
        except FrameError:
            continue


class Ends:
    """Two streams on pipes, and what has come at each."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.descriptors = [*os.pipe(), *os.pipe()]
        there_reads, here_writes, here_reads, there_writes = self.descriptors
        self.here: list[Frame] = []
        self.there: list[Frame] = []
        self.ended: list[str] = []
        self.a = FrameStream(
            self.selector, here_reads, here_writes, self.here.append, self.ended.append
        )
        self.b = FrameStream(
            self.selector, there_reads, there_writes, self.there.append, self.ended.append
        )

    def turn(self) -> None:
        """Let all that can happen now happen."""
        while ready := self.selector.select(0):
            for key, _ in ready:
                if self.selector.get_map().get(key.fd) is key:
                    key.data()


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Both ends of a connection."""
    made = Ends()
    yield made
    made.a.close()
    made.b.close()
    made.selector.close()
    for descriptor in made.descriptors:
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_a_pipe_that_is_full_holds_nothing_up(ends: Ends) -> None:
    frames = [Frame(Kind.OUT, 1, bytes([number]) * 50_000) for number in range(40)]
    for frame in frames:
        ends.a.send(frame)
    assert ends.a.queued > 0
    ends.turn()
    assert ends.there == frames
    assert ends.a.queued == 0


def test_an_end_that_reads_nothing_is_given_up(ends: Ends) -> None:
    frame = Frame(Kind.OUT, 1, bytes(1 << 20))
    for _ in range(QUEUE_MAX // len(frame.data) + 3):
        ends.a.send(frame)
    assert ends.ended == ["it does not take what is sent to it"]
    ends.a.send(frame)  # nothing happens any more
    assert not ends.a.open


def test_nonsense_ends_the_connection_once(ends: Ends) -> None:
    os.write(ends.descriptors[1], b"Welcome to this host\n" * 10)
    ends.turn()
    assert len(ends.ended) == 1
    assert "cannot be understood" in ends.ended[0]


def test_the_end_of_the_other_side_is_noticed(ends: Ends) -> None:
    os.close(ends.descriptors[1])
    ends.turn()
    assert ends.ended == ["the connection has ended"]
