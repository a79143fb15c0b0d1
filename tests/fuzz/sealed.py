"""Targets over TCP under a key: bytes before a connection has proved the key, and records after it.

The victim is a member of a living group (`tests.lib.sealed_group`) with a real listening socket. What a
connection without the key sends changes nothing; neither does one with it that is no member.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable

from cryptography.exceptions import InvalidTag

from orcalike.transport.drivers.half_open import IN_ALL
from orcalike.transport.drivers.handshake import ANSWER_SIZE, MAGIC, OPENING_SIZE, Handshake
from orcalike.transport.drivers.key_ring import ID_SIZE, key_of
from orcalike.transport.errors import AuthenticationError
from tests.fuzz.decoders import Target
from tests.fuzz.mutation import cut, mutated
from tests.lib.keyed import HEAD, LIBRARIES, Sealer, ring_of, short_records_by
from tests.lib.sealed_group import KEY, SealedGroup
from tests.protocol.hostile import Grammar, Rng
from tests.protocol.test_bad_frames import hello

OTHER_KEY = bytes(range(1, 33))
OPENINGS = 16
"""Made once, and sent again and again: the end that accepts cannot know."""
SLOW = 40
"""Connections that send a byte now and then."""
SLOW_WITHIN = 100.0
"""Seconds after which none of them is open: fifty times what a greeting may take."""
GROWTH_MAX = 96 << 20
"""Bytes by which the process may grow, whatever comes."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: no port that was used is kept for a minute."""
ANOTHER_PROTOCOL = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
TAG = 16
SIZES = (0, 1, TAG, 17, 1 << 16, (1 << 16) + 16, (1 << 16) + 17, (1 << 31) - 1, (1 << 32) - 1)


class Sealed(Target):
    """Connections to the member, one after the other."""

    def __init__(self) -> None:
        self.group = SealedGroup()
        self.end = self.group.attacked
        self.state = self.group.settle()
        self.peers = self.end.peers
        self.files = len(os.listdir("/proc/self/fd"))
        self.resident = resident()
        host, _, port = self.end.address.removeprefix("tcp:").rpartition(":")
        self.address = host, int(port)

    def connect(self, rng: Rng) -> socket.socket:
        """A connection from one of many addresses of this host."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.bind((f"127.0.{rng.randrange(4)}.{1 + rng.randrange(8)}", 0))
        sock.connect(self.address)
        sock.setblocking(False)
        return sock

    def send(self, sock: socket.socket, data: bytes, rng: Rng) -> bytes:
        """Send it in pieces of any size; returns what comes back meanwhile."""
        came = b""
        for part in cut(data, rng)[:50] or [b""]:
            with contextlib.suppress(OSError):
                sock.send(part)
            self.group.step()
            with contextlib.suppress(OSError):
                came += sock.recv(1 << 16)
        return came

    def check(self) -> None:
        """Nothing has changed, and nothing is kept; raises AssertionError."""
        self.group.until(lambda: self.end.peers == self.peers)
        assert self.group.state == self.state, "the state has changed"
        for end in (self.end, self.group.other):
            assert not end.top.problems + end.top.errors, end.top.problems + end.top.errors
            assert not any(KEY.hex() in line or repr(KEY) in line for line in end.logged)
            end.logged.clear()
        assert len(os.listdir("/proc/self/fd")) <= self.files + 2 * IN_ALL
        assert resident() - self.resident < GROWTH_MAX

    def close(self) -> None:
        """The group still works, and ends well."""
        try:
            self.check()
            self.group.cast(b"still here")
        finally:
            self.group.close()


class BeforeProof(Sealed):
    """Bytes of connections that do not prove the key."""

    inputs = 1000

    def __init__(self) -> None:
        super().__init__()
        self.openings = [Handshake(ring_of(KEY), connects=True).opening() for _ in range(OPENINGS)]
        self.others = [
            Handshake(ring_of(OTHER_KEY), connects=True).opening() for _ in range(OPENINGS)
        ]
        self.slow: list[tuple[socket.socket, bytes, float]] = []
        self.count = 0

    def one(self, rng: Rng) -> int:
        """One connection."""
        messages = self.messages(rng)
        if rng.random() < 0.3:
            messages = [mutated(b"".join(messages), [*self.openings, *messages], rng)]
        with contextlib.closing(self.connect(rng)) as sock:
            came = b"".join(self.send(sock, message, rng) for message in messages)
        assert len(came) <= ANSWER_SIZE, "more than an answer has come"
        self.trickle(rng)
        self.count += 1
        if self.count % 50 == 0:
            self.check()
        return len(messages)

    def messages(self, rng: Rng) -> list[bytes]:
        """What a connection without the key could send."""
        opening: bytes = rng.choice(self.openings)
        recorded = rng.choice(self.group.relay.recorded)
        match rng.randrange(12):
            case 0:
                return [rng.randbytes(rng.choice((0, 1, 3, 4, 60, OPENING_SIZE, 512, 5000)))]
            case 1:
                return [rng.choice(self.others), rng.randbytes(40)]
            case 2:  # the right name of a key that it has not
                return [MAGIC + key_of(KEY).id + rng.choice(self.others)[len(MAGIC) + ID_SIZE :]]
            case 3:
                return [opening[: rng.randrange(OPENING_SIZE)]]
            case 4:
                return [opening, opening]
            case 5:  # what follows an opening is a record
                return [opening, rng.choice(SIZES).to_bytes(HEAD, "little") + rng.randbytes(64)]
            case 6:
                return [bytes(recorded.there)]
            case 7:
                return [bytes(recorded.back)]
            case 8:
                at = OPENING_SIZE + rng.randrange(len(recorded.there) - OPENING_SIZE)
                return [opening, bytes(recorded.there[at : at + 2000])]
            case 9:
                view = self.group.views[0]
                assert view is not None
                return [hello("group", "", 77), Grammar(rng, view).frame(member=True)]
            case 10:
                return [rng.choice(ANOTHER_PROTOCOL)]
            case _:  # a public key that no exchange should be made with
                return [MAGIC + key_of(KEY).id + bytes(32) + opening[-TAG:]]

    def trickle(self, rng: Rng) -> None:
        """Connections that never come to an end, a byte at a time."""
        now = time.monotonic()
        if len(self.slow) < SLOW:
            self.slow.append((self.connect(rng), rng.choice(self.openings), now))
        sock, rest, since = self.slow.pop(0)
        try:
            sock.send(rest[:1])
            gone = sock.recv(1) == b""
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        assert gone or now - since < SLOW_WITHIN, "a connection that does not greet stays open"
        if gone or len(rest) <= 2:
            sock.close()
        else:
            self.slow.append((sock, rest[1:], since))

    def close(self) -> None:
        """None of the slow ones is left."""
        for sock, _, _ in self.slow:
            sock.close()
        super().close()


class AfterProof(Sealed):
    """Records of a connection that has the key, and is no member; most were changed on their way."""

    inputs = 200

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.earlier: list[bytes] = [b"\x11\0\0\0" + bytes(17)]
        """Records of other connections."""

    def one(self, rng: Rng) -> int:
        """One connection: a greeting and frames, sealed, and then changed."""
        view = self.group.views[0]
        assert view is not None
        grammar = Grammar(rng, view)
        frames = [hello("group", "", 77 + rng.randrange(1 << 40))]
        frames += [grammar.frame(member=False) for _ in range(rng.randrange(40))]
        library = short_records_by(rng.choice(LIBRARIES))  # or by what there is
        with library, contextlib.closing(self.connect(rng)) as sock:
            sealer = self.handshake(sock, rng)
            records = [sealer.seal(plain) for plain in cut(b"".join(frames), rng)[:40]]
            changed = self.changed(records, rng)
            came = self.send(sock, b"".join(changed), rng)
            self.read(sealer, came)
        self.earlier = [*records, *self.earlier][:64]
        self.count += 1
        if self.count % 20 == 0:
            self.check()
        return len(frames) + len(changed)

    def handshake(self, sock: socket.socket, rng: Rng) -> Sealer:
        """Prove the key."""
        handshake = Handshake(ring_of(KEY), connects=True)
        answer = self.send(sock, handshake.opening(), rng)
        while len(answer) < ANSWER_SIZE:
            answer += self.send(sock, b"", rng)
        handshake.check_begun(answer)
        try:
            handshake.receive(answer)
        except AuthenticationError as error:
            error.add_note(f"the answer: {len(answer)} bytes, {answer.hex()}")
            raise
        return Sealer(handshake)

    def changed(self, records: list[bytes], rng: Rng) -> list[bytes]:
        """The records as they arrive."""
        at = rng.randrange(len(records))
        record, other = records[at], rng.choice(self.earlier)
        before, after = records[:at], records[at + 1 :]
        match rng.randrange(10):
            case 0:
                return records
            case 1:
                return [*before, record, record, *after]
            case 2:
                return [*before, other, *after]
            case 3 if after:
                return [*before, after[0], record, *after[1:]]
            case 4 if after:
                return [*before, *after]
            case 5:
                return [*before, record[: rng.randrange(len(record))]]
            case 6:
                size = rng.choice(SIZES).to_bytes(HEAD, "little")
                return [*before, size + record[HEAD:], *after]
            case 7:
                return [*before, rng.randbytes(rng.randrange(200)), *after]
            case 8:
                place = rng.randrange(len(record))
                bit = bytes([record[place] ^ 1 << rng.randrange(8)])
                return [*before, record[:place] + bit + record[place + 1 :], *after]
            case _:
                return [*before, mutated(record, [other], rng), *after]

    def read(self, sealer: Sealer, came: bytes) -> None:
        """What came back is sealed for this connection, all of it."""
        while len(came) >= HEAD:
            size = int.from_bytes(came[:HEAD], "little")
            if len(came) < HEAD + size:
                return
            with contextlib.suppress(InvalidTag):
                sealer.open(came[: HEAD + size])
                came = came[HEAD + size :]
                continue
            raise AssertionError("what came back is not sealed under the key of this connection")


def resident() -> int:
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


SEALED: dict[str, Callable[[], Target]] = {
    "before_proof": BeforeProof,
    "after_proof": AfterProof,
}
