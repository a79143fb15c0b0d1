"""The proof of a key on a TCP connection, and where a key comes from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orcalike.errors import InsecureConfig, OrcalikeError
from orcalike.launcher.job import KEY_SIZE as LAUNCHER_KEY_SIZE
from orcalike.session.keys import find_key, read_key
from orcalike.session.options import make_options
from orcalike.transport.drivers.proof import KEY_SIZE, MAGIC, Proof
from orcalike.transport.errors import AuthenticationError

KEY, OTHER = bytes(range(32)), bytes(32)
HELLO, BACK = b"hello of the one that connects", b"hello of the one that accepts"


def ends(one: bytes = KEY, other: bytes = KEY) -> tuple[Proof, Proof]:
    """The end that connects and the one that accepts, which know each other's nonce."""
    connecting, accepting = Proof(one, connects=True), Proof(other, connects=False)
    connecting.meet(accepting.challenge())
    accepting.meet(connecting.challenge())
    return connecting, accepting


def test_both_ends_prove_the_key() -> None:
    connecting, accepting = ends()
    accepting.verify(connecting.seal(HELLO), HELLO)
    connecting.verify(accepting.seal(BACK), BACK)
    assert connecting.verified
    assert accepting.verified


def test_another_key_proves_nothing() -> None:
    connecting, accepting = ends(KEY, OTHER)
    with pytest.raises(AuthenticationError, match="has not proved the key"):
        accepting.verify(connecting.seal(HELLO), HELLO)
    with pytest.raises(AuthenticationError):
        connecting.verify(accepting.seal(BACK), BACK)


@pytest.mark.parametrize("lie", ["incarnation", "tag"])
def test_a_changed_greeting_or_tag_is_refused(lie: str) -> None:
    connecting, accepting = ends()
    tag, greeting = connecting.seal(HELLO), HELLO
    if lie == "tag":
        tag = tag[:-1] + bytes([tag[-1] ^ 1])
    else:
        greeting += b"!"
    with pytest.raises(AuthenticationError):
        accepting.verify(tag, greeting)
    assert not accepting.verified


def test_a_recorded_proof_is_worth_nothing() -> None:
    connecting, _ = ends()
    recorded = connecting.seal(HELLO)
    _, later = ends()
    with pytest.raises(AuthenticationError):
        later.verify(recorded, HELLO)


def test_an_ends_own_proof_sent_back_is_none() -> None:
    """A process without the key echoes what it gets: nonce, tag and greeting."""
    connecting = Proof(KEY, connects=True)
    connecting.meet(connecting.challenge())
    tag = connecting.seal(HELLO)
    with pytest.raises(AuthenticationError):
        connecting.verify(tag, HELLO)


def test_the_answer_is_to_this_greeting() -> None:
    """A proof for one greeting answers no other one."""
    connecting, accepting = ends()
    accepting.verify(connecting.seal(HELLO), HELLO)
    connecting.seal(HELLO + b"!")
    with pytest.raises(AuthenticationError):
        connecting.verify(accepting.seal(BACK), BACK)


def test_the_first_bytes_are_no_frame() -> None:
    assert int.from_bytes(MAGIC, "little") > 1 << 28
    with pytest.raises(AuthenticationError, match="without the key"):
        Proof(KEY, connects=False).meet(bytes(36))


def key_file(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_a_key_is_read(tmp_path: Path) -> None:
    assert LAUNCHER_KEY_SIZE == KEY_SIZE
    assert read_key(KEY) == KEY
    assert read_key(key_file(tmp_path / "raw", KEY)) == KEY
    assert read_key(str(key_file(tmp_path / "hex", KEY.hex().encode() + b"\n"))) == KEY


@pytest.mark.parametrize(
    ("data", "mode", "error", "words"),
    [
        (KEY, 0o644, InsecureConfig, "is open to others: chmod 600 it"),
        (KEY, 0o620, InsecureConfig, "is open to others"),
        (KEY[:-1], 0o600, ValueError, "a key has 32 bytes"),
        (b"\xff" * 33, 0o600, ValueError, "a key has 32 bytes"),
        (b"", 0o600, ValueError, "a key has 32 bytes"),
    ],
)
def test_a_file_that_is_no_key(
    tmp_path: Path, data: bytes, mode: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        read_key(key_file(tmp_path / "key", data, mode))


def test_a_key_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OrcalikeError, match="cannot be read"):
        read_key(tmp_path / "none")
    with pytest.raises(ValueError, match="a key has 32 bytes"):
        read_key(b"short")


def test_the_launchers_key_is_this_processs_alone() -> None:
    memory = os.memfd_create("key")
    os.write(memory, KEY)
    try:
        assert find_key({"ORCALIKE_KEY_FD": f"{memory}:{os.getpid()}"}) == KEY
        assert find_key({"ORCALIKE_KEY_FD": f"{memory}:{os.getpid()}"}) == KEY, "for each group"
        assert find_key({"ORCALIKE_KEY_FD": f"{memory}:{os.getppid()}"}) is None
        assert find_key({"ORCALIKE_KEY_FD": "nonsense"}) is None
        assert find_key({}) is None
    finally:
        os.close(memory)
    with pytest.raises(OrcalikeError, match="the launcher's key cannot be read"):
        find_key({"ORCALIKE_KEY_FD": f"{memory}:{os.getpid()}"})


@pytest.mark.parametrize("how", ["listen", "seeds"])
def test_tcp_without_a_key_is_refused(how: str) -> None:
    def options(key: bytes | None) -> object:
        address = "tcp:127.0.0.1:0"
        return make_options(
            None,
            seeds=address if how == "seeds" else None,
            listen=address if how == "listen" else None,
            size=None,
            resilience=0,
            blocked="wait",
            stack=None,
            timeout=None,
            key=key,
        )

    with pytest.raises(InsecureConfig, match="a TCP port is open to every user of this machine"):
        options(None)
    assert KEY.hex() not in repr(options(KEY))
    assert repr(KEY) not in repr(options(KEY))
