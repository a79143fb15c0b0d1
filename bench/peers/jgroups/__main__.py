"""The parent of the Java members; the last one has its input and output."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from orcalike.bench.peers.answers import MEMBERS, end_cleanly, running
from orcalike.bench.peers.jgroups import find_jar

HERE = Path(__file__).parent


def free_ports() -> list[int]:
    """Ports that are free just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(MEMBERS)]
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


def main(way: str) -> int:
    """Compile, start the members one after another, and wait for the one that measures.

    The first is the coordinator, which orders. The one that measures is not, as two of three are
    not: orcalike's sequencer, too, is none of its members.
    """
    end_cleanly()
    jar = find_jar()
    if jar is None:
        print("no JGroups: name its jar in JGROUPS_JAR", file=sys.stderr)
        return 1
    ports = free_ports()
    hosts = ",".join(f"127.0.0.1[{port}]" for port in ports)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run(["javac", "-cp", jar, "-d", folder, HERE / "Member.java"], check=True)
        java = ["java", "-cp", f"{jar}:{folder}", "-Djava.net.preferIPv4Stack=true", "-Xmx512m"]
        properties = ["-Djgroups.bind_addr=127.0.0.1", f"-Djgroups.tcpping.initial_hosts={hosts}"]
        for number, port in enumerate(ports):
            last = number == MEMBERS - 1
            member = stack.enter_context(
                running(
                    [
                        *java, *properties, f"-Djgroups.bind_port={port}",
                        "Member", str(MEMBERS), way,
                    ],
                    stdin=None if last else subprocess.DEVNULL,
                    stdout=None if last else subprocess.PIPE,
                )
            )  # fmt: skip
            if not last:
                assert member.stdout is not None
                member.stdout.readline()  # it is in the group
        return member.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
