"""Sabotage: details of the core that can be broken on purpose, to see that a checker notices.

`StackConfig.sabotage` names the switches that are thrown; the core asks for each at the place that
it breaks. A check that nothing can fail checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from orcalike.testing.scenario import Scenario
from orcalike.testing.shrink import violation_of
from orcalike.testing.swarm import draw


@dataclass(frozen=True, slots=True)
class Switch:
    """A detail that can be broken."""

    name: str
    breaks: str
    """What is left out when it is thrown."""
    ids: frozenset[str]
    """The invariants one of which must then be found broken."""


SWITCHES: dict[str, Switch] = {}
"""All switches, by name."""


def switch(name: str, breaks: str, *ids: str) -> None:
    """Make a switch known."""
    SWITCHES[name] = Switch(name, breaks, frozenset(ids))


LOSS = ("I1", "I2", "I3", "I6", "I8", "I9", "I10", "I11", "I16", "I17")
"""What is found where a packet that was delivered gets lost, or another gets its place."""

switch("one-holder-less", "a packet is accepted with r holders, not r + 1", *LOSS)
switch("read-tentative", "the sequencer delivers what is tentative (H3)", *LOSS)
switch("joiners-count", "a member counts as a holder before its state is complete (H9)", *LOSS)
switch("number-twice", "a packet that is sent again is numbered again (H5)", "I3", "I6", "E1")
switch("ack-after-promise", "a promiser acknowledges on to the old sequencer (H12 a)", *LOSS)
switch("accept-without-packets", "a view is accepted by number, without its packets (H12 b)", *LOSS)
switch("deliver-on-decision", "what is tentative is delivered with the view (H12 c)", *LOSS)
switch("cut-at-mine", "the cut is the leader's own, not the longest reported", *LOSS)
switch("return-nothing", "promisers do not send what the leader lacks", "I28", *LOSS)
switch("propose-without-packets", "members do not get what they lack of the cut", "I28", *LOSS)
switch("forget-accepted", "a new leader forgets what may have been decided", "I13", "I15", *LOSS)
switch("accept-any-ballot", "a member accepts under a ballot older than its promise", "I15", *LOSS)
switch("suspected-is-dead", "a suspicion counts as a certain death (H13)", "I15", *LOSS)


def caught(name: str, seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first seed that shows the switch thrown, and by which invariant; None where none does.

    The same scenario without sabotage must pass: else what was found is something else.
    """
    return caught_in(name, seeds, draw)


def caught_in(
    name: str, seeds: Iterable[int], scenario_of: Callable[[int], Scenario]
) -> tuple[int, str] | None:
    """As `caught`, with scenarios of the caller's own."""
    ids = SWITCHES[name].ids
    for seed in seeds:
        scenario = scenario_of(seed)
        violation = violation_of(replace(scenario, sabotage=(name,)))
        if violation is not None and violation.id in ids and violation_of(scenario) is None:
            return seed, violation.id
    return None
