"""A namespace, whose attributes with an underscore are the proxy's own."""

from multiprocessing import Process

from orcalike import Manager


def set_y(shared):
    shared.y = "hello"
    shared.x += 1
    del shared.gone


if __name__ == "__main__":
    manager = Manager()
    shared = manager.Namespace(gone=1)
    shared.x = 10
    shared._z = 12.3
    child = Process(target=set_y, args=(shared,))
    child.start()
    child.join()
    print(shared)
    print(hasattr(shared, "gone"), shared._z)

# Namespace(x=11, y='hello')
# False 12.3
