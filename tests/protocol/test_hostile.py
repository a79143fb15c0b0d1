"""Hostile frames of a grammar: no exception, no growth, and no state changed by non-members."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol import hostile

FRAMES = 6_000


@pytest.mark.parametrize("seed", [0, 1000])
def test_hostile_frames_break_nothing(seed: int) -> None:
    tally = hostile.attack(FRAMES, seed)
    assert tally.non_members >= FRAMES // 2
    assert tally.members >= FRAMES // 10
    assert tally.refused


def test_the_grammar_reaches_what_it_lies_about() -> None:
    """Members' frames come through to the runtime, and are complained of there."""
    assert hostile.attack(4_000, 77).delivered


def test_a_frame_that_does_harm_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is compared: what a non-member's EXPELLED did is noticed."""
    from orcalike.transport.membership import attribution

    table = dict.fromkeys(attribution.BELIEVED, attribution.Standing.ANY)
    monkeypatch.setattr(attribution, "BELIEVED", table)
    with pytest.raises(Exception) as found:  # noqa: PT011 of several kinds
        hostile.attack(100_000, 0)
    assert "tests.protocol.hostile" in "".join(found.value.__notes__)
    assert Path(hostile.__file__).exists()
