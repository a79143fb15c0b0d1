"""A program for `multiprocessing.Manager`, with another import: words counted by a pool.

python examples/word_count.py
"""

from multiprocessing import Pool

from orcalike import Manager  # instead of: from multiprocessing import Manager
from orcalike.objects.proxies import DictProxy, LockProxy

TEXT = """\
the replicas are ordinary objects and the order is the same everywhere
a read is a local call and a write runs in each process in the order
what joins gets the state and what dies leaves the others in the order
"""


def count(lock: LockProxy, counts: DictProxy, line: str) -> int:
    words = line.split()
    for word in words:
        with lock:
            counts[word] = counts.get(word, 0) + 1
    return len(words)


if __name__ == "__main__":
    with Manager() as manager, Pool(3) as pool:
        lock, counts = manager.Lock(), manager.dict()
        lines = [(lock, counts, line) for line in TEXT.splitlines()]
        print(sum(pool.starmap(count, lines)), "words,", len(counts), "different ones")
        often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        print(", ".join(f"{word} {times}" for word, times in often[:3]))
