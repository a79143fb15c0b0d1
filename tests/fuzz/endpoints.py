"""Targets with sockets or a whole stack: bytes of a connection, heartbeats, frames of the grammar."""

from __future__ import annotations

import contextlib
import secrets
import socket
import tempfile
from collections.abc import Callable

from orcalike.transport.view import Member
from tests.fuzz.decoders import Target
from tests.fuzz.mutation import cut, mutated
from tests.lib.end import End
from tests.protocol import hostile
from tests.protocol.hostile import Grammar, Rng, Scene, Tally
from tests.protocol.test_bad_frames import hello
from tests.unit.transport.drivers import test_heartbeat

FRAMES = 50
"""Of one hostile grammar, by non-members."""


class Connection(Target):
    """A stream of frames at the socket of a member, cut anywhere."""

    inputs = 100

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="orcalike-fuzz-")
        self.end = End(f"unix:{self.folder.name}/end")
        self.view = Scene().view

    def one(self, rng: Rng) -> int:
        """One connection, with a greeting and some frames."""
        grammar = Grammar(rng, self.view)
        frames = [hello("group", "", 77 + rng.randrange(1 << 40))]
        frames += [grammar.frame(member=False) for _ in range(rng.randrange(6))]
        data = b"".join(frames)
        if rng.random() < 0.7:
            data = mutated(data, frames, rng)
        with self.end.connect() as sock:
            sock.setblocking(False)
            for part in cut(data, rng)[:200]:
                try:
                    sock.send(part)
                except OSError:
                    break
                self.end.pump.handle()
            with contextlib.suppress(OSError):
                sock.recv(1 << 16)
        self.end.pump.handle()
        assert self.end.pump.failure is None, self.end.pump.failure
        self.end.logged.clear()
        return len(frames)

    def close(self) -> None:
        """The member ends well."""
        self.end.pump.close_all()
        assert self.end.pump.failure is None, self.end.pump.failure
        self.folder.cleanup()


class Heartbeats(Target):
    """Datagrams at the socket of the thread that beats, while it beats."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="orcalike-fuzz-")
        self.end = test_heartbeat.End(f"unix:{self.folder.name}/end")
        self.raw = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.raw.bind(f"{self.folder.name}/raw~")
        self.raw.setblocking(False)
        self.me = self.end.member.incarnation
        self.beat(1)

    def beat(self, count: int) -> None:
        """To so many members from now on."""
        others = [Member(f"unix:{self.folder.name}/raw", 1 + i, i) for i in range(count)]
        self.end.beat(*others, period=1_000_000)

    def one(self, rng: Rng) -> int:
        """One datagram."""
        with contextlib.suppress(BlockingIOError):
            self.raw.recv(200)
        right = test_heartbeat.pack(
            rng.choice((self.me, 0, 1)), sender=rng.choice((1, 2, 5, secrets.randbits(60))),
            group=rng.choice(("g", "x")), sent=rng.getrandbits(62), echo=rng.getrandbits(62),
            kind=rng.choice((0, 1, 2, 3, 255)), lease=rng.choice((0, 1, rng.getrandbits(62))),
        )  # fmt: skip
        data = mutated(right, [right], rng) if rng.random() < 0.7 else right
        with contextlib.suppress(BlockingIOError):
            self.raw.sendto(data, f"{self.folder.name}/end~")
        if rng.random() < 0.02:
            self.beat(rng.choice((0, 1, 2, 200)))
        self.end.heartbeat.heard(self.me)
        self.end.heartbeat.excuses(self.me)
        self.end.heartbeat.leased(self.me, rng.choice((1, 2, 5)))
        return 1

    def close(self) -> None:
        """Its thread ends."""
        self.end.close()
        self.raw.close()
        self.folder.cleanup()


class NonMembers(Target):
    """Frames of the grammar by endpoints that are in no view: they change nothing."""

    inputs = 20

    def __init__(self) -> None:
        self.scene = Scene()

    def one(self, rng: Rng) -> int:
        """One member, and so many frames."""
        hostile.by_non_members(self.scene, rng, FRAMES, Tally())
        return FRAMES


class Members(NonMembers):
    """The same by a member: it may lose its membership, and do no other harm."""

    inputs = 100

    def one(self, rng: Rng) -> int:
        """The frames that one stack gets."""
        tally = Tally()
        hostile.by_a_member(self.scene, rng, tally)
        return tally.members


ENDPOINTS: dict[str, Callable[[], Target]] = {
    "connection": Connection,
    "heartbeats": Heartbeats,
    "non_members": NonMembers,
    "members": Members,
}
