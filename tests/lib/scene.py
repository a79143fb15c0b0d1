"""Histories made up by hand: of a group that does everything right, for tests to spoil."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from orcalike.history_check.models import Refused, State
from orcalike.history_check.records import History, MessageId, Record
from tests.campaign.models import model_of

CLASSES = {"register": "Register", "counter": "Counter", "queue": "Queue", "bank": "Bank"}


def hashed(*parts: object) -> str:
    """What stands for anything."""
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


class Scene:
    """A group whose members all see the same, and whose objects do what the models say."""

    def __init__(self) -> None:
        self.histories: dict[str, History] = {}
        self.inside: list[str] = []
        self.number = 0
        self.lineage = 1
        self.gseq = 0
        self.chain = ""
        self.now = 1000
        self.states: dict[str, State] = {}
        self.waiting: list[tuple[MessageId, str, str, tuple[Any, ...]]] = []
        self.tickets: dict[str, int] = {}

    def all(self) -> list[History]:
        """What the checkers are given."""
        return list(self.histories.values())

    def tell(self, name: str, kind: str, **fields: object) -> Record:
        """One record more, at a member."""
        self.now += 10
        record = {"kind": kind, "t": self.now, **fields}
        self.histories[name].records.append(record)
        return record

    def install(self, *names: str, lineage: int | None = None) -> None:
        """The next view; members that were not in the one before join."""
        self.number += 1
        self.lineage = lineage or self.lineage
        old = set(self.inside)
        self.inside = list(names)
        for name in names:
            incarnation = f"{ord(name):016x}"
            self.histories.setdefault(name, History(incarnation, ord(name) - ord("a")))
            self.tickets.setdefault(name, 0)
        for name in names:
            self.tell(
                name,
                "view",
                identity=[self.lineage, self.number, 0],
                members=[[self.histories[n].incarnation, ord(n) - ord("a"), False] for n in names],
                sequencer=self.histories[names[0]].incarnation,
                primary=True,
                gseq=self.gseq if name in old and self.gseq else None,
            )

    def create(self, sender: str, *objects: str) -> None:
        """Objects, by the names that tell their models."""
        for name in objects:
            known = model_of(name)
            assert known is not None
            self.states[name] = known[1]
            cls = CLASSES[name.split()[0]]
            message = self.invoke(sender, "", "create", (name,))
            self.deliver(message, "", "create", (name,))
            self.run(message, name, f"{cls}.__init__", ())

    def write(self, sender: str, name: str, operation: str, *args: Any) -> MessageId:
        """One write, delivered everywhere; it runs at once, or waits for its guard."""
        title = f"{CLASSES[name.split()[0]]}.{operation}"
        message = self.invoke(sender, name, title, args)
        self.deliver(message, name, title, args)
        self.waiting.append((message, name, title, args))
        while self._try_one():
            pass
        return message

    def invoke(self, sender: str, name: str, title: str, args: tuple[Any, ...]) -> MessageId:
        """A member invokes something."""
        ticket = self.tickets[sender]
        self.tickets[sender] += 1
        self.tell(
            sender,
            "invoke",
            ticket=ticket,
            object=name,
            operation=title,
            args=list(args),
            hash=hashed(args),
        )
        return self.histories[sender].incarnation, ticket

    def deliver(
        self, message: MessageId, name: str, title: str, args: tuple[Any, ...], at: str = ""
    ) -> None:
        """It takes the next place in the order, at some members or at all."""
        self.gseq += 1
        self.chain = hashed(self.chain, self.gseq, message)
        for member in at or self.inside:
            self.tell(
                member,
                "deliver",
                lineage=self.lineage,
                view=self.number,
                gseq=self.gseq,
                index=0,
                sender=message[0],
                ticket=message[1],
                object=name,
                operation=title,
                args=hashed(args),
                chain=self.chain,
            )

    def _try_one(self) -> bool:
        for call in self.waiting:
            message, name, title, args = call
            known = model_of(name)
            assert known is not None
            operation = title.partition(".")[2]
            if known[0].ready(self.states[name], operation, args):
                self.waiting.remove(call)
                self.states[name], value = known[0].step(self.states[name], operation, args)
                self.run(message, name, title, args, value)
                return True
        return False

    def run(
        self,
        message: MessageId,
        name: str,
        title: str,
        args: tuple[Any, ...],
        value: object = None,
        at: str = "",
    ) -> None:
        """An operation runs at some members or at all; its caller gets the result."""
        refused = isinstance(value, Refused)
        returned = {"error": value.error} if isinstance(value, Refused) else {"value": value}
        outcome = returned if refused else {"result": hashed(value)}
        for member in at or self.inside:
            self.tell(
                member,
                "apply",
                sender=message[0],
                ticket=message[1],
                objects=[name],
                operation=title,
                **outcome,
            )
            if self.histories[member].incarnation == message[0]:
                self.tell(member, "ok", ticket=message[1], **returned)

    def read(self, member: str, name: str, operation: str) -> Record:
        """A local read."""
        known = model_of(name)
        assert known is not None
        value = known[0].step(self.states[name], operation, ())[1]
        title = f"{CLASSES[name.split()[0]]}.{operation}"
        return self.tell(
            member, "read", object=name, operation=title, args=[], value=value, gseq=self.gseq
        )

    def look(self, member: str) -> None:
        """The digests of all objects' states."""
        for name, state in self.states.items():
            self.tell(member, "state", object=name, digest=hashed(state))

    def leave(self, member: str) -> None:
        """It leaves; the others get a view without it."""
        self.look(member)
        self.tell(member, "exit", why="left")
        rest = [name for name in self.inside if name != member]
        if rest:
            self.install(*rest)


def good_scene() -> Scene:
    """Three members; one crashes, one joins; all kinds of operations; all leave in the end."""
    scene = Scene()
    scene.install("a", "b", "c")
    scene.create("a", "register 0", "counter 0", "queue 0", "bank 0 2 10")
    scene.write("b", "queue 0", "take")  # waits
    for round_number, name in enumerate("abcabc"):
        scene.write(name, "register 0", "swap", f"{name}{round_number}")
        scene.write(name, "counter 0", "add", 2)
        scene.read("b", "register 0", "get")
        scene.read("c", "counter 0", "get")
    scene.write("c", "bank 0 2 10", "move", 0, 1, 50)  # is refused
    scene.write("c", "queue 0", "put", "x")
    scene.install("a", "b")  # c is dead
    scene.write("b", "register 0", "swap", "b6")
    scene.install("a", "b", "d")
    for name in "abd":
        scene.write(name, "register 0", "swap", f"{name}7")
        scene.write(name, "counter 0", "add", 1)
        scene.write(name, "bank 0 2 10", "move", 0, 1, 2)
        scene.read("d", "bank 0 2 10", "total")
        scene.read(name, "register 0", "get")
    for name in "dba":
        scene.leave(name)
    return scene
