"""Histories: what one member saw, as lines of JSON (the format: docs/history.md).

`ORCALIKE_HISTORY` names a folder, and each incarnation of a member has a file there. What others
may observe is on file before they can: an invocation before its packet may leave, an outcome before
the program has it, and what was delivered before the input ends. So a process that is killed loses
nothing from its file that was seen elsewhere.

While a history is kept no replica is ever free: each operation runs as a task, and each read too, as
`ORCALIKE_CHECK=strict` has it. Without one, nothing here is called.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from orcalike.runtime.call import Call
from orcalike.runtime.codes import Code
from orcalike.runtime.errors import (
    InvocationCancelled,
    InvocationTimeout,
    NotSerializable,
    ObjectDropped,
    TooManyWaiting,
)
from orcalike.runtime.invocation import Invocation, name_of
from orcalike.runtime.marshal import Codec
from orcalike.runtime.replica import DROPPED, LOCKED, QUEUED, UNDECLARED, Replica
from orcalike.transport.drivers.driver import clock
from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import Member, View
from orcalike.transport.wire.digest import blake2b
from orcalike.transport.wording import repr_of, text_of

NEVER_RAN = (InvocationCancelled, ObjectDropped, ProtocolError, TooManyWaiting)
"""How invocations end that did not run and never will, beside a withdrawal for the time."""


QUOTED_MAX = 200
"""Characters of a group's name in that of a file, which has 255 in all."""


def quoted_group(group: str) -> str:
    """A group's name as the names of its files begin: quoted as in a URL; of a long one the beginning, and a digest."""
    quoted = quote(group, safe="")
    if len(quoted) <= QUOTED_MAX:
        return quoted
    digest = blake2b(group.encode(), digest_size=8).hexdigest()
    return f"{quoted[: QUOTED_MAX - len(digest) - 1]}~{digest}"


class Recorder:
    """Writes the history of one incarnation; `time` gives the monotonic clock in ns."""

    def __init__(
        self,
        directory: str | Path,
        group: str,
        incarnation: int,
        codec: Codec,
        time: Callable[[], int] = clock,
    ) -> None:
        """Raises OSError if the folder cannot be made or written to."""
        self.incarnation = f"{incarnation:016x}"
        self.lock = threading.RLock()
        """Held while a line is written, and from an invocation's line until its message is in its
        packet: so no message can leave whose line is not on file."""
        self._codec = codec
        self._time = time
        self._directory = Path(directory)
        self._group = group
        self._lines: list[bytes] = []
        self._is_given = False
        """What comes is part of the state that this member is given."""
        self._file: int | None = None
        self._directory.mkdir(parents=True, exist_ok=True)
        if not os.access(self._directory, os.W_OK):
            raise PermissionError(f"{self._directory} cannot be written to")

    # What is delivered here, by the thread that drives the stack.

    def viewed(self, view: View, place: int, gseq: int | None) -> None:
        """A view is installed, after the packet `gseq`; None if none was delivered here yet.

        A member that has joined again is another incarnation, and has another file. What came in a view
        without this member is part of the state that it was given.
        """
        with self.lock:
            self._is_given = place < 0
            if self._is_given:
                return
            me = view.members[place]
            if self._file is None or self.incarnation != f"{me.incarnation:016x}":
                self._open(me)
                gseq = None
            self._write(
                "view",
                identity=view.identity,
                members=[[f"{m.incarnation:016x}", m.rank, m.witness] for m in view.members],
                sequencer=f"{view.sequencer.incarnation:016x}",
                primary=view.primary,
                gseq=gseq,
            )

    def delivered(
        self,
        view: View,
        place: tuple[int, int],
        sender: Member,
        ticket: int,
        body: bytes,
        replicas: Sequence[Replica | None],
        names: Mapping[str, int],
        chain: bytes,
    ) -> None:
        """A message is handed up at this place in the order; it reaches the file by `flush`."""
        name, operation, arguments = _message(body, replicas, names)
        with self.lock:
            self._note(
                "deliver",
                lineage=view.lineage,
                view=view.number,
                gseq=place[0],
                index=place[1],
                sender=f"{sender.incarnation:016x}",
                ticket=ticket,
                object=name,
                operation=operation,
                args=arguments,
                chain=chain.hex(),
            )

    def ran(self, call: Call, result: object, error: BaseException | None) -> None:
        """A call has run here; its mutexes are held still, so the file has the objects' own order.

        What was under way as its member joined again ran on the state of the time before: it is in no file.
        """
        if any(replica.in_use for replica in call.replicas):
            return
        operation = name_of(call.function)
        names = [replica.name for replica in call.replicas]
        outcome = {"error": describe(error)} if error is not None else {"value": result}
        with self.lock:
            if call.is_read:
                given = [*call.args, call.named] if call.named else call.args
                gseq = call.runtime.place_of()[0]
                if gseq == 0:
                    return  # nothing was delivered here yet: it shows what came with the state
                self._write(
                    "read", object=names[0], operation=operation, args=given, **outcome, gseq=gseq
                )
                return
            hashed = outcome if error is not None else {"result": self._digest(result, operation)}
            self._note(
                "apply",
                sender=f"{call.source:016x}",
                ticket=call.ticket,
                objects=names,
                operation=operation,
                **hashed,
            )
            if call.invocation is not None:
                self._write("ok", ticket=call.ticket, **outcome)

    def flush(self) -> None:
        """Put what was noted on file: the input is over."""
        with self.lock:
            if self._lines and self._file is not None:
                lines, self._lines = b"".join(self._lines), []
                os.write(self._file, lines)

    # What this member invokes.

    def invoked(
        self, ticket: int, replica: Replica | None, operation: str, args: object, body: bytes
    ) -> None:
        """An invocation is about to be committed; the caller holds the lock."""
        self._write(
            "invoke",
            ticket=ticket,
            object="" if replica is None else replica.name,
            operation=operation,
            args=args,
            hash=hash_of(body),
        )

    def lost(self, invocation: Invocation[Any], error: BaseException) -> None:
        """An invocation ends without having run here: it never will, or no member can say."""
        operation = invocation.operation
        if operation is not None and not isinstance(operation, str) and operation.kind == "read":
            return
        withdrawn = isinstance(error, InvocationTimeout) and error.outcome == "withdrawn"
        never = withdrawn or isinstance(error, NEVER_RAN)
        what = "fail" if never else "info"
        with self.lock:
            self._write(what, ticket=invocation.ticket, error=describe(error))

    # The rest.

    def state(self, replica: Replica, digest: Callable[[Replica], bytes]) -> None:
        """The digest of an object's state; no line where an operation is under way."""
        skipped = LOCKED | QUEUED | DROPPED | UNDECLARED
        with self.lock:
            if replica.object is None or replica.has(skipped):
                return
            try:
                value = hash_of(digest(replica), 16)
            except NotSerializable:
                return
            if not replica.has(LOCKED | QUEUED):
                self._write("state", object=replica.name, digest=value)

    def fault(self, step: str, nth: int, action: str) -> None:
        """A failpoint fires, and what it does comes right after this."""
        with self.lock:
            if self._file is None:  # before any view: the rank is not known
                self._open(Member("", int(self.incarnation, 16)))
            self._write("fault", step=step, nth=nth, action=action)

    def exited(self, why: str) -> None:
        """This member is out of the group."""
        with self.lock:
            self._write("exit", why=why)

    # Writing.

    def _open(self, me: Member) -> None:
        if self._file is not None:
            self.flush()
            os.close(self._file)
        self.incarnation = f"{me.incarnation:016x}"
        role = "w" if me.rank is None else str(me.rank)
        name = f"{quoted_group(self._group)}-{role}-{self.incarnation}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._directory / name, flags, 0o644)
        early, self._lines = self._lines, []
        self._write(
            "member", group=self._group, rank=me.rank, incarnation=self.incarnation, pid=os.getpid()
        )
        self._lines = early

    def _note(self, kind: str, **fields: object) -> None:
        if self._is_given:
            return
        line = {"kind": kind, "t": self._time(), **fields}
        self._lines.append(_encode(line))

    def _write(self, kind: str, **fields: object) -> None:
        self._note(kind, **fields)
        self.flush()

    def _digest(self, value: object, operation: str) -> str:
        """The same at each replica for the same result, whatever order its sets have."""
        try:
            return hash_of(self._codec.encode_canonical(value, operation))
        except NotSerializable:
            return type(value).__qualname__


def hash_of(data: bytes, size: int = 8) -> str:
    """What stands for bytes in a history."""
    return blake2b(data, digest_size=size).hexdigest()


def describe(error: BaseException) -> str:
    """What stands for an exception: the same at each replica."""
    return f"{type(error).__name__}: {text_of(error)}"


def _message(
    body: bytes, replicas: Sequence[Replica | None], names: Mapping[str, int]
) -> tuple[str, str, str]:
    """(object, operation, hash of the arguments) of a message as it travels.

    An object that was ended before has no name there: what is left of it differs from member to member.
    """
    number, rest = _varint(body, 0)
    code, begin = _varint(body, rest)
    replica = replicas[number] if 0 < number < len(replicas) else None
    if number == 0 and code >> 1 in set(Code):
        return "", Code(code >> 1).name.lower(), hash_of(body[begin:])
    if replica is None or names.get(replica.name) != number:
        return f"#{number}", f"#{code >> 1}", hash_of(body[begin:])
    operations = replica.info.operations if replica.info is not None else ()
    known = code >> 1 < len(operations)
    operation = name_of(operations[code >> 1]) if known else f"#{code >> 1}"
    return replica.name, operation, hash_of(body[begin:])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(number, where the next field begins); 0 where the message is cut short."""
    number = shift = 0
    while at < len(data):
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return number, at


def _encode(line: dict[str, object]) -> bytes:
    try:
        return _dump(line)
    except (TypeError, ValueError):  # keys that JSON has not, or a value that holds itself
        shown = {name: value if _plain(value) else repr_of(value) for name, value in line.items()}
        return _dump(shown)


def _dump(line: dict[str, object]) -> bytes:
    return (json.dumps(line, default=repr, separators=(",", ":")) + "\n").encode()


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float | None)
