"""Programs whose messages have another form meet: both ends say so, and neither reads what it does not know."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.session.entry import HOPELESS_MAX
from orcalike.transport.layers.com import WIRE_VERSION, answer_to
from tests.lib.end import End
from tests.lib.processes import DEADLINE
from tests.protocol.test_bad_frames import frame, hello

OTHER = WIRE_VERSION + 1
HERE = "tcp:127.0.0.1:0"


def test_one_that_connects_is_answered_with_the_version_here() -> None:
    """Whatever else its greeting has in it; and it can say so."""
    end = End(HERE)
    with end.connect() as sock:
        sock.sendall(frame(1, b"\xc1 is not msgpack", version=OTHER))
        end.until(lambda: "refused" in str(end.logged))
        answer = sock.recv(4096)
        assert sock.recv(1) == b""
    end.pump.close_all()
    assert f"it speaks wire version {OTHER}, and this process {WIRE_VERSION}" in str(end.logged)
    assert (answer[4:6], len(answer)) == (bytes([0x4F, WIRE_VERSION]), answer[0] + 4)


def test_nothing_else_is_answered() -> None:
    for greeting in (
        b"",
        b"GET / HT",
        hello("group", "", 77),
        frame(1, b"", magic=1, version=OTHER),
    ):
        assert answer_to(greeting) == b""


def test_one_that_joins_says_which_versions_have_met() -> None:
    joiner = End(HERE, joins=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        joiner.pump.call(joiner.stack.join, f"tcp:127.0.0.1:{server.getsockname()[1]}")
        with server.accept()[0] as sock:
            joiner.pump.handle()
            sock.sendall(bytes([4, 0, 0, 0, 0x4F, OTHER, 1, 0]))
            joiner.until(lambda: joiner.top.failed)
    joiner.pump.close_all()
    assert f"wire version {OTHER}, and this process {WIRE_VERSION}" in joiner.top.failed[0]


def test_a_program_that_joins_gets_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """It does not wait for the time limit, and the error names the remedy."""
    path = f"{tmp_path}/other"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        server.settimeout(DEADLINE)

        def answer() -> None:
            for _ in range(HOPELESS_MAX):
                with server.accept()[0] as sock:
                    sock.sendall(bytes([4, 0, 0, 0, 0x4F, OTHER, 1, 0]))
                    while sock.recv(4096):
                        pass

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(
            orca.JoinFailed, match=r"cannot be joined: .*both need the same version of orcalike"
        ):
            orca.connect(seeds=[f"unix:{path}"], timeout=30)
        thread.join()
