"""The fuzzer takes inputs, repeats them from a seed, and says if sanitizers are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import sanitized
from tests.fuzz.__main__ import TARGETS
from tests.fuzz.mutation import mutated
from tests.protocol.hostile import Rng


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_takes_inputs(name: str) -> None:
    rng, target = Rng(1), TARGETS[name]()
    try:
        assert all(target.one(rng) > 0 for _ in range(3))
    finally:
        target.close()


def test_a_seed_stands_for_its_inputs() -> None:
    def drawn(seed: int) -> list[bytes]:
        rng = Rng(seed)
        return [mutated(b"0123456789", [b"abc", b"defghi"], rng) for _ in range(200)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 150


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("echo $1", "has no libasan.so: install GCC's sanitizers, or name it in CC"),
        ("exit 3", "does not run: .*exit status 3"),
    ],
)
def test_a_compiler_without_sanitizers_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    says: str,
    why: str,
) -> None:
    """GCC prints the name alone of a library that it has not."""
    compiler = tmp_path / "mycc"
    compiler.write_text(f"#!/bin/sh\n{says}\n".replace("$1", "libasan.so"))
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(sanitized.CannotRun, match=why):
        sanitized.libraries()
    monkeypatch.setattr("sys.argv", ["tests.fuzz.sanitized"])
    assert sanitized.main() == 1
    assert f"fuzz-asan: {compiler} " in capsys.readouterr().err
