"""Targets that decode: values of invocations, states as streams, control messages, headers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgpack

from orcalike.errors import NotSerializable, ReplicaDivergence
from orcalike.runtime.errors import Unreadable
from orcalike.runtime.marshal import Codec
from orcalike.runtime.plain import get_value, put_bytes
from orcalike.runtime.stream_decoder import Decoder, decode_whole
from orcalike.runtime.stream_encoder import Encoder
from orcalike.transport.errors import ProtocolError
from orcalike.transport.wire.control import unpack
from orcalike.transport.wire.message import Message
from tests.fuzz.mutation import cut, exactly, mutated
from tests.protocol.hostile import Grammar, Rng, Scene
from tests.unit.runtime.test_stream import drawn

KEPT = 64
"""So many encodings are there to be mutated."""


class Target:
    """Code that takes inputs of others; a new one for each batch, so that a batch can be repeated."""

    inputs = 1_000
    """Of one batch: about a second."""

    def one(self, rng: Rng) -> int:
        """Take an input, or some; returns how many."""
        raise NotImplementedError

    def close(self) -> None:
        """End what it has opened; raises what went wrong meanwhile."""


class Values(Target):
    """Values, and encodings of them, some of which are new each time."""

    is_state = False
    """Whether a value that lies in two places is one, as in a state."""

    def __init__(self) -> None:
        self.codec = Codec(lambda value: None, lambda number: number)
        self.encodings = [b"\xc0"]

    def encoding(self, rng: Rng) -> bytes:
        """A right one, as pieces of any size that were joined."""
        if len(self.encodings) < KEPT or rng.random() < 0.02:
            one, other = drawn(rng, 3), drawn(rng, 2)
            value = (one, other, [one, (other, one)]) if self.is_state else one
            size = rng.choice((64, 100, 4096))
            encoder = Encoder(self.codec, value, "it", size, is_state=self.is_state)
            new = b"".join(iter(encoder.next_piece, None))
            self.encodings = [new, *self.encodings[: KEPT - 1]]
        encoding: bytes = rng.choice(self.encodings)
        return encoding

    def damaged(self, rng: Rng) -> bytes:
        """One with faults, or bytes by chance."""
        if rng.random() < 0.1:
            return rng.randbytes(rng.randrange(80))
        return mutated(self.encoding(rng), self.encodings, rng)


class Marshal(Values):
    """Arguments and results: what is read can be written again, to the same value."""

    def one(self, rng: Rng) -> int:
        """One input."""
        data = self.damaged(rng)
        with contextlib.suppress(ProtocolError, NotSerializable, Unreadable):
            for value in self.codec.decode(exactly(data)):
                again = self.codec.encode_value(value, "it")
                self.codec.decode(again)
                self.codec.encode_canonical(value)
                put_bytes(value, rng.choice((0, 1, 9, 4096)))
        with contextlib.suppress(ValueError):
            get_value(data)
        return 1


class Stream(Values):
    """States, fed in pieces; also after an error, which leaves nothing half made."""

    is_state = True

    def one(self, rng: Rng) -> int:
        """One input."""
        data = self.damaged(rng)
        decoder = Decoder(self.codec, "it")
        for part in cut(data, rng):
            with contextlib.suppress(ProtocolError, ReplicaDivergence):
                decoder.feed(exactly(part))
        with contextlib.suppress(ProtocolError, ReplicaDivergence):
            decoder.result()
        with contextlib.suppress(ProtocolError, ReplicaDivergence):
            decode_whole(self.codec, exactly(data), "it")
        return 1


class Control(Target):
    """Control messages and greetings."""

    def __init__(self) -> None:
        self.view = Scene().view
        self.messages = [b"\x90"]

    def one(self, rng: Rng) -> int:
        """One input."""
        if len(self.messages) < KEPT or rng.random() < 0.05:
            new = Grammar(rng, self.view).control()
            self.messages = [new, *self.messages[: KEPT - 1]]
        data = mutated(rng.choice(self.messages), self.messages, rng)
        try:
            value = unpack(exactly(data), "it", rng.choice((0, 1, 8)), rng.choice((0, 9, 32768)))
        except ProtocolError:
            return 1
        assert msgpack.packb(value, unicode_errors="surrogatepass") is not None
        return 1


class Headers(Target):
    """A message is a body with headers before it: compared with bytes."""

    def one(self, rng: Rng) -> int:
        """One message."""
        model = rng.randbytes(rng.choice((0, 1, 40, 5000)))
        message = Message(exactly(model))
        for _ in range(rng.randrange(1, 30)):
            size = rng.choice((0, 1, 8, 24, 33, 700))
            if rng.random() < 0.5:
                header = rng.randbytes(size)
                message.push_header(exactly(header))
                model = header + model
            elif size <= len(model):
                assert message.pop_header(size) == model[:size]
                model = model[size:]
            else:
                with contextlib.suppress(ValueError):
                    message.pop_header(size)
                    raise AssertionError("a header was there that was not")
            if rng.random() < 0.1:
                message = message.copy()
            assert (len(message), message.body) == (len(model), model)
        return 1


DECODERS: dict[str, Callable[[], Target]] = {
    "marshal": Marshal,
    "stream": Stream,
    "control": Control,
    "headers": Headers,
}
