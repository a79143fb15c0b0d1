"""Members that talk with the group primitives: `talker.py create|join ADDRESS COUNT`, or launched.

Each sends COUNT messages from one thread and receives in another, until all have said "over".
"""

from __future__ import annotations

import hashlib
import sys
import threading

from common import KEY, meet, tell

from orcalike.errors import GroupClosed
from orcalike.messages import (
    Data,
    Joined,
    Left,
    MessageGroup,
    create_group,
    get_info_group,
    join_group,
    leave_group,
    receive_from_group,
    send_to_group,
)


def talk(group: MessageGroup, count: int) -> None:
    """Send, and say that it is over."""
    for number in range(count):
        send_to_group(group, f"{number}".encode())
    send_to_group(group, b"over")


def listen(group: MessageGroup, members: int, begun: threading.Event) -> list[tuple[str, int, str]]:
    """All events until so many have said that it is over."""
    heard: list[tuple[str, int, str]] = []
    over = 0
    while over < members:
        match receive_from_group(group, timeout=60):
            case Data(sender, data):
                heard.append(("data", sender.rank or 0, data.decode()))
                over += data == b"over"
                if len(get_info_group(group).members) == members:
                    begun.set()
            case Joined(member, view):
                heard.append(("joined", member.rank or 0, str(len(view.members))))
                if len(get_info_group(group).members) == members:
                    begun.set()
            case Left(member):
                heard.append(("left", member.rank or 0, ""))
    return heard


def main() -> None:
    how, address, count, members = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if how == "create":
        group = create_group(listen=address, key=KEY)
    elif how == "join":
        group = join_group(seeds=address, timeout=60, key=KEY)
    else:
        group = join_group()
    info = get_info_group(group)
    tell(address=info.address, rank=info.me.rank)
    begun = threading.Event()
    if len(info.members) == members:
        begun.set()
    heard: list[tuple[str, int, str]] = []
    listener = threading.Thread(target=lambda: heard.extend(listen(group, members, begun)))
    listener.start()
    begun.wait(30)
    talk(group, count)
    listener.join()
    info = get_info_group(group)
    meet("over", members)
    leave_group(group)
    rest: list[int | None] = []
    try:
        while True:
            event = receive_from_group(group)
            assert isinstance(event, Left)
            rest.append(event.member.rank)
    except GroupClosed as error:
        end = type(error).__name__
    data = [event for event in heard if event[0] == "data"]
    tell(
        rank=info.me.rank,
        order=hashlib.blake2b(repr(data).encode(), digest_size=8).hexdigest(),
        data={rank: [d for _, source, d in data if source == rank] for rank in range(members)},
        joined=[event[1] for event in heard if event[0] == "joined"],
        rest=rest,
        end=end,
    )


main()
