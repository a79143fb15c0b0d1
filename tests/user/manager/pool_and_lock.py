"""Workers of a pool that change a dict under a lock."""

from multiprocessing import Pool

from orcalike import Manager


def count(lock, counts, word):
    with lock:
        counts[word] = counts.get(word, 0) + 1
    return len(word)


if __name__ == "__main__":
    text = "the quick brown fox jumps over the lazy dog the end"
    words = text.split()
    with Manager() as manager, Pool(2) as pool:
        lock, counts = manager.Lock(), manager.dict()
        print(sum(pool.starmap(count, [(lock, counts, word) for word in words])))
        print(counts["the"], len(counts), sorted(counts)[:3])

# 41
# 3 9 ['brown', 'dog', 'end']
