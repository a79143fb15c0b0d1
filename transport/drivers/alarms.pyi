from asyncio import AbstractEventLoop

from orcalike.transport.drivers.links import Links

class Alarms(Links):
    def serve_on(self, loop: AbstractEventLoop) -> None: ...
