"""A process class with proxies in its attributes."""

from multiprocessing import Process

from orcalike import Manager


class Account:
    def __init__(self, manager, balance):
        self.lock = manager.Lock()
        self.balance = manager.Value("i", balance)

    def add(self, amount):
        with self.lock:
            self.balance.value += amount


class Clerk(Process):
    def __init__(self, account, amounts):
        super().__init__()
        self.account = account
        self.amounts = amounts

    def run(self):
        for amount in self.amounts:
            self.account.add(amount)


if __name__ == "__main__":
    with Manager() as manager:
        account = Account(manager, 100)
        clerks = [Clerk(account, range(10)), Clerk(account, range(-10, 0))]
        for clerk in clerks:
            clerk.start()
        for clerk in clerks:
            clerk.join()
        print(account.balance.value)

# 90
