"""A dict and a list that a child process changes ("Server process" of multiprocessing's manual)."""

from multiprocessing import Process

from orcalike import Manager


def f(d, l):
    d[1] = "1"
    d["2"] = 2
    d[0.25] = None
    l.reverse()


if __name__ == "__main__":
    with Manager() as manager:
        d = manager.dict()
        l = manager.list(range(10))
        p = Process(target=f, args=(d, l))
        p.start()
        p.join()
        print(d)
        print(l)

# {1: '1', '2': 2, 0.25: None}
# [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
