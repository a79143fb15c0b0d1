"""Proxies in proxies: what is put into the inner one is seen through the outer one."""

from multiprocessing import Process

from orcalike import Manager


def fill(outer):
    outer[0]["first"] = "in a child"
    outer[1].append("deeper")


if __name__ == "__main__":
    with Manager() as manager:
        a = manager.list()
        b = manager.list()
        a.append(b)
        print(repr(a[0])[:35], b)
        b.append("hello")
        print(a[0], b)
        outer = manager.list([manager.dict() for i in range(2)])
        outer[1] = manager.list(["flat"])
        child = Process(target=fill, args=(outer,))
        child.start()
        child.join()
        print(*outer)

# <ListProxy object, typeid 'list' at []
# ['hello'] ['hello']
# {'first': 'in a child'} ['flat', 'deeper']
