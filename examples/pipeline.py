"""A pipeline with back pressure: numbers are read, factored by many, and written in one place.

orcalike run -n 4 examples/pipeline.py
"""

import orcalike as orca
from orcalike.objects import Counter, Queue


def factors(n: int) -> list[int]:
    found, divisor = [], 2
    while n > 1:
        while n % divisor == 0:
            found.append(divisor)
            n //= divisor
        divisor += 1
    return found


if __name__ == "__main__":
    with orca.join() as group:
        if group.size < 3:
            raise SystemExit("it takes three processes: orcalike run -n 3 examples/pipeline.py")
        numbers = group.share(Queue[int], "numbers", 8)  # to put a ninth one waits
        factored = group.share(Queue[tuple[int, list[int]]], "factored", 8)
        busy = group.share(Counter, "busy", group.size - 2)
        if group.rank == 0:  # the source
            for n in range(10_000, 10_100):
                numbers.put(n)
            numbers.shutdown()
        elif group.rank == 1:  # the sink
            results = dict(factored)
            print(len(results), "numbers,", sum(len(f) == 1 for f in results.values()), "primes")
        else:  # the workers
            for n in numbers:
                factored.put((n, factors(n)))
            if busy.subtract() == 0:  # the last one
                factored.shutdown()
