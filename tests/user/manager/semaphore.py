"""No more than two at a time."""

from multiprocessing import Pool

from orcalike import Manager


def work(semaphore, lock, now, most):
    with semaphore:
        with lock:
            now.value += 1
            most.value = max(most.value, now.value)
        with lock:
            now.value -= 1


if __name__ == "__main__":
    with Manager() as manager:
        semaphore, lock = manager.Semaphore(2), manager.RLock()
        now, most = manager.Value("i", 0), manager.Value("i", 0)
        with Pool(3) as pool:
            pool.starmap(work, [(semaphore, lock, now, most)] * 12)
        print(now.value, 1 <= most.value <= 2)
        bounded = manager.BoundedSemaphore(1)
        print(bounded.acquire(), bounded.acquire(False), bounded.acquire(True, 0.01))
        bounded.release()
        try:
            bounded.release()
        except ValueError as error:
            print(error)

# 0 True
# True False False
# Semaphore released too many times
