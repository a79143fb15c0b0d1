"""Records of a direction: the same by either library, and what is done where one is missing (S4, S5)."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
import types
from collections.abc import Iterator
from unittest import mock

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from orcalike.transport.drivers import siphash
from orcalike.transport.drivers.noise import NONCE_SIZE, TAG_SIZE
from orcalike.transport.drivers.record_cipher import RecordCipher, why_not_quick
from tests.lib.keyed import LIBRARIES, short_records_by

KEY = bytes(range(32))
SHORT = 3072
"""Bytes of the longest record that libsodium seals."""
SIZES = (1, 15, 16, 17, 77, 1000, SHORT - 1, SHORT, SHORT + 1, 20_000, 1 << 16, 77, SHORT, 5000, 1)


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    with short_records_by(request.param) as lack:
        if lack:
            pytest.skip(lack)
        yield request.param


def nonce(number: int) -> bytes:
    return number.to_bytes(NONCE_SIZE, "big")


def test_the_published_vector(library: str) -> None:
    """Test case 14 of McGrew and Viega's specification of GCM."""
    sealed = "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
    assert RecordCipher(bytes(32)).seal_bytes(bytes(16)).hex() == sealed
    assert RecordCipher(bytes(32)).open_bytes(bytes.fromhex(sealed)) == bytes(16)


def test_records_of_all_sizes_are_those_of_another_end(library: str) -> None:
    """Short and long ones mixed: both count, whichever library takes them."""
    sends, comes, other = RecordCipher(KEY), RecordCipher(KEY), AESGCM(KEY)
    for number, size in enumerate(SIZES):
        plain = secrets.token_bytes(size)
        record = sends.seal_bytes(plain)
        assert record == other.encrypt(nonce(number), plain, None), (number, size)
        assert comes.open_bytes(record) == plain
    quick = sum(size <= SHORT for size in SIZES) if library == "libsodium" else 0
    assert (sends.quick, comes.quick) == (quick, quick)


def test_a_nonce_has_more_than_one_byte(library: str) -> None:
    sends, other = RecordCipher(KEY), AESGCM(KEY)
    for number in range(70_000):
        record = sends.seal_bytes(b"x")
        if number % 255 < 2 or number > 65_530:
            assert record == other.encrypt(nonce(number), b"x", None), number


@pytest.mark.parametrize("size", [1, 77, SHORT, SHORT + 1])
def test_what_was_changed_does_not_open(library: str, size: int) -> None:
    """Each byte of a short one, some of a long one; the record itself opens after that, as the next one."""
    record = RecordCipher(KEY).seal_bytes(bytes(size))
    comes = RecordCipher(KEY)
    for at in [*range(len(record))[:: 1 if size < 100 else 97], len(record) - 1]:
        changed = record[:at] + bytes([record[at] ^ 1]) + record[at + 1 :]
        assert comes.open_bytes(changed) is None, at
    assert comes.open_bytes(record[:-1]) is None
    assert comes.open_bytes(record[:TAG_SIZE]) is None
    assert comes.open_bytes(record[: TAG_SIZE - 1]) is None
    assert comes.open_bytes(RecordCipher(bytes(32)).seal_bytes(bytes(size))) is None
    assert comes.open_bytes(record) == bytes(size)
    assert comes.open_bytes(record) is None


def test_one_end_has_libsodium_and_the_other_one_has_not() -> None:
    with short_records_by("libsodium") as lack:
        if lack:
            pytest.skip(lack)
        one = [RecordCipher(KEY) for _ in range(2)]
    with short_records_by("cryptography"):
        other = [RecordCipher(KEY) for _ in range(2)]
    for size in SIZES:
        plain = secrets.token_bytes(size)
        assert other[0].open_bytes(one[0].seal_bytes(plain)) == plain
        assert one[1].open_bytes(other[1].seal_bytes(plain)) == plain
    assert [cipher.quick > 0 for cipher in (*one, *other)] == [True, True, False, False]


def module(
    *, start: int = 0, has_aes: bool = True, file: str | None = siphash.__file__
) -> types.SimpleNamespace:
    """What stands for PyNaCl's compiled module; its file is one without libsodium."""
    lib = types.SimpleNamespace(
        sodium_init=lambda: start, crypto_aead_aes256gcm_is_available=lambda: has_aes
    )
    return types.SimpleNamespace(lib=lib, __file__=file)


OF_ANOTHER_VERSION = types.SimpleNamespace(lib=types.SimpleNamespace(sodium_init=lambda: 0))

#: What stands in the place of PyNaCl's compiled module, and what is said of it.
LACKING: dict[str, tuple[object, str]] = {
    "not installed": (None, r"PyNaCl: .*: pip install orcalike\[net\]"),
    "another module": (types.SimpleNamespace(), "PyNaCl: AttributeError: .* 'lib'"),
    "no such function": (OF_ANOTHER_VERSION, "PyNaCl: AttributeError: .*_is_available'"),
    "no AES": (
        module(has_aes=False),
        "the processor has no instructions for AES that libsodium uses",
    ),
    "does not start": (module(start=-1), "libsodium does not start"),
    "no file": (module(file=None), "PyNaCl: AttributeError: .*'encode'"),
    "file is gone": (module(file="/nowhere.so"), "PyNaCl: .* cannot be opened"),
    "hidden functions": (module(), "PyNaCl: its libsodium lacks a function"),
}


@pytest.mark.parametrize("lacking", LACKING)
def test_what_is_lacking_is_named_and_harms_nothing(lacking: str) -> None:
    found, said = LACKING[lacking]
    package = types.ModuleType("nacl")
    vars(package)["_sodium"] = found
    with mock.patch.dict(sys.modules, {"nacl": package if found else None}):
        why = why_not_quick(anew=True)
        cipher = RecordCipher(KEY)
    why_not_quick(anew=True)
    assert re.fullmatch(said, why), why
    assert cipher.seal_bytes(b"there") == AESGCM(KEY).encrypt(nonce(0), b"there", None)
    assert cipher.quick == 0


def test_what_is_found_is_kept() -> None:
    with short_records_by("cryptography"):
        first = why_not_quick()
        assert why_not_quick() is first != ""


@pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
def test_a_key_of_another_size_is_refused(library: str, size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        RecordCipher(bytes(size))


def test_no_text_shows_the_key(library: str) -> None:
    key = secrets.token_bytes(32)
    cipher = RecordCipher(key)
    cipher.seal_bytes(b"there")
    for shown in (repr(cipher), str(cipher), repr(dir(cipher))):
        assert key.hex() not in shown
        assert repr(key)[2:-1] not in shown
    with pytest.raises(TypeError):
        cipher.__reduce__()


#: Says when a cipher is there, and when it is gone; each time a line of input has it go on.
MAKES_A_CIPHER = """
import sys
from orcalike.transport.drivers import record_cipher

key = bytes.fromhex(input())
cipher = None
if sys.argv[1] == "cryptography":
    sys.modules["nacl"] = None
record_cipher.why_not_quick()
record_cipher.RecordCipher(bytes(32)).seal_bytes(b"so that all is imported")
print("none", flush=True)
input()
cipher = record_cipher.RecordCipher(key)
cipher.seal_bytes(b"x")
print(cipher.quick, flush=True)
input()
del cipher
print("gone", flush=True)
input()
"""


def test_the_key_goes_with_its_cipher(library: str) -> None:
    """A process that has had one has as many copies of the key in its memory as before it."""
    key = secrets.token_bytes(32)
    command = [sys.executable, "-c", MAKES_A_CIPHER, library]
    counts = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for said, line in (
            (b"none", key.hex()),
            (b"1" if library == "libsodium" else b"0", ""),
            (b"gone", ""),
        ):
            program.stdin.write(line.encode() + b"\n")
            program.stdin.flush()
            assert program.stdout.readline().strip() == said
            counts.append(copies(program.pid, key[16:]))  # `free` itself writes over the first half
        program.stdin.write(b"\n")
    before, meanwhile, after = counts
    assert before > 0, "it has the key from this test"
    assert meanwhile > before
    assert after == before


def copies(pid: int, data: bytes) -> int:
    """How often a process that this one has started has these bytes in its memory."""
    count = 0
    try:
        with (
            open(f"/proc/{pid}/mem", "rb", buffering=0) as memory,
            open(f"/proc/{pid}/maps") as maps,
        ):
            for line in maps:
                bounds, rights, *_ = line.split()
                if rights.startswith("rw"):
                    begin, end = (int(bound, 16) for bound in bounds.split("-"))
                    memory.seek(begin)
                    count += memory.read(end - begin).count(data)
    except PermissionError:
        pytest.skip("the memory of a process that was started cannot be read")
    return count
