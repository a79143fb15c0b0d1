"""Two stages, the second of which waits for the first."""

from multiprocessing import Process

from orcalike import Manager


def stage_1(condition, log):
    with condition:
        log.append("stage 1 done")
        condition.notify_all()


def stage_2(condition, log):
    with condition:
        condition.wait_for(lambda: len(log) > 0)
        log.append("stage 2 running")


if __name__ == "__main__":
    with Manager() as manager:
        condition, log = manager.Condition(manager.Lock()), manager.list()
        seconds = [Process(target=stage_2, args=(condition, log)) for _ in range(2)]
        for process in seconds:
            process.start()
        first = Process(target=stage_1, args=(condition, log))
        first.start()
        for process in [first, *seconds]:
            process.join()
        print(log)

# ['stage 1 done', 'stage 2 running', 'stage 2 running']
