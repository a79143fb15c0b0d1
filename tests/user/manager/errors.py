"""Errors of proxies, in the process that has called them, and a child that ends with one."""

import os
import queue
from multiprocessing import Process

from orcalike import Manager


def fail(d):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # its traceback
    try:
        d["missing"]
    except KeyError as error:
        d["error"] = f"KeyError: {error}"
    raise RuntimeError("the child's own")


if __name__ == "__main__":
    with Manager() as manager:
        d, l, q = manager.dict(), manager.list([1]), manager.Queue(1)
        child = Process(target=fail, args=(d,))
        child.start()
        child.join()
        print(child.exitcode, d)
        q.put(1)
        for call in (lambda: l[7], lambda: l.remove(3), lambda: q.put_nowait(2)):
            try:
                call()
            except (IndexError, ValueError, queue.Full) as error:
                print(type(error).__name__)
        q.get()
        try:
            q.get(timeout=0.01)
        except queue.Empty:
            print("Empty")
        try:
            manager.Lock().release()
        except RuntimeError as error:
            print(error)

# 1 {'error': "KeyError: 'missing'"}
# IndexError
# ValueError
# Full
# Empty
# release unlocked lock
