"""Slurm's lists of hosts."""

from __future__ import annotations

import pytest

from orcalike.environments.hostlist import expand, expand_counts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("login", "login"),
        ("a,b", "a b"),
        ("n[1-3,07],login", "n1 n2 n3 n07 login"),
        ("n[08-11]", "n08 n09 n10 n11"),
        ("rack[1-2]n[1-2]", "rack1n1 rack1n2 rack2n1 rack2n2"),
        ("n[5]x.example.org,m", "n5x.example.org m"),
    ],
)
def test_lists_stand_for_hosts(text: str, hosts: str) -> None:
    assert expand(text) == hosts.split()


@pytest.mark.parametrize(
    "text", ["", "n[", "n]", "n[1-", "n[a-b]", "n[]", "n[1--2]", "a,,b", "n[[1]]", "n[1-2]]"]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        expand(text)


def test_only_as_many_are_made_as_are_asked_for() -> None:
    assert expand("r[1-999999999]n[1-999999999]", 3) == ["r1n1", "r1n2", "r1n3"]


@pytest.mark.parametrize(
    ("text", "counts"), [("4", [4]), ("2(x3),1", [2, 2, 2, 1]), ("3,1(x2)", [3, 1, 1])]
)
def test_lists_of_counts(text: str, counts: list[int]) -> None:
    assert expand_counts(text) == counts


@pytest.mark.parametrize("text", ["", "x", "2(x", "2(3)", "2,,1", "-1", "2(x)", "٣"])
def test_what_is_no_list_of_counts_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of counts"):
        expand_counts(text)


def test_no_more_counts_are_made_than_are_asked_for() -> None:
    assert expand_counts("2(x999999),3(x999999)", 3) == [2, 2, 2]
