"""Workers that take tasks from one queue and put results into another."""

from multiprocessing import Process

from orcalike import Manager


def worker(tasks, results):
    for function, arguments in iter(tasks.get, "STOP"):
        results.put((function, sum(arguments)))


if __name__ == "__main__":
    with Manager() as manager:
        tasks, results = manager.Queue(), manager.Queue()
        for n in range(8):
            tasks.put(("sum", [n, n + 1]))
        children = [Process(target=worker, args=(tasks, results)) for _ in range(2)]
        for child in children:
            child.start()
            tasks.put("STOP")
        for child in children:
            child.join()
        print(sorted(results.get() for _ in range(8)))
        print(results.empty(), tasks.qsize())

# [('sum', 1), ('sum', 3), ('sum', 5), ('sum', 7), ('sum', 9), ('sum', 11), ('sum', 13), ('sum', 15)]
# True 0
