"""Which degree each message has, beside a list that says it for each (H2)."""

from __future__ import annotations

import random

import pytest

from orcalike.transport.pack.degrees import DegreesOfMessages


@pytest.mark.parametrize("seed", range(20))
def test_it_says_what_a_list_of_all_would(seed: int) -> None:
    """Runs begin, messages come back, and some are taken back, whether or not there is room for two more runs."""
    rng = random.Random(seed)
    degrees, known, returned, run = DegreesOfMessages(), [0], 0, 0
    for ticket in range(1, 400):
        degree = rng.choice([0, 1, 2, 3])
        if degree != run:
            degrees.begin(ticket, degree, returned)
            run = degree
        known.append(degree)
        if rng.random() < 0.3:
            returned = rng.randint(returned, ticket)
        if rng.random() < 0.3:
            taken_back = rng.randint(returned, ticket)
            degrees.clear(taken_back)
            known[taken_back] = 0
        first = rng.randint(returned, ticket)
        count = rng.randint(1, ticket + 1 - first)
        assert [degrees.of(each) for each in range(returned, ticket + 1)] == known[returned:]
        assert degrees.largest(first, count) == max(known[first : first + count])
