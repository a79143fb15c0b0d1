"""A function that locks what its caller has locked."""

from multiprocessing import Process

from orcalike import Manager


def add(lock, total, n):
    with lock:
        if n:
            total.value += n
            add(lock, total, n - 1)


if __name__ == "__main__":
    with Manager() as manager:
        lock, total = manager.RLock(), manager.Value("i", 0)
        children = [Process(target=add, args=(lock, total, 4)) for _ in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print(total.value, lock.acquire(timeout=60))
        lock.release()

# 20 True
