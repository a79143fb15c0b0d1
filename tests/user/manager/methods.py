"""What proxies have besides: `str` and `repr`, slices, `_callmethod`, copies."""

import copy
import pickle

from orcalike import Manager

if __name__ == "__main__":
    manager = Manager()
    l = manager.list([i * i for i in range(10)])
    print(l)
    print(repr(l)[:34])
    print(l[4], l[2:5], 16 in l, len(l), l.index(9), l.count(4))
    print(l._callmethod("__len__"), l._callmethod("__getitem__", (slice(2, 7),)))
    l += [7, 3]
    l.sort(reverse=True)
    del l[0]
    l[0:2] = ["a"]
    print(l + [7] * 2, l.pop(), list(reversed(l))[:2])
    print(copy.deepcopy(l) == list(l), type(copy.deepcopy(l)))
    d = manager.dict({"x": 1}, y=2)
    d.update(z=3)
    print(d.keys(), d.values(), d.items(), "x" in d, d.get("w", 0), d.setdefault("w", 4))
    print(sorted(d), d.pop("x"), d.copy(), d.popitem(), len(d))
    again = pickle.loads(pickle.dumps(d))
    again.clear()
    print(d)
    manager.shutdown()

# [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]
# <ListProxy object, typeid 'list' a
# 16 [4, 9, 16] True 10 3 1
# 10 [4, 9, 16, 25, 36]
# ['a', 36, 25, 16, 9, 7, 4, 3, 1, 0, 7, 7] 0 [1, 3]
# True <class 'list'>
# ['x', 'y', 'z'] [1, 2, 3] [('x', 1), ('y', 2), ('z', 3)] True 0 4
# ['w', 'x', 'y', 'z'] 1 {'y': 2, 'z': 3, 'w': 4} ('w', 4) 2
# {}
