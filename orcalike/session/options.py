"""How this process takes part: alone, in a launched program, or through addresses that it names.

The first complete match wins, and one line says what was found.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from orcalike.errors import JoinFailed
from orcalike.launch_protocol.environment import (
    DEFAULT_NAME,
    SLOW,
    RankEnvironment,
    find_checks,
    find_detection,
    find_history,
    find_rank_environment,
    is_ranks_child,
)
from orcalike.runtime import registered
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.session.failpoints import Failpoint, find_failpoints
from orcalike.session.keys import (
    OVER_HOSTS,
    REMEDY,
    find_keys,
    is_insecure,
    read_keys,
    require_keys,
)
from orcalike.session.layers import load_layers
from orcalike.session.names import hosts_of
from orcalike.session.private_folder import private_folder
from orcalike.transport.degree import Resilience, degree_of
from orcalike.transport.drivers.addresses import normal, split
from orcalike.transport.drivers.key_ring import KeyRing
from orcalike.transport.record import Record

if TYPE_CHECKING:
    from orcalike.environments.world import World
    from orcalike.session.meeting import MeetingPlace

_log = logging.getLogger("orcalike")

forked_from: list[str] = []
"""The function that this process was started for by `group.fork`, while it imports its program."""

FRESHNESS = "1ms"
FRESHNESS_MAX = 60
"""Seconds for which a member may let others' writes lie."""

NAME_BYTES_MAX = 200
"""Bytes of a group's name in UTF-8: it stands in each greeting, and in the name that the kernel shows of its memory."""


class JoinOptions(Record):
    """How one membership begins."""

    name: str
    how: str
    """"alone", "launched", "listen", "seeds" or, until it is settled which of these two, "at"."""
    seeds: tuple[str, ...] = ()
    """Where the group may be joined; hosts may be names."""
    listen: str = ""
    """Where this process listens: what was asked for or, once it is `located`, a socket's own address."""
    advertise: str | None = None
    """Where others reach it: a host, perhaps with a port; once it is `located`, an address."""
    interface: str | None = None
    """The name or the network of the interface at which others reach it."""
    launch: RankEnvironment | None = None
    own_rank: int | None = None
    """The rank that is asked for by a process that was forked."""
    rank_from: int | None = None
    """Processes that are forked ask for ranks from here on; None: for any that is free."""
    private: str = ""
    """The directory of a listening socket that nothing but this membership uses; it ends with it."""
    world: World | None = None
    """Of another launcher, until its processes have met: then this process is a rank, too (`launch`)."""
    size: int | None = None
    resilience: Resilience = 0
    degree: str = "required"
    """"available": a degree counts as far as the group has members for it."""
    blocked: str = "wait"
    stack: str | None = None
    timeout: float | None = None
    checks: frozenset[str] = frozenset()
    """What is looked for that costs too much to look for always: words of `CHECKS`."""
    history: str | None = None
    """The folder of the members' histories."""
    failpoints: tuple[Failpoint, ...] = ()
    """The faults that `ORCALIKE_FAIL` asks for, where the core passes their steps."""
    detection: int | None = None
    """D, ns: a member that is silent for so long is suspected; None for the group's, or by the address."""
    slow: int = SLOW
    """`slow_timeout`, ns: a member that stays behind for so long is expelled."""
    keys: KeyRing | None = None
    """Of TCP connections."""
    insecure: bool = False
    """They may do without, as the program and its environment say."""
    place: MeetingPlace | None = None
    """Where symmetric workers meet."""
    freshness: int = 0
    """How late others' writes may be applied here where nothing waits, ns; over shared memory."""

    def settled(self) -> JoinOptions:
        """The options, once it is known whether a member is there already; the place is locked."""
        if self.place is None:
            return self
        if seeds := self.place.members():
            return self.replace(how="seeds", seeds=seeds)
        return self.replace(how="listen", listen=self.place.new_address())

    @property
    def beyond(self) -> bool:
        """Whether TCP may be used beyond the loopback interface."""
        return self.keys is not None or self.insecure

    @property
    def scheme(self) -> str:
        """Of the address that the program names: "unix" or "tcp"; "" if it names none."""
        first = self.listen or (self.seeds[0] if self.seeds else "")
        return first.partition(":")[0]

    @property
    def folders(self) -> list[str]:
        """Those of the Unix sockets through which this process may join: without another place it listens in one of them."""
        return [os.path.dirname(split(seed)[1]) for seed in self.seeds if seed.startswith("unix:")]

    @property
    def is_located(self) -> bool:
        """Whether nothing is to be found out of where this process listens, or waited for."""
        if self.scheme == "unix" and not self.listen:
            return any(map(os.path.isdir, self.folders))
        return self.world is None and (self.launch is not None or self.scheme != "tcp")

    def located(self) -> JoinOptions:
        """The options with the address to listen at, and the one at which others reach this process.

        It can take long: names are looked up. Raises OSError if one is not known now, there is no
        way to a seed, or no folder of one; ValueError if what was asked for makes no sense on this host.
        """
        if self.is_located:
            return self
        if self.scheme == "unix":
            raise OSError(f"no folder of a seed is there: {', '.join(self.folders)}")
        if self.world is not None:
            from orcalike.environments.meeting import meet  # few programs take that way

            return self._launched(meet(self.world))
        from orcalike.session.host_address import places  # ranks of `orcalike run` need none

        listen, advertise = places(
            self.listen, self.seeds, self.advertise, self.interface, hosts_of
        )
        return self.replace(listen=listen, advertise=advertise)

    def missing(self, there: set[int | None]) -> list[int]:
        """The ranks of the program that are not there; none if it was not launched."""
        return sorted(set(range(self.launch.size)) - there) if self.launch else []

    @property
    def is_unanimous(self) -> bool:
        """Whether all ranks make the group."""
        return self.launch is not None and self.launch.unanimous

    def _launched(self, launch: RankEnvironment) -> JoinOptions:
        """The options of a process that is a rank, now that it has met those of its world."""
        load_layers(launch.layers)
        return self.replace(
            launch=launch,
            world=None,
            rank_from=launch.size,
            stack=_stack_of_run(launch) if self.stack is None else self.stack,
            detection=find_detection()[0],
        )

    @property
    def rank(self) -> int | None:
        """The rank that is asked for."""
        return self.launch.rank if self.launch else self.own_rank


def make_options(
    name: str | None = None,
    *,
    seeds: str | Sequence[str] | None = None,
    listen: str | None = None,
    size: int | None = None,
    resilience: Resilience = 0,
    degree: str = "required",
    blocked: str = "wait",
    stack: str | None = None,
    timeout: Duration | None = None,
    key: bytes | str | os.PathLike[str] | None = None,
    at: str | None = None,
    check: str | None = None,
    advertise: str | None = None,
    interface: str | None = None,
    insecure: bool = False,
    freshness: Duration = FRESHNESS,
) -> JoinOptions:
    """The options for the arguments of `join`; raises ValueError if they contradict each other.

    Raises TypeError for a value of another type than it has in the signature.
    Raises JoinFailed while `group.fork` imports the program in a new process, OrcalikeError if there is no place for the
    socket of a group of one that may fork.
    Raises InsecureConfig for a TCP address without a key, or without the package that seals.
    """
    _check_types(name=name, at=at, check=check, advertise=advertise, interface=interface)
    _check_arguments(seeds, listen, at, size, resilience, degree, blocked)
    _check_import()
    name = _checked_name(DEFAULT_NAME if name is None else name)
    launch, world = (None, None) if seeds or listen or at else _find_launch(size)
    addresses = _normal_seeds(seeds)
    listen = normal(listen, names=True) if listen else ""
    _check_seeds(addresses, listen)
    _check_place(listen or (addresses[0] if addresses else ""), advertise, interface)
    used = [*addresses, listen, launch.listen if launch else ""]
    over_hosts = world is not None and not world.is_on_one_host
    uses_tcp = over_hosts or any(address.startswith("tcp:") for address in used)
    keys = read_keys(key) if key is not None else find_keys() if uses_tcp else None
    may_be_open = uses_tcp and _may_be_open(name, insecure, keys, over_hosts=over_hosts)
    load_layers(launch.layers if launch else ())
    options = JoinOptions(
        name,
        how=_how_to_begin(seeds, listen, at, launch or world),
        seeds=addresses,
        listen=listen,
        advertise=advertise,
        interface=interface,
        launch=launch,
        rank_from=launch.size if launch else None,
        world=world,
        size=size,
        resilience=resilience,
        degree=degree,
        blocked=blocked,
        stack=_stack_of_run(launch) if stack is None and launch else stack,
        timeout=seconds_of(timeout),
        keys=keys,
        insecure=may_be_open,
        freshness=_freshness_of(freshness),
        place=_place(at, name),
        **_of_environment(check),
    )
    return _alone(options) if options.how == "alone" else options


def _place(at: str | None, name: str) -> MeetingPlace | None:
    if not at:
        return None
    from orcalike.session.meeting import MeetingPlace  # few programs meet

    return MeetingPlace(at, None if name == DEFAULT_NAME else name)


def _freshness_of(duration: Duration) -> int:
    """In ns; raises ValueError for more than a minute."""
    seconds = seconds_of(duration)
    if seconds is None or seconds > FRESHNESS_MAX:
        raise ValueError(f"freshness={duration!r}: a duration of {FRESHNESS_MAX} s at the most")
    return round(seconds * 1e9)


def _alone(options: JoinOptions) -> JoinOptions:
    """A group of one: with a socket of its own if the program may fork."""
    _check_group_of_one(options.size)
    return _with_own_socket(options) if registered.functions else options


def _normal_seeds(seeds: str | Sequence[str] | None) -> tuple[str, ...]:
    given = (seeds,) if isinstance(seeds, str) else seeds or ()
    return tuple(normal(address, names=True) for address in given)


def _check_seeds(seeds: tuple[str, ...], listen: str) -> None:
    """Raise ValueError if the only one to ask is this process itself."""
    if seeds and set(seeds) == {listen}:
        raise ValueError(
            f"seeds={listen!r} is where this process listens itself: leave seeds out to make the group, or let the "
            "processes meet with at="
        )


def _may_be_open(name: str, asked: bool, keys: KeyRing | None, *, over_hosts: bool) -> bool:
    """Whether TCP may go without a key; raises InsecureConfig if it must not, and there is none."""
    may_be_open = is_insecure(name, asked, keys)
    if not may_be_open:
        require_keys(keys, OVER_HOSTS if over_hosts else REMEDY)
    return may_be_open


def _check_import() -> None:
    """Raise JoinFailed if the program is imported by a new process of `group.fork`, and not run."""
    if forked_from:
        raise JoinFailed(
            f"the program joins a group while it is imported, to run {forked_from[0]} in a process of "
            'its own: put what it runs under `if __name__ == "__main__":`'
        )


def _of_environment(check: str | None) -> dict[str, Any]:
    """The options that variables set, and no other argument of `join` but `check`."""
    detection, slow = find_detection()
    return {
        "checks": find_checks(check),
        "history": find_history(),
        "failpoints": find_failpoints(),
        "detection": detection,
        "slow": slow,
    }


def _find_launch(size: int | None) -> tuple[RankEnvironment | None, World | None]:
    """(what the launcher says, or this process has found before; else the world of another launcher)."""
    launch = find_rank_environment()
    if launch is not None:
        return launch, None
    from orcalike.environments.finding import find_world, is_off  # no rank of `orcalike run` looks

    world = None if size == 1 or is_off() else find_world()
    if world is not None:
        from orcalike.environments.signals import be_a_process_of_an_engine  # few are

        be_a_process_of_an_engine()
    return launch, world


def _with_own_socket(options: JoinOptions) -> JoinOptions:
    """For a program that may fork: its group of one listens, and has all that a group of one had."""
    private = private_folder()
    return options.replace(
        how="listen", listen=f"unix:{private}/group", private=private, degree="available"
    )


_TEXTS = {
    "name": "the name of a group is a string",
    "at": 'a directory for the sockets of one group, "unix:PATH"',
    "check": "words of ORCALIKE_CHECK, a string",
    "advertise": "the address at which others reach this process, a string",
    "interface": "an interface or a network, a string",
}


def _check_types(**arguments: object) -> None:
    """Raise TypeError for what is to be a text, and is something else."""
    for argument, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{argument}={value!r}: {_TEXTS[argument]}")


def _check_arguments(
    seeds: str | Sequence[str] | None,
    listen: str | None,
    at: str | None,
    size: int | None,
    resilience: Resilience,
    degree: str,
    blocked: str,
) -> None:
    """Raise ValueError for values that `join` does not know, or that contradict each other."""
    if blocked not in ("wait", "raise"):
        raise ValueError(f'blocked={blocked!r}: "wait" or "raise"')
    if degree not in ("required", "available"):
        raise ValueError(f'degree={degree!r}: "required" or "available"')
    degree_of(resilience)
    if at and (seeds or listen):
        raise ValueError("at= joins a group or makes it: give neither seeds= nor listen= with it")
    for argument, address in (("listen", listen), ("at", at)):
        if address == "":
            raise ValueError(
                f"{argument}='': there is no address in it; leave it out for a group of one"
            )
    if seeds is not None and not isinstance(seeds, Collection):
        raise TypeError(f"seeds={seeds!r}: an address, or a list of addresses")
    if seeds is not None and not seeds:
        raise ValueError(
            f"seeds={seeds!r}: there is no address in it; leave it out to make a group"
        )
    if size is not None and (isinstance(size, bool) or not isinstance(size, int)):
        raise TypeError(f"size={size!r}: a number of members")
    if size is not None and size < 1:
        raise ValueError(f"size={size}: a group has one member at the least")


def _checked_name(name: str) -> str:
    """The group's name; raises ValueError if it cannot stand in a greeting, or is an address."""
    if not name:
        raise ValueError("name='': leave it out for the group of the program")
    if name.startswith(("unix:", "tcp:")):
        raise ValueError(f"name={name!r} is an address: write listen={name!r}, or seeds={name!r}")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"name={name!r}: a lone surrogate cannot travel") from None
    if size > NAME_BYTES_MAX:
        raise ValueError(
            f"name={name[:20]!r}...: a group's name has {NAME_BYTES_MAX} bytes of UTF-8 at the most, not {size}"
        )
    return name


def _check_place(own: str, advertise: str | None, interface: str | None) -> None:
    """Raise ValueError if no TCP address of this process's can be that of `advertise` or `interface`."""
    if advertise:
        from orcalike.session.host_address import split_advertised  # few programs say it

        split_advertised(advertise)
    for argument, value in (("advertise", advertise), ("interface", interface)):
        if value and not own.startswith("tcp:"):
            raise ValueError(
                f"{argument}={value!r} says where others reach this process by TCP: give a tcp: "
                "address in listen or seeds, too"
            )


def _how_to_begin(
    seeds: str | Sequence[str] | None,
    listen: str | None,
    at: str | None,
    launch: RankEnvironment | World | None,
) -> str:
    """`JoinOptions.how`: what `join` was given goes before what the launcher says."""
    if seeds:
        return "seeds"
    if listen:
        return "listen"
    if at:
        return "at"
    return "launched" if launch else "alone"


def _stack_of_run(launch: RankEnvironment) -> str | None:
    """What `orcalike run --stack` says, with the medium of its groups; None if it says nothing."""
    if not launch.stack:
        return None
    medium = launch.listen.partition(":")[0]
    return f"{launch.stack}:{medium}"


def _check_group_of_one(size: int | None) -> None:
    """Raise if more processes than this one are meant to be in its group; warn a rank's child."""
    if (size or 1) > 1:
        raise ValueError(
            f"size={size}, but this group of one has no address: give listen= or seeds=, or start the program "
            f"with `orcalike run -n {size}`"
        )
    if size is not None:
        return
    _refuse_world_of_one()
    if is_ranks_child() and "ORCALIKE_RANK" in os.environ:
        _log.warning(
            "this process was started by rank %s, and is no rank: it has a group of its own; "
            "give join(seeds=group.address) of the rank's group to join that, or join(size=1)",
            os.environ["ORCALIKE_RANK"],
        )


def _refuse_world_of_one() -> None:
    """Raise JoinFailed if each process of a launcher's world would make a group of its own."""
    from orcalike.environments.finding import find_unmet, find_world  # as in `_find_launch`

    world = find_world()
    found = world or find_unmet()
    if found is None:
        return
    why = "ORCALIKE_DETECT=off" if world else "it does not say how they find each other"
    raise JoinFailed(
        f"this is process {found.rank} of {found.size} that {found.launcher} started, and {why}: each "
        f"would have a group of its own. Start the program with `orcalike run -n {found.size}`; or give "
        "one process join(listen=...) and the others join(seeds=...); or say join(size=1) if each is "
        "to be alone"
    )
