"""A plain dict in a list is a copy: a change of it is put back ("Proxy objects")."""

from orcalike import Manager

if __name__ == "__main__":
    with Manager() as manager:
        lproxy = manager.list()
        lproxy.append({})
        d = lproxy[0]
        d["a"] = 1
        d["b"] = 2
        print(lproxy)
        lproxy[0] = d
        print(lproxy)

# [{}]
# [{'a': 1, 'b': 2}]
