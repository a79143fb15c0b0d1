"""A permit that one process has acquired and another one releases."""

from multiprocessing import Process

from orcalike import Manager


def take(semaphore, states):
    states.append(semaphore.acquire())


if __name__ == "__main__":
    with Manager() as manager:
        semaphore, states = manager.BoundedSemaphore(1), manager.list()
        child = Process(target=take, args=(semaphore, states))
        child.start()
        child.join()
        print(states, semaphore.acquire(True, 0.1))
        semaphore.release()
        print(semaphore.acquire(True, 100))

# [True] False
# True
