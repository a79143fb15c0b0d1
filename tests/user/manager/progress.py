"""The state of tasks that a pool runs, seen by the process that has started them."""

from multiprocessing import Pool

from orcalike import Manager


def task(name, states):
    states[name] = "running"
    states[name] = "done"
    return name


if __name__ == "__main__":
    with Manager() as manager:
        states, names = manager.dict(), []
        with Pool(2) as pool:
            results = [
                pool.apply_async(task, (f"task {n}", states), callback=names.append)
                for n in range(6)
            ]
            for result in results:
                result.get()
        print(set(states.values()), len(states), min(names))

# {'done'} 6 task 0
