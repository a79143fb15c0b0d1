"""Children that put their own children's work into one dict."""

from multiprocessing import Process

from orcalike import Manager


def inner(d, name):
    d[name] = d[name] * 2


def outer(d, name):
    d[name] = len(name)
    child = Process(target=inner, args=(d, name))
    child.start()
    child.join()


if __name__ == "__main__":
    with Manager() as manager:
        d = manager.dict()
        children = [Process(target=outer, args=(d, name)) for name in ("a", "bc")]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print(sorted(d.items()))

# [('a', 2), ('bc', 4)]
