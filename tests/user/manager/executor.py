"""Workers of an executor that stop at an event."""

from concurrent.futures import ProcessPoolExecutor

from orcalike import Manager


def search(first, found, results):
    for n in range(first, 10_000, 2):
        if found.is_set():
            return n
        if n == 101:
            results.put(n)
            found.set()
    return None


if __name__ == "__main__":
    with Manager() as manager:
        found, results = manager.Event(), manager.Queue()
        with ProcessPoolExecutor(2) as executor:
            futures = [executor.submit(search, first, found, results) for first in (0, 1)]
            for future in futures:
                future.result()
        print(results.get(), found.is_set())

# 101 True
