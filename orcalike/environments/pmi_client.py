"""Exchanges texts among the processes of MPICH's or Intel's `mpiexec`: PMI-1, by the descriptor that it gave.

It runs in a child process of a rank: if the rank itself spoke, its MPI library could not later. For the same
reason it does not say `finalize`. It is started by its path, and imports nothing but the standard library:

    pmi_client.py FD RANK SIZE

Its first line says which job it is; then each line that comes is this process's text, and the answer is a line
with the texts of all, with tabs between them.
"""

from __future__ import annotations

import os
import sys

LINE_MAX = 65536


class Pmi:
    """The conversation: a line `cmd=... key=value`, and a line in answer."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self.ask("cmd=init pmi_version=1 pmi_subversion=1")
        self.name = self.ask("cmd=get_my_kvsname")["kvsname"]
        """That of the job's texts."""

    def ask(self, line: str) -> dict[str, str]:
        """Send a line, and wait for the answer; raises OSError if it is a refusal, or none comes."""
        data = line.encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]
        while b"\n" not in self._rest:
            more = os.read(self._descriptor, 4096)
            if not more or len(self._rest) > LINE_MAX:
                raise OSError("mpiexec has closed its end")
            self._rest += more
        answer, _, self._rest = self._rest.partition(b"\n")
        fields = dict(field.partition("=")[::2] for field in answer.decode().split())
        if fields.get("rc", "0") != "0":
            raise OSError(f"mpiexec answered {answer.decode()!r} to {line.partition(' ')[0]!r}")
        return fields

    def exchange(self, key: str, text: str, rank: int, size: int) -> list[str]:
        """The texts of all processes, when each has given its own."""
        self.ask(f"cmd=put kvsname={self.name} key={key}.{rank} value={text}")
        self.ask("cmd=barrier_in")
        get = f"cmd=get kvsname={self.name} key={key}."
        return [self.ask(f"{get}{each}")["value"] for each in range(size)]


def main() -> None:
    """Exchange what comes, until no more comes."""
    descriptor, rank, size = map(int, sys.argv[1:4])
    try:
        pmi = Pmi(descriptor)
        print(pmi.name, flush=True)
        for number, line in enumerate(sys.stdin):
            texts = pmi.exchange(f"orcalike{number}", line.strip(), rank, size)
            print("\t".join(texts), flush=True)
    except (KeyError, OSError) as error:
        sys.exit(f"PMI: {error}")


if __name__ == "__main__":
    main()
