"""What is read is a copy, also in classes of one's own; the proxies in it are proxies still."""

from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from multiprocessing import Process

from orcalike import Manager, register


@register
@dataclass
class Job:
    name: str
    results: object


def work(jobs, waiting):
    jobs[0].results.append("in a child")
    waiting["jobs"][0].append("in a deque")


if __name__ == "__main__":
    with Manager() as manager:
        results, others = manager.list(), manager.list()
        jobs = manager.list([Job("first", results)])
        waiting = manager.dict(jobs=deque([others]))
        child = Process(target=work, args=(jobs, waiting))
        child.start()
        child.join()
        print(results, others)
        print(type(deepcopy(results)).__name__)
        inner = manager.list([[1], [2]])
        for each in reversed(inner):
            each.append(3)
        print(inner)
        print(list(reversed(manager.dict(a=1, b=2))))

# ['in a child'] ['in a deque']
# list
# [[1], [2]]
# ['b', 'a']
