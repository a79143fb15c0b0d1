"""Sabotage: details of the core that can be broken on purpose, to see that a checker notices.

`StackConfig.sabotage` names the switches that are thrown; the core asks for each at the place that
it breaks. A check that nothing can fail checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import Scenario
from orcalike.simulator.shrink import violation_of


@dataclass(frozen=True, slots=True)
class Switch:
    """A detail that can be broken."""

    name: str
    breaks: str
    """What is left out when it is thrown."""
    ids: frozenset[str]
    """The invariants one of which must then be found broken."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have shown it, as long as seeds stand for what they stood for then."""
        return SEEDS.get(self.name, ())


SWITCHES: dict[str, Switch] = {}
"""All switches, by name."""


def switch(name: str, breaks: str, *ids: str) -> None:
    """Make a switch known."""
    SWITCHES[name] = Switch(name, breaks, frozenset(ids))


LOSS = ("I1", "I2", "I3", "I6", "I8", "I9", "I10", "I11", "I14", "I16", "I17")
"""What is found if a packet that was delivered gets lost, or another gets its place."""

switch("one-holder-less", "a packet is accepted with r holders, not r + 1", *LOSS)
switch("read-tentative", "the sequencer delivers what is tentative (H3)", *LOSS)
switch("joiners-count", "a member counts as a holder before its state is complete (H9)", *LOSS)
switch("ack-after-promise", "a promiser acknowledges on to the old sequencer (H12 a)", *LOSS)
switch(
    "accept-without-packets",
    "a view is accepted by number; packets come later (H12 b)",
    "I28",
    *LOSS,
)
switch("deliver-on-decision", "what is tentative is delivered with the view (H12 c)", *LOSS)
switch("cut-at-mine", "the cut is the leader's own, not the longest reported", *LOSS)
switch("return-nothing", "promisers do not send what the leader lacks", "I28", *LOSS)
switch("propose-without-packets", "members do not get what they lack of the cut", "I28", *LOSS)
switch("forget-accepted", "a new leader forgets what may have been decided", "I13", "I15", *LOSS)
switch("accept-any-ballot", "a member accepts under a ballot older than its promise", "I15", *LOSS)
switch("suspected-is-dead", "a suspicion counts as a certain death (H13)", "I15", *LOSS)
switch("dead-do-not-count", "the dead are not counted in n (H1)", "I15", *LOSS)
switch("half-without-oldest", "any half of a view may go on (H1 a)", "I15", *LOSS)
switch("no-majority", "any part of a view may go on (H1 a)", "I15", *LOSS)
switch("forget-degree", "fewer than n - R members may go on (H1 b)", "I15", *LOSS)
switch("no-state-needed", "members without the state may go on (H1 c)", "I15", "I28", *LOSS)
switch("always-sure", "deaths excuse that no survivor vouches for (H1, H13)", "I15", *LOSS)
switch(
    "decide-within-lease", "a coordinator decides before its leases are over (H13)", "I15", *LOSS
)
switch("tentative-outlives-state", "what is tentative outlives the state that it was for", *LOSS)
switch(
    "forget-promise",
    "a member promises a ballot older than its promise",
    "I13",
    "I15",
    "I28",
    *LOSS,
)
switch("frozen-for-good", "promisers wait for their leader, dead or not (H12 d)", "I28")
switch("no-expel-notice", "no member is told that it was expelled (I16)", "I28")
switch("suspicion-never-ends", "a member that was silent once stays suspected", "I28", *LOSS)
switch("silence-unnoticed", "a silent member is not suspected", "I28")
switch("stale-view-accepted", "casts of an older view are taken (I16)", "E0", "E1", "I12", *LOSS)
switch("install-any-number", "any view is installed, not the next alone", "E0", "I13", "I15", *LOSS)
switch(
    "gap-not-closed",
    "a link that was made again counts as one that never broke",
    "E1",
    "I28",
    *LOSS,
)
switch(
    "forget-counters",
    "the counters of what is ordered do not outlive the view (H5)",
    "E1",
    "I28",
    *LOSS,
)
switch("no-resend", "what is not ordered is not sent again (H63)", "I4", "I28", *LOSS)
switch("tentative-not-carried", "joiners do not get what is tentative", "I28", *LOSS)
switch("keep-beyond-cut", "packets beyond the cut keep their numbers", "E1", *LOSS)
switch("deliver-own-at-once", "a sender delivers its own packet before others hold it", *LOSS)
switch(
    "trim-too-early", "packets are forgotten before all hold them (H63)", "E0", "E1", "I28", *LOSS
)
switch("joiner-without-state", "a joiner delivers before it has its state (I17)", "I28", *LOSS)
switch("snapshot-late", "state is given as it is now, not as at the view (I17)", "E0", *LOSS)
switch(
    "forget-buffered",
    "a joiner forgets what came while its state was under way",
    "I4",
    "I28",
    *LOSS,
)
switch("donor-not-replaced", "a joiner that waits for the state of a dead member waits on", "I28")


SEEDS: dict[str, tuple[int, ...]] = {
    "no-state-needed": (145,),
    "one-holder-less": (0, 5),
    "read-tentative": (0, 4),
    "deliver-on-decision": (4,),
    "cut-at-mine": (0, 8),
    "return-nothing": (8,),
    "suspected-is-dead": (13, 18),
    "half-without-oldest": (18,),
    "no-majority": (9, 13),
    "frozen-for-good": (18, 35),
    "no-expel-notice": (32, 36),
    "silence-unnoticed": (0, 17),
    "forget-counters": (3, 4),
    "no-resend": (0,),
    "deliver-own-at-once": (4, 5),
    "trim-too-early": (8,),
    "joiner-without-state": (0, 1),
    "snapshot-late": (3, 8),
    "forget-buffered": (3, 8),
}
"""What makes looking short: seeds by switch."""


def caught(name: str, seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first seed that shows the switch thrown, and by which invariant; None if none does.

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
