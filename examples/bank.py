"""A bank whose money neither comes nor goes: atomic transfers, under any torment.

    python examples/bank.py                              one process
    orcalike run -n 4 examples/bank.py                   four
    orcalike run -n 4 --restart 9 examples/bank.py --transfers 1000000

Every process moves money between random accounts, as an atomic function of two accounts and the
book, and adds all accounts up from time to time, as an atomic function too: there is no moment at
which money is on its way. Kill processes while it runs: a transfer has happened or it has not, and
a process that is started again goes on with the rest.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import orcalike as orca

CHECK_EVERY = 50  # transfers of a process between two of its checks


@orca.shared
class Account:
    """Some money."""

    def __init__(self, balance: int) -> None:
        self.money = balance

    @orca.write
    def put(self, amount: int) -> None:
        self.money += amount

    @orca.read
    def balance(self) -> int:
        return self.money


@orca.shared
class Book:
    """How many transfers there were; when it is full there are no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.transfers = 0

    @orca.write
    def note(self) -> None:
        self.transfers += 1

    @orca.read
    def is_full(self) -> bool:
        return self.transfers >= self.room


@orca.atomic
def transfer(source: Account, target: Account, book: Book, amount: int) -> bool:
    """Move money, if there is enough of it and the book has room; whether it was moved."""
    if book.is_full() or source.balance() < amount:
        return False
    source.put(-amount)
    target.put(amount)
    book.note()
    return True


@orca.atomic
def total(*accounts: Account) -> int:
    """All the money, at one place in the order of transfers."""
    return sum(account.balance() for account in accounts)


def work(accounts: list[Account], book: Book, expected: int, rng: random.Random) -> int:
    """Transfers until the book is full; how many were this process's. Raises if money is lost."""
    moved = tried = 0
    while not book.is_full():
        source, target = rng.sample(accounts, 2)
        moved += transfer(source, target, book, rng.randint(1, 100))
        tried += 1
        if tried % CHECK_EVERY == 0:
            check(accounts, expected)
    return moved


def check(accounts: list[Account], expected: int) -> None:
    """All the money is there."""
    found = total(*accounts)
    if found != expected:
        sys.exit(f"check: FAILED, {found} in all accounts, and it was {expected}")


def run(count: int, each: int, transfers: int) -> None:
    """One process's part."""
    with orca.join() as group:
        accounts = [group.share(Account, f"account {number}", each) for number in range(count)]
        book = group.share(Book, "book", transfers)
        started = time.perf_counter()
        moved = work(accounts, book, count * each, random.Random())
        seconds = time.perf_counter() - started
        check(accounts, count * each)
        poorest = min(account.balance() for account in accounts)
        print(
            f"rank {group.rank}: {moved} of {transfers} transfers in {seconds:.2f} s\n"
            f"check: ok, {count * each} in {count} accounts as in the beginning, "
            f"and at least {poorest} in each",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Moves money between accounts, and loses none.")
    parser.add_argument("--accounts", type=int, default=16, help="how many (default: 16)")
    parser.add_argument("--each", type=int, default=1000, help="money in each (default: 1000)")
    parser.add_argument("--transfers", type=int, default=20_000, help="in all (default: 20000)")
    options = parser.parse_args()
    if options.accounts < 2 or min(options.each, options.transfers) < 1:
        parser.error("two accounts at the least, some money, and a transfer")
    run(options.accounts, options.each, options.transfers)


if __name__ == "__main__":
    main()
