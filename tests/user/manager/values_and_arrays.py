"""Numbers that a child process changes ("Shared memory" of the manual, by a manager)."""

from multiprocessing import Process

from orcalike import Manager


def f(n, a):
    n.value = 3.1415927
    for i in range(len(a)):
        a[i] = -a[i]


if __name__ == "__main__":
    manager = Manager()
    num = manager.Value("d", 0.0)
    arr = manager.Array("i", range(10))
    p = Process(target=f, args=(num, arr))
    p.start()
    p.join()
    print(num.value)
    print(arr[:])
    print(num, arr[3], len(arr), sum(arr))
    try:
        arr[0] = "text"
    except TypeError:
        print("no text")
    manager.shutdown()

# 3.1415927
# array('i', [0, -1, -2, -3, -4, -5, -6, -7, -8, -9])
# Value('d', 3.1415927) -3 10 -45
# no text
