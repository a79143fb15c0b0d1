"""A lock service whose holders die: the next one has the lock at once, and a later token.

python examples/lock_service.py
"""

import os
import random
import tempfile
from multiprocessing import get_context

import orcalike as orca
from orcalike.objects import List, Lock


def use(address: str, number: int) -> None:
    with orca.join(seeds=address) as group:
        lock, ledger = group.find(Lock, "lock"), group.find(List[tuple[int, int]], "ledger")
        for _ in range(5):
            with lock as token:
                ledger.append((token, number))  # a store that sees a smaller token refuses it
                if number % 2 and random.random() < 0.3:
                    os._exit(1)  # with the lock in its hands


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, orca.join(listen=f"unix:{folder}/at") as group:
        ledger = group.share(List[tuple[int, int]], "ledger")
        group.share(Lock, "lock")
        start = get_context("spawn").Process
        clients = [start(target=use, args=(group.address, n)) for n in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        tokens = [token for token, _ in ledger]
        complete = all([n for _, n in ledger].count(n) == 5 for n in (0, 2))
        print(
            "tokens grow:", tokens == sorted(set(tokens)), "· survivors had their turns:", complete
        )
