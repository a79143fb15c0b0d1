"""What the checkers find if little was recorded: no models, few reads, or an acknowledgement that came late."""

from __future__ import annotations

from orcalike.history_check.check import check_histories
from tests.campaign.models import model_of
from tests.lib.scene import Scene

REGISTER, COUNTER = "register 0", "counter 0"


def wrong(scene: Scene) -> set[str]:
    """The invariants that a scene breaks, as far as is known without models."""
    return {violation.invariant for violation in check_histories(scene.all(), 1).violations}


def two_members(kind: str) -> Scene:
    scene = Scene()
    scene.install("a", "b")
    scene.create("a", kind)
    return scene


def test_the_order_must_respect_real_time_whatever_the_objects_are() -> None:
    """I20: a write that was acknowledged stands before each that was invoked later."""
    scene = two_members(COUNTER)
    first = scene.write("a", COUNTER, "add", 1)
    second = scene.write("b", COUNTER, "add", 1)
    assert wrong(scene) == set()
    acknowledged = next(
        record for record in scene.histories["b"].of("ok") if record["ticket"] == second[1]
    )
    invoked = next(
        record for record in scene.histories["a"].of("invoke") if record["ticket"] == first[1]
    )
    invoked["t"] = acknowledged["t"] + 1
    assert wrong(scene) == {"I20"}


def read(scene: Scene, member: str, gseq: int, value: str = "") -> None:
    """A member reads the register, as it stood at this packet."""
    scene.tell(
        member,
        "read",
        object=REGISTER,
        operation="Register.get",
        args=[],
        gseq=gseq,
        value=value,
    )


def test_reads_go_back_neither_after_a_read_nor_after_a_write_that_is_acknowledged_late() -> None:
    """I22: an acknowledgement of what stands earlier makes an older state no better."""
    for acknowledged_late in (False, True):
        scene = two_members(COUNTER)
        early = scene.write("a", COUNTER, "add", 1)
        for _ in range(3):
            scene.write("b", COUNTER, "add", 1)
        ok = next(each for each in scene.histories["a"].of("ok") if each["ticket"] == early[1])
        read(scene, "a", scene.gseq)
        if acknowledged_late:
            records = scene.histories["a"].records
            records.remove(ok)
            records.append(ok)
        assert wrong(scene) == set()
        read(scene, "a", scene.gseq - 1)
        assert wrong(scene) == {"I22"}


def test_values_that_a_member_reads_go_back_neither() -> None:
    """I22: also those of writes of others, if the packets of the reads say nothing."""
    scene = two_members(REGISTER)
    scene.write("a", REGISTER, "swap", "old")
    scene.write("a", REGISTER, "swap", "new")
    for value in ("old", "new", "new"):
        read(scene, "b", scene.gseq, value)
    assert wrong(scene) == set()
    read(scene, "b", scene.gseq, "old")
    assert wrong(scene) == {"I22"}
    assert {"I22"} <= {
        each.invariant for each in check_histories(scene.all(), 1, model_of).violations
    }
