from asyncio import AbstractEventLoop

from orcalike.transport.drivers.links import Links

class Alarms(Links):
    doze_most: int
    stopped: bool
    def serve_on(self, loop: AbstractEventLoop) -> None: ...
