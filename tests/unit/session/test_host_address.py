"""At which host others reach this process: what is said, an interface's, or what the kernel picks."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

import orcalike as orca
from orcalike.session.host_address import (
    host_of_interface,
    own_addresses,
    own_host,
    places,
    split_advertised,
)
from orcalike.session.names import Lookup, hosts_of, numeric
from orcalike.session.options import JoinOptions, make_options
from orcalike.transport.drivers.driver import Waitable

KEY = bytes(range(32))


def test_the_addresses_of_this_host_are_known() -> None:
    assert ("lo", "127.0.0.1") in own_addresses()
    assert host_of_interface("lo") == host_of_interface("127.0.0.0/8") == "127.0.0.1"


@pytest.mark.parametrize(
    "interface", ["eth99", "203.0.113.0/24", "203.0.113.1", "not an interface"]
)
def test_an_interface_that_is_not_there_is_named_with_those_that_are(interface: str) -> None:
    with pytest.raises(ValueError, match=r"no such one with an address; it has .*lo \(127"):
        host_of_interface(interface)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("10.0.0.5", ("10.0.0.5", 0)),
        ("10.0.0.5:7471", ("10.0.0.5", 7471)),
        ("fd00::5", ("fd00::5", 0)),
        ("[fd00::5]", ("fd00::5", 0)),
        ("[fd00::5]:7471", ("fd00::5", 7471)),
        ("::ffff:10.0.0.5", ("10.0.0.5", 0)),
        ("", ("", 0)),
    ],
)
def test_what_is_advertised(said: str, meant: tuple[str, int]) -> None:
    assert split_advertised(said) == meant


@pytest.mark.parametrize(
    "said", ["node7", "0.0.0.0", "::", "10.0.0.5:x", "fe80::1%eth0", "224.0.0.1", "10.0.0.5:99999"]
)
def test_what_cannot_be_advertised(said: str) -> None:
    with pytest.raises(
        ValueError, match="the address at which others reach this process, a number"
    ):
        split_advertised(said)


def test_what_is_said_goes_before_what_is_found() -> None:
    environ = {"ORCALIKE_ADVERTISE": "10.0.0.6", "ORCALIKE_INTERFACE": "lo"}
    assert own_host(advertise="10.0.0.5:7", environ=environ) == "10.0.0.5"
    assert own_host(environ=environ) == "10.0.0.6"
    del environ["ORCALIKE_ADVERTISE"]
    assert own_host(towards=["192.0.2.1"], environ=environ) == "127.0.0.1"
    assert own_host(interface="127.0.0.0/8", environ={"ORCALIKE_INTERFACE": "x"}) == "127.0.0.1"
    assert own_host(towards=["127.9.9.9"], environ={}) == "127.0.0.1"
    assert own_host(towards=["::1", "127.9.9.9"], environ={}, family=socket.AF_INET) == "127.0.0.1"
    with pytest.raises(OSError, match="no host is known"):
        own_host(environ={})


def test_a_port_is_of_one_process() -> None:
    """The variable is there for all processes of a job: what it says of a port was left out, in silence."""
    environ = {"ORCALIKE_ADVERTISE": "10.0.0.5:7471"}
    with pytest.raises(ValueError, match=r"has one of its own: ORCALIKE_ADVERTISE=10\.0\.0\.5$"):
        own_host(environ=environ)
    assert own_host(advertise="10.0.0.6", environ=environ) == "10.0.0.6"


def as_is(host: str) -> Sequence[str]:
    return (host,)


@pytest.mark.parametrize(
    ("listen", "advertise", "environ", "found"),
    [
        ("tcp:127.0.0.1:7", None, {}, ("tcp:127.0.0.1:7", "tcp:127.0.0.1:0")),
        # A default of the environment is for those that do not say where they are reached.
        (
            "tcp:127.0.0.1:7",
            None,
            {"ORCALIKE_ADVERTISE": "10.0.0.5"},
            ("tcp:127.0.0.1:7", "tcp:127.0.0.1:0"),
        ),
        ("tcp:10.0.0.1:7", "10.0.0.5", {}, ("tcp:10.0.0.1:7", "tcp:10.0.0.5:0")),
        ("tcp:0.0.0.0:7", "10.0.0.5:8", {}, ("tcp:0.0.0.0:7", "tcp:10.0.0.5:8")),
        (
            "tcp:0.0.0.0:7",
            None,
            {"ORCALIKE_ADVERTISE": "10.0.0.5"},
            ("tcp:0.0.0.0:7", "tcp:10.0.0.5:0"),
        ),
        (
            "tcp:0.0.0.0:7",
            None,
            {"ORCALIKE_INTERFACE": "lo"},
            ("tcp:0.0.0.0:7", "tcp:127.0.0.1:0"),
        ),
        # The variable means what the argument means, the port too.
        (
            "tcp:0.0.0.0:7",
            None,
            {"ORCALIKE_ADVERTISE": "10.0.0.5:8"},
            ("tcp:0.0.0.0:7", "tcp:10.0.0.5:8"),
        ),
        (
            "tcp:[::]:7",
            None,
            {"ORCALIKE_ADVERTISE": "[fd00::5]:8", "ORCALIKE_INTERFACE": "eth99"},
            ("tcp:[::]:7", "tcp:[fd00::5]:8"),
        ),
        (
            "tcp:0.0.0.0:7",
            "10.0.0.6",
            {"ORCALIKE_ADVERTISE": "10.0.0.5:8"},
            ("tcp:0.0.0.0:7", "tcp:10.0.0.6:0"),
        ),
        (
            "tcp:127.0.0.1:7",
            None,
            {"ORCALIKE_INTERFACE": "eth99"},
            ("tcp:127.0.0.1:7", "tcp:127.0.0.1:0"),
        ),
        ("", None, {"ORCALIKE_ADVERTISE": "10.0.0.5:8"}, ("tcp:127.0.0.1:8", "tcp:10.0.0.5:8")),
        ("tcp:[::]:7", "fd00::5", {}, ("tcp:[::]:7", "tcp:[fd00::5]:0")),
        # One that joins.
        ("", None, {}, ("tcp:127.0.0.1:0", "tcp:127.0.0.1:0")),
        ("", "127.0.0.1:8", {}, ("tcp:127.0.0.1:8", "tcp:127.0.0.1:8")),
        ("", None, {"ORCALIKE_ADVERTISE": "10.0.0.5"}, ("tcp:127.0.0.1:0", "tcp:10.0.0.5:0")),
        ("", "10.0.0.5:8", {}, ("tcp:127.0.0.1:8", "tcp:10.0.0.5:8")),
    ],
)
def test_where_a_process_listens_and_is_reached(
    listen: str, advertise: str | None, environ: dict[str, str], found: tuple[str, str]
) -> None:
    seeds = () if listen else ("tcp:127.0.0.9:7",)
    assert places(listen, seeds, advertise, None, as_is, environ) == found


@pytest.mark.parametrize(
    ("listen", "advertise", "words"),
    [
        ("tcp:0.0.0.0:7", None, "advertise= or ORCALIKE_ADVERTISE, or interface="),
        ("tcp:0.0.0.0:7", "fd00::5", "one is IPv6"),
        ("tcp:[::]:7", "10.0.0.5", "one is IPv6"),
    ],
)
def test_what_a_process_that_listens_everywhere_must_say(
    listen: str, advertise: str | None, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        places(listen, (), advertise, None, as_is, {})


@pytest.mark.parametrize(
    ("listen", "advertise", "interface", "words"),
    [
        ("tcp:127.0.0.1:7", None, "eth99", r"no such one with an address; it has .*lo \(127"),
        ("tcp:127.0.0.1:7", "10.0.0.5", "eth99", "no such one with an address"),
        ("tcp:0.0.0.0:7", "10.0.0.5", "eth99", "no such one with an address"),
        ("", "127.0.0.1", "eth99", "no such one with an address"),
        (
            "tcp:192.0.2.7:7",
            None,
            "lo",
            "'lo' has not the address 192.0.2.7 of listen=.*127.0.0.1, or leave",
        ),
        ("tcp:192.0.2.7:7", "10.0.0.5", "127.0.0.0/8", "has not the address 192.0.2.7 of listen="),
    ],
)
def test_an_interface_that_contradicts_an_address(
    listen: str, advertise: str | None, interface: str, words: str
) -> None:
    seeds = () if listen else ("tcp:127.0.0.9:7",)
    with pytest.raises(ValueError, match=words):
        places(listen, seeds, advertise, interface, as_is, {})


def test_what_is_advertised_and_of_this_host_is_of_the_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An address that this host has not, as behind NAT, can be that of any interface."""
    there = [("lo", "127.0.0.1"), ("eth0", "10.0.0.1"), ("eth1", "10.1.0.1"), ("eth1", "fd00::1")]
    monkeypatch.setattr("orcalike.session.host_address.own_addresses", lambda: there)
    for listen, advertise, interface, found in (
        ("tcp:0.0.0.0:7", "198.51.100.5:8", "eth1", ("tcp:0.0.0.0:7", "tcp:198.51.100.5:8")),
        ("tcp:0.0.0.0:7", "10.1.0.1", "eth1", ("tcp:0.0.0.0:7", "tcp:10.1.0.1:0")),
        ("tcp:10.1.0.1:7", "198.51.100.5", "eth1", ("tcp:10.1.0.1:7", "tcp:198.51.100.5:0")),
        ("tcp:10.1.0.1:7", None, "10.1.0.0/16", ("tcp:10.1.0.1:7", "tcp:10.1.0.1:0")),
        ("tcp:[fd00::1]:7", None, "eth1", ("tcp:[fd00::1]:7", "tcp:[fd00::1]:0")),
        ("tcp:127.0.0.7:7", None, "lo", ("tcp:127.0.0.7:7", "tcp:127.0.0.7:0")),
    ):
        assert places(listen, (), advertise, interface, as_is, {}) == found
    for listen, seeds in (("tcp:0.0.0.0:7", ()), ("", ("tcp:10.0.0.9:7",))):
        with pytest.raises(
            ValueError, match=r"'eth1' has not the address 10\.0\.0\.1 of advertise="
        ):
            places(listen, seeds, "10.0.0.1", "eth1", as_is, {})


@pytest.mark.parametrize("how", [{"listen": "tcp:127.0.0.1:0"}, {"seeds": "tcp:127.0.0.1:9"}])
def test_a_member_names_an_interface_that_is_not_there(how: dict[str, str]) -> None:
    with (
        pytest.raises(ValueError, match="interface 'eth99': this host has no such one"),
        orca.join(**how, key=KEY, interface="eth99", timeout=60),  # type: ignore[arg-type]
    ):
        pass


def test_a_member_behind_a_wildcard_is_reached_where_it_says() -> None:
    listen = {"listen": "tcp:0.0.0.0:0", "advertise": "127.0.0.1", "key": KEY}
    with orca.join(**listen) as group:  # type: ignore[arg-type]
        host, _, port = group.address.rpartition(":")
        assert host == "tcp:127.0.0.1"
        assert int(port)
        with orca.join(seeds=f"tcp:localhost:{port}", key=KEY, timeout=60) as other:
            assert other.address.startswith("tcp:127.0.0.1:")
            assert group.size == other.size == 2


def test_a_joiner_listens_where_it_says() -> None:
    with (
        orca.join(listen="tcp:127.0.0.1:0", key=KEY) as group,
        orca.join(seeds=group.address, listen="tcp:127.0.0.7:0", key=KEY, timeout=60) as other,
    ):
        assert other.address.startswith("tcp:127.0.0.7:")


def test_a_seed_may_name_another_way_to_a_member() -> None:
    """One member has one address for all; a seed is one through which it can be reached."""
    given = {"listen": "tcp:0.0.0.0:0", "advertise": "127.0.0.2", "key": KEY}
    with orca.join(**given) as group:  # type: ignore[arg-type]
        port = group.address.rpartition(":")[2]
        with orca.join(seeds=f"tcp:127.0.0.3:{port}", key=KEY, timeout=60) as other:
            addresses = {member.address for member in other.members}
            assert group.address in addresses
            assert f"tcp:127.0.0.3:{port}" not in addresses


@pytest.mark.parametrize("argument", ["advertise", "interface"])
@pytest.mark.parametrize("place", [{"listen": "unix:/x"}, {"seeds": "unix:/x"}, {}])
def test_where_others_reach_it_is_for_tcp(argument: str, place: dict[str, str]) -> None:
    given = {**place, argument: "127.0.0.1"}
    with pytest.raises(ValueError, match="by TCP: give a tcp: address"), orca.join(**given):  # type: ignore[arg-type]
        pass


# Names


def options(**given: object) -> JoinOptions:
    return make_options("g", **{"key": KEY, **given})  # type: ignore[arg-type]


def test_names_stand_in_seeds_and_listen() -> None:
    found = options(seeds=["tcp:node7:7", "tcp:10.0.0.5:7"])
    assert found.seeds == ("tcp:node7:7", "tcp:10.0.0.5:7")
    assert options(listen="tcp:node7:7").listen == "tcp:node7:7"
    with pytest.raises(ValueError, match="a number such as"):
        options(listen="tcp:node7:7", advertise="node8")


def test_a_name_has_the_numbers_that_the_resolver_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ["10.0.0.5", "fe80::1%2", "::ffff:10.0.0.5", "fd00::5"]
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (host, 0)) for host in hosts]
    )
    assert hosts_of("node7") == ("10.0.0.5", "fd00::5")
    assert numeric("tcp:node7:7") == ("tcp:10.0.0.5:7", "tcp:[fd00::5]:7")
    assert numeric("unix:/x") == ("unix:/x",)
    hosts[:] = ["fe80::1%2"]
    with pytest.raises(OSError, match="node7 has no address that can be used"):
        hosts_of("node7")


def test_a_name_that_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="the name node7 is not known: Name or service"):
        hosts_of("node7")
    with (
        pytest.raises(orca.JoinFailed, match=r"within 0\.5 s: the name node7 is not known"),
        orca.join(seeds="tcp:node7:7", key=KEY, timeout=0.5),
    ):
        pass


def test_a_name_is_looked_up_at_each_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod is not known at first, then under an address at which it is no more."""
    with orca.join(listen="tcp:127.0.0.1:0", key=KEY) as group:
        port = group.address.rpartition(":")[2]
        answers = [None, "127.0.0.66", None, "127.0.0.77", "127.0.0.1"]

        def resolve(*_: object, **__: object) -> list[object]:
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if answer is None:
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            return [(0, 0, 0, "", (answer, 0))]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with orca.join(seeds=f"tcp:pod-0.svc:{port}", key=KEY, timeout=200) as other:
            assert other.size == 2
    assert answers == ["127.0.0.1"]


@pytest.mark.parametrize("trouble", [ValueError("no"), OSError("no")])
def test_a_lookup_raises_where_it_is_waited_for(trouble: Exception) -> None:
    def fail() -> None:
        raise trouble

    done = Waitable()
    lookup = Lookup(fail, done.finish)
    assert done.wait(60)
    assert lookup.is_over
    with pytest.raises(type(trouble)):
        lookup.result()
