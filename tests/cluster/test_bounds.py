"""Bounds between members that have real sockets: the senders wait, and nothing is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import orcalike as orca
from orcalike.messages import (
    Data,
    MessageGroup,
    create_group,
    join_group,
    leave_group,
    receive_from_group,
    send_to_group,
)
from orcalike.transport.layers.pack import Pack
from tests.lib.waiting_threads import until_it_stays
from tests.unit.runtime.test_bounds import Gate, standing

MIB = 1 << 20


def test_a_full_lock_queue_slows_a_sender_elsewhere(tmp_path: Path) -> None:
    let_go = threading.Event()
    standing["wait"] = let_go.wait
    where = f"unix:{tmp_path}/maker"
    sent: list[int] = []
    with orca.join(listen=where) as maker, orca.join(seeds=where) as group:
        gate = group.share(Gate, "gate")
        same = maker.share(Gate, "gate")
        gate.stand.nowait()

        def send() -> None:
            for _ in range(64):
                gate.put.nowait(bytes(MIB))
                sent.append(MIB)

        sender = threading.Thread(target=send)
        sender.start()
        waited = until_it_stays(sender, "room")
        let_go.set()
        sender.join()
        gate.put(b"last")
        maker.fence()
        assert waited
        assert gate.lengths() == same.lengths() == [*sent, 4]


def test_messages_wait_for_room(tmp_path: Path) -> None:
    where = f"unix:{tmp_path}/maker"
    maker = create_group(listen=where)
    group = join_group(seeds=where, timeout=60)
    try:
        pack = group._session.stack.focus("PACK")
        assert isinstance(pack, Pack)
        most = 0

        received: dict[MessageGroup, list[int]] = {}

        def send() -> None:
            send_to_group(group, bytes(5 * MIB), timeout=60)

        def receive(member: MessageGroup) -> None:
            received[member] = [len(event.data) for event in data_of(member, 6)]

        threads = [threading.Thread(target=send) for _ in range(6)]

        def start(now: int) -> None:
            for thread in threads:
                thread.start()

        def look(now: int) -> None:  # in the core, where no packet goes from one to the other
            nonlocal most
            most = max(most, pack.gathered + pack.under_way)

        group._session.pump.call(start)
        # Else some may wait for the room of what was not received.
        receiving = [threading.Thread(target=receive, args=(each,)) for each in (maker, group)]
        for thread in receiving:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            group._session.pump.call(look)
            threads[-1].join(0.001)
        assert most <= 8 * MIB
        for thread in receiving:
            thread.join()
        assert received == {maker: [5 * MIB] * 6, group: [5 * MIB] * 6}
    finally:
        leave_group(group)
        leave_group(maker)


def data_of(group: MessageGroup, count: int) -> list[Data]:
    """The next so many messages."""
    found: list[Data] = []
    while len(found) < count:
        event = receive_from_group(group, timeout=30)
        if isinstance(event, Data):
            found.append(event)
    return found
