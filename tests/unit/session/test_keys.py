"""Where the keys of a group come from: an argument, the launcher, a file; and what TCP needs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.errors import InsecureConfig, OrcalikeError
from orcalike.session import key_file as file_of_keys
from orcalike.session.key_file import Entry, default_path, draw, parse, read, write
from orcalike.session.keys import find_keys, read_keys
from orcalike.session.options import JoinOptions, make_options
from orcalike.transport.drivers.key_ring import KEYS_MAX, key_of

KEY, OTHER = bytes(range(32)), bytes(32)


def key_file(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def line(secret: bytes, day: str = "2026-11-23") -> bytes:
    return f"{key_of(secret).id.hex()} {secret.hex()} {day}\n".encode()


def test_a_key_is_read(tmp_path: Path) -> None:
    for key in (
        KEY,
        key_file(tmp_path / "raw", KEY),
        str(key_file(tmp_path / "hex", KEY.hex().encode() + b"\n")),
        key_file(tmp_path / "ring", b"# keys\n\n" + line(KEY)),
    ):
        assert read_keys(key).first() == key_of(KEY)


def test_the_first_of_several_seals(tmp_path: Path) -> None:
    ring = read_keys(key_file(tmp_path / "ring", line(OTHER) + line(KEY)))
    assert ring.first() == key_of(OTHER)
    assert ring.find(key_of(KEY).id) == key_of(KEY)


def test_a_file_is_read_anew_when_it_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ring"
    write(path, [Entry(key_of(KEY), "")])
    ring = read_keys(path)
    write(path, [Entry(key_of(OTHER), ""), Entry(key_of(KEY), "")])
    assert ring.first() == key_of(OTHER)
    path.chmod(0o644)
    path.write_bytes(b"nonsense")
    assert ring.first() == key_of(OTHER)
    assert ring.first() == key_of(OTHER)
    assert [record.message for record in caplog.records] == [
        f"the keys stay as they were: the key {path} is open to others: chmod 600 it"
    ]


def test_a_file_that_could_not_be_read_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A second later at the soonest, though it has not changed since."""
    path, now = tmp_path / "ring", [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    write(path, [Entry(key_of(KEY), "")])
    ring = read_keys(path)
    write(path, [Entry(key_of(OTHER), ""), Entry(key_of(KEY), "")])
    with monkeypatch.context() as patch:
        patch.setattr(file_of_keys, "read", lambda path: with_an_error())
        assert ring.first() == key_of(KEY)
        now[0] += 1.5
        assert ring.first() == key_of(KEY)
    assert ring.first() == key_of(KEY)
    now[0] += 1.5
    assert ring.first() == key_of(OTHER)
    assert len(caplog.records) == 1


def with_an_error() -> list[Entry]:
    raise OrcalikeError("Too many open files")


@pytest.mark.parametrize(
    ("data", "mode", "error", "words"),
    [
        (KEY, 0o644, InsecureConfig, "is open to others: chmod 600 it"),
        (KEY, 0o620, InsecureConfig, "is open to others"),
        (KEY[:-1], 0o600, ValueError, "line 1: a key has 32 bytes"),
        (b"\xff" * 33, 0o600, ValueError, "a key has 32 bytes"),
        (b"", 0o600, ValueError, "it has 0 keys; 1 to 16 are allowed"),
        (line(KEY) * (KEYS_MAX + 1), 0o600, ValueError, "it has 17 keys"),
        (line(KEY)[1:], 0o600, ValueError, "line 1: the key's id is not .*: the line is damaged"),
        (line(KEY) + line(KEY)[:60], 0o600, ValueError, "line 2: a key has 32 bytes"),
        (b"#" * 20_000, 0o600, ValueError, "more than 16384 bytes"),
    ],
)
def test_a_file_that_is_no_key(
    tmp_path: Path, data: bytes, mode: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        read_keys(key_file(tmp_path / "key", data, mode))
    assert KEY.hex()[:16] not in str(caught.value)


#: Owner, group and mode of a file, as user 1000 with the groups 1000 and 2000 finds it, and why it is refused.
OWNERS = [
    (1000, 5, 0o600, ""),
    (1000, 5, 0o400, ""),
    (1000, 1000, 0o640, "is open to others: chmod 600 it"),
    (1000, 1000, 0o604, "is open to others"),
    (0, 0, 0o400, ""),  # it could be read, so be it
    (0, 2000, 0o440, ""),  # a Secret of Kubernetes, with fsGroup
    (0, 1000, 0o640, ""),
    (0, 5, 0o440, "is open to others, a group of which this process is none: chmod 600 it"),
    (0, 2000, 0o460, "is open to others: chmod 600 it"),
    (0, 2000, 0o450, "is open to others"),
    (0, 2000, 0o444, "is open to others: chmod 600 it"),
    (0, 2000, 0o442, "is open to others"),
    (7, 2000, 0o440, "is a file of neither this user nor root"),
    (7, 1000, 0o600, "is a file of neither this user nor root"),
]


@pytest.mark.parametrize(("owner", "group", "mode", "why"), OWNERS)
def test_files_of_this_user_and_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, group: int, mode: int, why: str
) -> None:
    path = key_file(tmp_path / "key", KEY)
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        found = [*real(descriptor)]
        found[0], found[4], found[5] = stat.S_IFREG | mode, owner, group
        return os.stat_result(found)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", fstat)
        patch.setattr(os, "getuid", lambda: 1000)
        patch.setattr(os, "getegid", lambda: 1000)
        patch.setattr(os, "getgroups", lambda: [2000])
        if not why:
            assert read(path) == [Entry(key_of(KEY), "")]
            return
        with pytest.raises(InsecureConfig, match=why):
            read(path)


def test_a_secret_of_kubernetes_is_read_by_a_user_of_its_group() -> None:
    """A process that is not root has the file's group besides its own."""
    if os.getuid() != 0:
        pytest.skip("only root can take another user's identity")
    program = (
        "import os, sys; from pathlib import Path; from orcalike.session.key_file import read\n"
        "os.setgroups([int(sys.argv[2])]); os.setgid(65534); os.setuid(65534)\n"
        "print(len(read(Path(sys.argv[1]))))"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        path = key_file(Path(folder) / "key", KEY, 0o440)
        os.chown(path, 0, 2000)
        for group, said in ((2000, "1\n"), (2001, "")):
            ended = subprocess.run(
                [sys.executable, "-c", program, str(path), str(group)],
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            assert ended.stdout == said, ended.stderr
        assert "cannot be read: Permission denied" in ended.stderr


def test_a_key_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OrcalikeError, match="cannot be read"):
        read_keys(tmp_path / "none")
    with pytest.raises(ValueError, match="a key has 32 bytes"):
        read_keys(b"short")


def test_a_file_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    path, entries = tmp_path / "folder" / "key", [draw(), draw()]
    write(path, entries)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read(path) == entries == parse(path.read_bytes(), "")
    assert list(path.parent.iterdir()) == [path]
    assert entries[0].key.secret.hex() not in repr(entries)


def test_the_launchers_key_is_this_processs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    memory = os.memfd_create("key")
    os.write(memory, KEY)
    file = f"{os.fstat(memory).st_dev}:{os.fstat(memory).st_ino}"
    try:
        for _ in range(2):  # for each group
            found = find_keys({"ORCALIKE_KEY_FD": f"{memory}:{os.getpid()}:{file}"})
            assert found is not None
            assert found.first() == key_of(KEY)
        assert find_keys({"ORCALIKE_KEY_FD": f"{memory}:{os.getppid()}:{file}"}) is None
        assert find_keys({"ORCALIKE_KEY_FD": "nonsense"}) is None
        assert find_keys({}) is None
    finally:
        os.close(memory)
    with pytest.raises(OrcalikeError, match="the launcher's key cannot be read"):
        find_keys({"ORCALIKE_KEY_FD": f"{memory}:{os.getpid()}:{file}"})
    with open(os.devnull, "rb") as other:  # as after exec(2)
        given = f"{other.fileno()}:{os.getpid()}:{file}"
        with pytest.raises(
            OrcalikeError, match=r"the launcher's key cannot be read: .* it was closed"
        ):
            find_keys({"ORCALIKE_KEY_FD": given})


def test_the_users_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = default_path()
    assert path == str(tmp_path / "orcalike" / "key")
    assert find_keys({}) is None
    write(path, [Entry(key_of(KEY), "")])
    other = key_file(tmp_path / "other", OTHER)
    for environ, key in (({}, KEY), ({"ORCALIKE_KEY_FILE": str(other)}, OTHER)):
        found = find_keys(environ)
        assert found is not None
        assert found.first() == key_of(key)
    with pytest.raises(OrcalikeError, match="cannot be read"):
        find_keys({"ORCALIKE_KEY_FILE": str(tmp_path / "none")})


def test_a_user_without_a_home_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert default_path() is None
    assert find_keys({}) is None


def options(how: str, key: bytes | None) -> JoinOptions:
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


@pytest.mark.parametrize("how", ["listen", "seeds"])
def test_tcp_without_a_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(
        InsecureConfig, match=r"open to every user .* make a key with `orcalike keygen`"
    ):
        options(how, None)
    assert KEY.hex() not in repr(options(how, KEY))
    assert repr(KEY) not in repr(options(how, KEY))
    write(tmp_path / "orcalike" / "key", [Entry(key_of(KEY), "")])
    assert options(how, None).keys is not None


def test_tcp_without_the_package_that_seals_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InsecureConfig, match=r"pip install 'orcalike\[net\]'"):
        options("listen", KEY)


@pytest.mark.parametrize(
    "address", ["tcp:127.0.0.1:0", "tcp:0.0.0.0:0", "tcp:10.0.0.5:7", "tcp:[fd00::5]:7"]
)
@pytest.mark.parametrize("argument", ["listen", "seeds"])
def test_tcp_does_without_a_key_if_program_and_environment_say_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    address: str,
    argument: str,
) -> None:
    """One of both is not enough; the log says what it means; a key that is there is used."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    where = {argument: address}
    monkeypatch.setattr("socket.socket", None)  # nothing is bound or sent
    with pytest.raises(InsecureConfig, match="takes effect together with ORCALIKE_INSECURE=1"):
        make_options("g", insecure=True, **where)  # type: ignore[arg-type]
    monkeypatch.setenv("ORCALIKE_INSECURE", "1")
    with pytest.raises(InsecureConfig, match="a TCP port is open to every user"):
        make_options("g", **where)  # type: ignore[arg-type]
    assert not caplog.records
    options = make_options("g", insecure=True, **where)  # type: ignore[arg-type]
    assert options.insecure
    assert options.beyond
    assert options.keys is None
    assert "INSECURE: the TCP connections of the group 'g'" in caplog.text
    options = make_options("g", insecure=True, key=KEY, **where)  # type: ignore[arg-type]
    assert not options.insecure
    assert options.keys is not None


def test_members_without_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("ORCALIKE_INSECURE", "1")
    with (
        orca.join(listen="tcp:127.0.0.1:0", insecure=True) as first,
        orca.join(seeds=first.address, insecure=True, timeout=60) as second,
    ):
        assert second.size == 2
