"""What a process of a launched program finds in its environment, and concludes from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orcalike.errors import OrcalikeError
from orcalike.launch_protocol.control_lines import (
    Blocked,
    Cut,
    Died,
    Ended,
    Gone,
    Heal,
    Hosts,
    IsMember,
    Joining,
    Lacks,
    Leaving,
    Left,
    Sequencer,
    SharedOrder,
    ToLauncher,
    ToProcess,
    Unblocked,
    encode,
    parse_for_launcher,
    parse_for_process,
    parse_of_started,
)
from orcalike.launch_protocol.environment import (
    OF_ONE_PROCESS,
    RankEnvironment,
    RunEnvironment,
    detection_at,
    find_addresses,
    find_detection,
    find_formed,
    find_rank_environment,
    find_seeds,
)

ROOT = Path(__file__).parents[3]
ADDRESSES = ("unix:/run/r0", "unix:/run/r1", "unix:/run/r2")


def environment(rank: int, *, witness: bool = False, **more: str) -> dict[str, str]:
    seeds = ("unix:/run/witness", *ADDRESSES) if witness else ADDRESSES
    return {
        "ORCALIKE_RANK": str(rank),
        "ORCALIKE_WORLD_SIZE": "3",
        "ORCALIKE_ADDRESS": seeds[0],
        "ORCALIKE_SEQUENCER": "witness" if witness else "rank",
        "ORCALIKE_RUNTIME_DIR": "/run",
        "ORCALIKE_LISTEN": ADDRESSES[rank],
        "ORCALIKE_SEEDS": ",".join(seeds),
        **more,
    }


def test_addresses_to_listen_at_and_to_join_through() -> None:
    launch = find_rank_environment(environment(1))
    assert launch is not None
    assert launch.listen == "unix:/run/r1"
    assert launch.targets == ("unix:/run/r0", "unix:/run/r2")
    launch = find_rank_environment(environment(1, witness=True))
    assert launch is not None
    assert launch.targets == ("unix:/run/witness", "unix:/run/r0", "unix:/run/r2")


def test_where_the_ranks_and_the_witness_listen() -> None:
    launch = find_rank_environment(environment(1, witness=True))
    assert launch is not None
    everywhere: dict[int | None, str] = {None: "unix:/run/witness", **dict(enumerate(ADDRESSES))}
    assert launch.addresses == find_addresses(environment(0, witness=True)) == everywhere
    assert find_addresses(environment(0)) == dict(enumerate(ADDRESSES))
    assert find_seeds(environment(0)) == tuple(ADDRESSES)


def test_a_stack_and_layers_of_the_program() -> None:
    given = {"ORCALIKE_STACK": "PACK:A:XFER:TOTAL:MBRSHIP:COM", "ORCALIKE_LAYERS": "a:A,b.c:D"}
    launch = find_rank_environment(environment(1) | given)
    assert launch is not None
    assert (launch.stack, launch.layers) == (given["ORCALIKE_STACK"], ("a:A", "b.c:D"))
    assert launch.to_environ().items() >= given.items()
    plain = find_rank_environment(environment(1))
    assert plain is not None
    assert (plain.stack, plain.layers) == ("", ())


def test_a_single_rank_has_its_own_address_as_the_only_seed() -> None:
    alone = environment(0, ORCALIKE_WORLD_SIZE="1", ORCALIKE_SEEDS="unix:/run/r0")
    launch = find_rank_environment(alone)
    assert launch is not None
    assert launch.targets == ("unix:/run/r0",)


def test_ranks_that_make_a_group() -> None:
    """Rank 0 without a witness; but none that was made before it was started again."""
    for rank, witness, makes in ((0, False, True), (1, False, False), (0, True, False)):
        launch = find_rank_environment(environment(rank, witness=witness))
        assert launch is not None
        assert launch.makes_group("default") == launch.makes_group("a b") == makes
    launch = find_rank_environment(environment(0, ORCALIKE_FORMED="a%20b,default"))
    assert launch is not None
    assert not launch.makes_group("a b")
    assert not launch.makes_group("default")
    assert launch.makes_group("other")


def test_a_rank_that_makes_a_group_by_the_word_of_all() -> None:
    """Rank 0, if no launcher knows which groups were made."""
    for rank, witness, may_make in ((0, False, True), (1, False, False), (0, True, False)):
        launch = find_rank_environment(environment(rank, witness=witness, ORCALIKE_UNANIMOUS="1"))
        assert launch is not None
        assert launch.may_make_group == may_make
        assert not launch.makes_group("default")
    launch = find_rank_environment(environment(0, ORCALIKE_UNANIMOUS="1", ORCALIKE_JOB_ID="7"))
    assert launch is not None
    assert launch.wire_name("default") == "default of job 7"
    launch = find_rank_environment(environment(0, ORCALIKE_JOB_ID="7"))
    assert launch is not None
    assert (launch.wire_name("default"), launch.may_make_group) == ("default", False)


def test_what_was_formed() -> None:
    assert find_formed({}) == frozenset()
    assert find_formed({"ORCALIKE_FORMED": "a%2Cb,c"}) == {"a,b", "c"}


@pytest.mark.parametrize("name", ["ORCALIKE_LISTEN", "ORCALIKE_SEEDS", "ORCALIKE_WORLD_SIZE"])
def test_half_of_a_launch_is_an_error(name: str) -> None:
    incomplete = environment(1)
    del incomplete[name]
    with pytest.raises(OrcalikeError, match=f"ORCALIKE_RANK is set, but {name} is not"):
        find_rank_environment(incomplete)
    assert find_rank_environment({}) is None


def test_detection_times() -> None:
    assert find_detection({}) == (None, 60_000_000_000)
    assert detection_at("") == detection_at("unix:/x") == 500_000_000
    for address in "tcp:10.0.0.5:7", "tcp:[fd00::5]:7", "tcp:127.0.0.1:7":
        assert detection_at(address) == 2_000_000_000
    given = {"ORCALIKE_DETECTION": "0.1", "ORCALIKE_SLOW_TIMEOUT": "5"}
    assert find_detection(given) == (100_000_000, 5_000_000_000)


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "100000"])
def test_what_is_no_detection_time(text: str) -> None:
    with pytest.raises(
        ValueError, match=f"ORCALIKE_DETECTION={text}: a duration such as 500ms, from 0.01 to 86400"
    ):
        find_detection({"ORCALIKE_DETECTION": text})


RUN = {
    "size": 3,
    "address": "unix:/run/witness",
    "sequencer": "witness",
    "directory": "/run",
    "seeds": ("unix:/run/witness", *ADDRESSES),
    "formed": frozenset({"default", "a, %group"}),
    "job": "01ab",
    "launcher": 77,
    "seed": 5,
    "restarts": 2,
    "key_fd": 9,
}


@pytest.mark.parametrize("listen_fd", [None, 7])
def test_what_the_launcher_writes_is_what_a_rank_reads(listen_fd: int | None) -> None:
    given = RankEnvironment(
        **RUN,  # type: ignore[arg-type]
        rank=1,
        listen=ADDRESSES[1],
        listen_fd=listen_fd,
        unanimous=listen_fd is None,
    )
    environ = given.to_environ()
    assert RankEnvironment.from_environ(environ) == given
    assert find_rank_environment(environ) == given
    assert (environ["RANK"], environ["WORLD_SIZE"], environ["LOCAL_RANK"]) == ("1", "3", "1")


def test_the_witness_has_no_rank() -> None:
    environ = RunEnvironment(**RUN).to_environ()  # type: ignore[arg-type]
    assert not environ.keys() & {"ORCALIKE_RANK", "ORCALIKE_LISTEN", "RANK"}
    assert find_rank_environment(environ) is None
    assert find_formed(environ) == {"default", "a, %group"}
    assert find_seeds(environ) == RUN["seeds"]


def test_every_variable_of_a_launched_process_is_named_in_one_module() -> None:
    """What other modules name is one of these, or one that a user may set (docs/command-line.md)."""
    named = set(RankEnvironment(**RUN, rank=0, listen="", listen_fd=1).to_environ())  # type: ignore[arg-type]
    manual = (ROOT / "docs" / "command-line.md").read_text()
    known = named | OF_ONE_PROCESS | set(re.findall(r"`(ORCALIKE_\w+)", manual))
    used = {
        (path.relative_to(ROOT).as_posix(), name)
        for folder in ("orcalike", "runtime", "transport")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\"(ORCALIKE_\w+)\"", path.read_text())
    }
    assert {name for _, name in used} >= {"ORCALIKE_RANK", "ORCALIKE_KEY_FD"}
    assert {each for each in used if each[1] not in known} == set()


LINES = [
    Ended(3),
    Died(2**64 - 1),
    Gone(2**64 - 1),
    Cut(frozenset({0, 2, None})),
    Heal(),
    Joining("a group, %", 5),
    Leaving("a group, %"),
    Left("a group, %"),
    Unblocked("default"),
    Sequencer("default"),
    SharedOrder("default"),
    Blocked("default", ((5, 0), (6, None)), "2 of 5 members are no majority"),
    Blocked("default", (), ""),
    Lacks("default", 3, "with resilience 2, 3 members must be there"),
    Hosts("a group, %", 128),
]


@pytest.mark.parametrize("said", LINES, ids=lambda said: type(said).__name__)
def test_a_line_of_the_control_channel_is_read_as_it_was_written(
    said: ToProcess | ToLauncher,
) -> None:
    line = encode(said)
    assert "\n" not in line
    both = parse_for_process(line), parse_for_launcher(line)
    assert [each for each in both if each is not None] == [said]


def test_a_line_of_what_a_rank_has_started_is_no_rank_s() -> None:
    line = encode(IsMember(2**64 - 1))
    assert parse_of_started(line) == IsMember(2**64 - 1)
    assert parse_for_process(line) is None
    assert parse_for_launcher(line) is None


@pytest.mark.parametrize(
    "line",
    ["", "member", "member x", "member -1", f"member {2**64}", "member 1 2", "member ²", "left g"],
)
def test_any_other_line_of_it_is_none(line: str) -> None:
    assert parse_of_started(line) is None


@pytest.mark.parametrize(
    "line",
    [
        *(
            "",
            "ended",
            "ended x",
            "died -1",
            "gone x",
            "cut",
            "cut 1,x",
            "heal 1",
            "nonsense",
            "joining g x",
        ),
        *("blocked g 5:x", "blocked g 5 rule", "lacks g x rule", "unblocked", "unblocked a b"),
    ],
)
def test_any_other_line_is_none(line: str) -> None:
    assert parse_for_process(line) is None
    assert parse_for_launcher(line) is None
