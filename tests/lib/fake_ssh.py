"""A command in place of ssh: its hosts are this machine, and some of them are not as they should be."""

from __future__ import annotations

import stat
from pathlib import Path

_SCRIPT = """#!/bin/sh
# What ssh gets: options, the host, --, and words for a shell there.
echo "$*" >> {log}
while :; do
    case $1 in
        -o) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
host=$1
shift 2
SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22"
HOST_NAME=$host
export SSH_CONNECTION HOST_NAME
case $host in
    unknown)
        echo "ssh: Could not resolve hostname $host: Name or service not known" >&2
        exit 255 ;;
    refusing)
        echo "ssh: connect to host $host port 22: Connection refused" >&2
        exit 255 ;;
    busy)  # sshd drops what is too much, the first two times
        echo >> {log}.busy
        if [ $(wc -l < {log}.busy) -lt 3 ]; then
            echo "kex_exchange_identification: read: Connection reset by peer" >&2
            exit 255
        fi ;;
    dropping)
        echo "kex_exchange_identification: Connection closed by remote host" >&2
        exit 255 ;;
    banner)
        echo "Welcome to this host."
        echo "Unauthorised use is reported." >&2
        printf 'no line end, \\377 and orcalike agent 00' ;;
    chatty)
        yes "Welcome to this host." | head -c 200000
        sleep 1000 ;;
    wordy)
        echo "This account is closed."
        exit 1 ;;
esac
# A session of its own, as on another host: what ends this process does not end that.
setsid ${{LOGIN_SHELL:-sh}} -c "$*"
exit $?
"""


class FakeSsh:
    """The command, and what it was called with."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "fake-ssh"
        self.log = directory / "fake-ssh.log"
        self.path.write_text(_SCRIPT.format(log=self.log))
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def calls(self) -> list[str]:
        """The words of each call, in one line each."""
        return self.log.read_text().splitlines() if self.log.exists() else []
