"""A bounded queue whose items are marked as done."""

from multiprocessing import Process

from orcalike import Manager


def consume(q, seen):
    while True:
        seen.append(q.get())
        q.task_done()


if __name__ == "__main__":
    with Manager() as manager:
        q = manager.JoinableQueue(3)
        seen = manager.list()
        child = Process(target=consume, args=(q, seen), daemon=True)
        child.start()
        for n in range(10):
            q.put(n)
        q.join()
        print(sum(seen), q.empty())
        child.terminate()
        child.join()

# 45 True
