"""Groups of whole runtimes in the simulator, from a seed: shared objects of every kind, members that
join and leave at any point, readers in other threads, pop-up threads, classes that come late.

`python -m tests.protocol.sim_runtime SEED...` runs seeds and prints what became of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import orcalike as orca
from orcalike.errors import GroupClosed, NotSerializable, OrcalikeError
from orcalike.runtime import classes
from orcalike.runtime.assemble import make_runtime
from orcalike.runtime.call import waiting_calls
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.replica import DROPPED, FAULTY, LOCKED, QUEUED, UNDECLARED, Replica
from orcalike.runtime.task import go_on
from orcalike.session.group_calls import Share
from orcalike.simulator.checkers.facts import Violation
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.sim import World
from orcalike.transport.drivers.simdriver import SimDriver
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from tests.lib.command_lines import ask_seeds
from tests.lib.shared_classes import Counter, Journal
from tests.protocol.model import Cast, Model, outcome_of
from tests.protocol.sim_programs import ACTIONS, Late
from tests.protocol.sim_scene import MS, Scene, Spy

LIMIT = 60_000 * MS


class Participant:
    """One process: a runtime on a simulated stack, and a program that uses it. It is its `Events`."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        scene, rng = simulation.scene, simulation.rng
        self.simulation, self.number = simulation, number
        witness = scene.witness and number == 0
        me = Member(f"sim:{number}", rng.getrandbits(64), witness=witness)
        config = StackConfig("group", epoch=10**18)
        self.stack = Stack(parse_stack(scene.stack, Runtime), config, me, rng.getrandbits(64))
        self.node = simulation.world.add(str(number), self.stack)
        self.runtime = make_runtime(
            self.stack,
            me.incarnation,
            self,
            time=lambda: simulation.world.now,
            chained=True,
        )
        self.runtime.sender.driver = SimDriver(self.node)
        self.runtime.donor.piece_max = scene.piece
        self.runtime.donor.kept_max = scene.kept
        self.runtime.start_thread = self._start_thread
        spy = Spy(self.stack, self._see)
        self.stack.above = spy
        self.runtime.stand_on(spy)
        self.ignorant = number in scene.late
        self.runtime.table.lookup = self._lookup
        self.position = -1
        """Of the next event in the canonical history; -1 before the first."""
        self.view: View | None = None
        self.asked = self.leaves = False
        self.shares_at_once = True
        self.gone: str | None = None
        self.objects: dict[str, orca.Invocation[Any]] = {}
        self.invocations: list[orca.Invocation[Any]] = []
        self.faults: list[str] = []

    @property
    def incarnation(self) -> int:
        return self.stack.me.incarnation

    @property
    def inside(self) -> bool:
        """In the group with complete state, and staying."""
        return self.view is not None and self.gone is None and not self.leaves

    def _lookup(self, name: str) -> classes.ClassInfo | None:
        return None if self.ignorant and name.endswith(":Late") else classes.lookup(name)

    def _start_thread(self, function: Callable[[], None]) -> None:
        """A pop-up thread runs at some later time."""
        later = self.simulation.rng.randint(0, self.simulation.scene.span // 4)
        self.simulation.after(later, function)

    def _see(self, event: Cast | View) -> None:
        """I1, I2, I3, I11, I12, I14: it sees the one history, without a gap, from its view on."""
        canon = self.simulation.canon
        if self.position < 0:
            assert isinstance(event, View)
            self.position = canon.index(event) if event in canon else len(canon)
        if self.position == len(canon):
            canon.append(event)
        if canon[self.position] != event:
            raise Violation("I2", f"{self.number} sees {event}, not {canon[self.position]}")
        self.position += 1

    # What the runtime tells.

    def viewed(self, view: View) -> None:
        if self.view is None and self.shares_at_once and not self.stack.me.witness:
            self.simulation.after(0, self.begin)
        self.view = view
        self.simulation.compare(self, view)

    def exited(self, why: str) -> None:
        self.gone = why
        self.runtime.fail_all(GroupClosed("left"))

    def suspected(self, member: Member, why: str) -> None:
        self.faults.append(f"lost {member}: {why}")

    def blocked_by(self, missing: tuple[Member, ...], rule: str) -> None:
        self.faults.append(f"blocked: {rule}")

    def reset_failed(self, why: str) -> None:
        self.faults.append(f"not reset: {why}")

    def join_failed(self, why: str) -> None:
        self.asked = False

    def join_denied(self, why: str) -> None:
        self.faults.append(f"denied: {why}")

    def system_error(self, why: str) -> None:
        self.faults.append(why)

    def ended(self, ranks: set[int]) -> None:
        self.faults.append(f"ended {ranks}")

    def failed(self, error: Exception) -> None:
        self.faults.append(repr(error))

    def why_stuck(self) -> str | None:
        return None

    def lacks_members(self, needed: int) -> None:
        self.faults.append(f"waits for {needed} members")

    # Its program.

    def begin(self) -> None:
        """Share what all use."""
        share = Share(self.runtime).nowait
        self.keep("counter", share(Counter, "counter", 3))
        self.keep("alice", share(Counter, "alice", 10))
        self.keep("bob", share(Counter, "bob", 0))
        self.keep("journal", share(Journal, "journal", 2))
        if not self.ignorant:
            self.keep("late", share(Late, "late", 5))

    def learn(self) -> None:
        """Its program imports the module with `Late` in it."""
        if self.ignorant:
            self.ignorant = False
            info = classes.lookup_class(Late)
            assert info is not None
            self.node.call(lambda now: self.runtime.table.declared(info))

    def keep(self, name: str, invocation: orca.Invocation[Any]) -> None:
        self.objects[name] = invocation
        self.invocations.append(invocation)

    def object_of(self, name: str) -> Any:
        """The object of that name, or None if this member has not got it."""
        invocation = self.objects.get(name)
        if invocation is None or not invocation.done() or invocation.exception() is not None:
            return None
        return invocation.result()

    def act(self) -> None:
        """Invoke something at random."""
        if not self.inside or not self.runtime.sender.may_invoke() or self.stack.me.witness:
            return
        rng = self.simulation.rng
        try:
            invocation = rng.choice(ACTIONS)(self, rng)
        except OrcalikeError as error:
            if type(error).__name__ != "ObjectDropped":
                raise
        else:
            if isinstance(invocation, orca.Invocation):
                self.invocations.append(invocation)

    def hold(self) -> None:
        """A reader in another thread holds an object's mutex for a while."""
        rng = self.simulation.rng
        free = [r for r in self.runtime.replicas if r is not None and not r.has(LOCKED | DROPPED)]
        if free and self.gone is None:
            replica = rng.choice(free)
            replica.hold(0)
            self.simulation.after(
                rng.randint(0, self.simulation.scene.span // 2), partial(go_on, replica)
            )

    def leave(self) -> None:
        """Leave, with whatever is under way, when the one that stays is there."""
        if not self.asked or self.leaves:
            return
        if self.simulation.anchor.inside and self.inside:
            self.leaves = True
            self.node.call(self.stack.leave)
        else:
            self.simulation.after(MS, self.leave)


class Simulation:
    """A group, what happens to it, and what must hold."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.world = World(scene.seed, scene.delays)
        self.rng = Random(f"{scene.seed} events")
        self.canon: list[Cast | View] = []
        self.states: dict[tuple[int, int], tuple[object, int]] = {}
        """What an object was at a view, and which member says so."""
        self.chains: dict[int, bytes | None] = {}
        self.participants = [Participant(self, i) for i in range(scene.size)]
        self.anchor = self.participants[1 if scene.witness else 0]

    def after(self, ns: int, event: Callable[[], None]) -> None:
        """Have something happen later."""
        self.world.at(self.world.now + ns, event)

    def run(self) -> str:
        """Let it all happen; returns a digest over it. Raises Violation."""
        try:
            self._schedule()
            self.world.run(lambda: self.world.now > LIMIT)
            return self._finish()
        except Exception as error:
            error.add_note(f"in {self.scene}; {self.world.now} ns, event {self.world.events}")
            raise
        finally:
            for participant in self.participants:
                participant.runtime.let_go(GroupClosed("left"))
                participant.objects.clear()  # their results are the shared objects
                participant.invocations.clear()

    def _schedule(self) -> None:
        scene, rng = self.scene, self.rng
        first, *others = self.participants
        self._join(first, "")
        for participant in others:
            self._at_some_time(partial(self._try_to_join, participant), scene.span)
        for _ in range(scene.acts):
            self._at_some_time(rng.choice(self.participants).act, 3 * scene.span)
        for _ in range(scene.readers):
            self._at_some_time(rng.choice(self.participants).hold, 3 * scene.span)
        for i in sorted(scene.leavers):
            self._at_some_time(self.participants[i].leave, 3 * scene.span)
        for i in sorted(scene.late):
            self._at_some_time(self.participants[i].learn, 4 * scene.span)

    def _at_some_time(self, event: Callable[[], None], end: int) -> None:
        self.world.at(self.rng.randint(0, end), event)

    def _join(self, participant: Participant, address: str) -> None:
        participant.asked = True
        participant.node.call(lambda now: participant.stack.join(address, now))

    def _try_to_join(self, participant: Participant) -> None:
        if participant.view is not None or participant.leaves:
            return
        seeds = [other for other in self.participants if other.inside]
        if seeds and not participant.asked:
            self._join(participant, self.rng.choice(seeds).node.address)
        self.after(3_000 * MS if participant.asked else MS, partial(self._retry, participant))

    def _retry(self, participant: Participant) -> None:
        """The member that it asked may have left."""
        if participant.view is None and self.world.now < LIMIT // 2:
            layer = participant.stack.focus("MBRSHIP")
            assert layer is not None
            if layer.dump()["view"] is None:
                participant.asked = False
                self._try_to_join(participant)

    # What must hold.

    def compare(self, participant: Participant, view: View) -> None:
        """I17, I18, I19: at a view all have the same digest, states, and waiting invocations."""
        if participant.stack.me.witness:
            return
        chain = participant.runtime.chain
        if self.chains.setdefault(view.number, chain) != chain:
            raise Violation("I1", f"{participant.number} has another chain at view {view.number}")
        for replica in participant.runtime.replicas:
            if replica is None or replica.has(LOCKED | QUEUED | DROPPED | UNDECLARED | FAULTY):
                continue
            waiting = [(call.source, call.ticket, call.seqno) for call in waiting_calls(replica)]
            try:
                seen = (participant.runtime.digest_of(replica), waiting)
            except NotSerializable:
                continue
            first, by = self.states.setdefault(
                (view.number, replica.number), (seen, participant.number)
            )
            if first != seen:
                raise Violation(
                    "I18",
                    f"{replica} at view {view.number}: "
                    f"{participant.number} has {seen}, {by} has {first}",
                )

    def _check_history(self) -> None:
        """I3, I5, I6: all that each member sent is there once, in its order; time never goes back."""
        casts = [event for event in self.canon if isinstance(event, Cast)]
        for participant in self.participants:
            tickets = [c.ticket for c in casts if c.source == participant.incarnation]
            if tickets != list(range(len(tickets))):
                raise Violation("I6", f"{participant.number} sent {tickets}")
            if participant.inside and not participant.runtime.sender.settled():
                raise Violation("I3", f"{participant.number} waits for what it sent")
        stamps = [cast.stamp for cast in casts]
        if stamps != sorted(stamps):
            raise Violation("I1", f"the moments go back: {stamps}")

    def _finish(self) -> str:
        self._check_history()
        model = Model()
        model.replay(self.canon)
        live = [participant for participant in self.participants if participant.inside]
        digest = hashlib.blake2b(self.world.trace.encode(), digest_size=16)
        for participant in self.participants:
            if participant.faults:
                raise Violation("E1", f"{participant.number}: {participant.faults}")
            if participant.asked and not participant.leaves and not participant.inside:
                raise Violation("I28", f"{participant.number} never joined")
            if participant.stack.me.witness:
                continue
            self._check_outcomes(participant, model)
            if participant in live:
                self._check_states(participant, model)
                digest.update(participant.runtime.chain or b"")
        return digest.hexdigest()

    def _check_outcomes(self, participant: Participant, model: Model) -> None:
        """I4, I6, I20, I25: each invocation ends as the history says, or waits as it says."""
        for invocation in participant.invocations:
            key = (participant.incarnation, invocation.ticket)
            expected = model.outcomes.get(key)
            if not invocation.done():
                if expected is not None or participant.gone is not None:
                    raise Violation("I20", f"{participant.number}: {invocation} is due: {expected}")
                continue
            error = invocation.exception()
            if isinstance(error, GroupClosed) and participant.gone is not None:
                continue
            found = outcome_of(None if error else invocation.result(), error)
            if expected is None and participant.gone is not None and found == ("withdrawn", None):
                continue  # taken back before it left; what stands in its place never left either
            if expected is None or not self._same(participant, model, found, expected):
                raise Violation(
                    "I20", f"{participant.number}: {invocation} is {found}, not {expected}"
                )

    def _same(
        self, participant: Participant, model: Model, found: object, expected: object
    ) -> bool:
        """Whether two values are, where objects stand for their numbers."""
        codec = participant.runtime.sender.codec
        return codec.encode_canonical(found) == model.codec.encode_canonical(expected)

    def _check_states(self, participant: Participant, model: Model) -> None:
        """I18: each replica is what the history makes of it."""
        replicas: list[Replica | None] = participant.runtime.replicas
        if len(replicas) != len(model.things):
            raise Violation("I18", f"{participant.number} has {replicas}, not {model.things}")
        for replica, thing in zip(replicas, model.things, strict=True):
            if (replica is None) != (thing is None or thing.dropped):
                raise Violation("I18", f"{participant.number}: {replica}, not {thing}")
            if replica is None or thing is None:
                continue
            if replica.has(LOCKED | QUEUED):
                raise Violation("I19", f"{participant.number}: {replica} is locked for ever")
            waiting = [(call.source, call.ticket) for call in waiting_calls(replica)]
            if waiting != [step.key for step in model.waiting if thing in step.things]:
                raise Violation("I19", f"{participant.number}: {waiting} wait at {replica}")
            if participant.runtime.digest_of(replica) != model.state_of(thing):
                found, expected = vars(replica.object), vars(thing.plain)
                raise Violation(
                    "I18", f"{participant.number}: {replica} is {found}, not {expected}"
                )


def run(seed: int) -> str:
    """Run the simulator with `seed`; returns a digest over all that happened. Raises Violation."""
    return Simulation(Scene.draw(seed)).run()


if __name__ == "__main__":
    for seed in ask_seeds("tests.protocol.sim_runtime", __doc__):
        simulation = Simulation(Scene.draw(seed))
        print(simulation.scene)
        print(f"  {simulation.run()}, {len(simulation.canon)} in the history")
