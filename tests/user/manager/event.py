"""Two processes that wait for an event, one of them not for long."""

from multiprocessing import Process

from orcalike import Manager


def wait_for_event(event, log):
    log.append(event.wait())


def wait_for_event_timeout(event, seconds, log):
    log.append(event.wait(seconds))


if __name__ == "__main__":
    with Manager() as manager:
        event, log = manager.Event(), manager.list()
        patient = Process(target=wait_for_event, args=(event, log))
        brief = Process(target=wait_for_event_timeout, args=(event, 0.05, log))
        patient.start()
        brief.start()
        brief.join()
        print(log, event.is_set())
        event.set()
        patient.join()
        print(log, event.is_set())
        event.clear()
        print(event.is_set())

# [False] False
# [False, True] True
# False
