"""The hosts that a user names: `-H a:4,b:2`, or a file with one on each line (`a slots=4`, or `a:4`)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path

from orcalike.launcher.errors import LaunchError
from orcalike.transport.record import Record

USAGE = 2
SLOTS_MAX = 4096
#: What to do about too few slots.
MORE_SLOTS = "name more hosts or slots (a:8)"
#: The longest hostfile.
FILE_MAX = 1 << 20

#: What ssh takes for a host: a name or a number, with a user before it or not. It begins as no option does.
_NAME = re.compile(
    r"(?:[A-Za-z0-9_][\w.+-]*@)?(?:[A-Za-z0-9_][\w.-]*|\[(?P<number>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\])"
)


class ListedHost(Record):
    """A host as the user has named it."""

    name: str
    slots: int = 1
    advertise: str = ""
    """The address at which others reach it; "" to find it out."""
    cores: int = 0
    """How many cores an engine is asked for; 0 for one for each rank."""


def parse_hosts(text: str) -> list[ListedHost]:
    """The hosts of `-H a:4,b`; raises LaunchError."""
    return _without_duplicates(
        (f"-H {text}", _parse_host(item.strip(), f"-H {text}")) for item in text.split(",")
    )


def read_hostfile(path: Path) -> list[ListedHost]:
    """The hosts of a file; raises LaunchError, which names file and line."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_MAX + 1)
    except OSError as error:
        raise LaunchError(f"--hostfile {path}: {error.strerror}", USAGE) from None
    if len(data) > FILE_MAX:
        raise LaunchError(f"--hostfile {path}: more than {FILE_MAX} bytes", USAGE)
    lines = data.decode(errors="replace").splitlines()
    listed = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            where = f"{path}, line {number}"
            listed.append((where, _parse_line(words, where)))
    if not listed:
        raise LaunchError(
            f"--hostfile {path}: it names no host; write lines such as: a slots=4", USAGE
        )
    return _without_duplicates(listed)


def _parse_line(words: list[str], where: str) -> ListedHost:
    """`a slots=4 advertise=10.0.0.5`, or `a:4`."""
    found = _parse_host(words[0], where)
    slots, advertise = found.slots, ""
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if key == "slots" and equals:
            slots = _slots(value, where)
        elif key == "advertise" and equals and value:
            advertise = parse_address(value, f"{where}: {word!r}")
        else:
            raise LaunchError(
                f"{where}: {word!r} is not understood: write `a slots=4`, `a:4`, or "
                "`a slots=4 advertise=ADDRESS`",
                USAGE,
            )
    return ListedHost(found.name, slots, advertise)


def _parse_host(item: str, where: str) -> ListedHost:
    name, colon, slots = item, "", ""
    if not item.endswith("]"):  # an IPv6 number without slots
        name, colon, slots = item.rpartition(":") if ":" in item else (item, "", "")
    match = _NAME.fullmatch(name)
    if match is None or not (match["number"] is None or _is_ipv6(match["number"])):
        raise LaunchError(
            f"{where}: {item!r} is no host: write a, a:4, user@a:4 or [fd00::5]:4", USAGE
        )
    return ListedHost(name, _slots(slots, where) if colon else 1)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def for_ssh(name: str) -> str:
    """A host's name as ssh takes it, which knows no brackets."""
    return name.replace("[", "").replace("]", "")


def parse_address(text: str, where: str) -> str:
    """The number at which others reach a host, `fd00::5` or `[fd00::5]`; raises LaunchError."""
    from orcalike.session.host_address import split_advertised  # not for `orcalike run` on one host

    try:
        host, port = split_advertised(text)
    except ValueError:
        host, port = "", 0
    if not host or port:
        raise LaunchError(
            f"{where} is no address at which others reach the host: a number such as 10.0.0.5 or fd00::5",
            USAGE,
        )
    return host


def _slots(text: str, where: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= SLOTS_MAX:
        raise LaunchError(
            f"{where}: {text!r} is not how many ranks the host may have: 1 to {SLOTS_MAX}", USAGE
        )
    return int(text)


def _without_duplicates(listed: Iterable[tuple[str, ListedHost]]) -> list[ListedHost]:
    found: dict[str, ListedHost] = {}
    for where, host in listed:
        name = _one_way_to_write(host.name)
        if name in found:
            raise LaunchError(
                f"{where}: the host {host.name} is named twice: name it once, with all of its slots "
                f"({host.name}:{host.slots + found[name].slots})",
                USAGE,
            )
        found[name] = host
    return list(found.values())


def _one_way_to_write(name: str) -> str:
    """The same for `[fd00::1]` and `[FD00:0::1]`."""
    user, at, host = name.rpartition("@")
    if host.startswith("["):
        host = str(ipaddress.IPv6Address(host[1:-1]))
    return f"{user}{at}{host}"


def fill(hosts: list[ListedHost], ranks: int, remedy: str = MORE_SLOTS) -> list[int]:
    """How many ranks each host gets: the first ones are filled first; raises LaunchError with the remedy."""
    slots = sum(host.slots for host in hosts)
    if ranks > slots:
        raise LaunchError(
            f"-n {ranks} is more than the {slots} slots of {', '.join(f'{h.name}:{h.slots}' for h in hosts)}: "
            f"lower -n, or {remedy}",
            USAGE,
        )
    counts = []
    for host in hosts:
        counts.append(min(host.slots, ranks))
        ranks -= counts[-1]
    return counts
