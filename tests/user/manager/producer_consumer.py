"""A producer, a bounded queue, and a consumer that stops at a sentinel."""

from multiprocessing import Process

from orcalike import Manager


def produce(q, count):
    for n in range(count):
        q.put({"number": n, "square": n * n})
    q.put(None)


def consume(q, total):
    while (item := q.get()) is not None:
        total.value += item["square"]


if __name__ == "__main__":
    with Manager() as manager:
        q, total = manager.Queue(maxsize=2), manager.Value("i", 0)
        children = [
            Process(target=produce, args=(q, 20)),
            Process(target=consume, args=(q, total)),
        ]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print(total.value, q.full())

# 2470 False
