from asyncio import AbstractEventLoop

from orcalike.transport.drivers.driver import Waitable
from orcalike.transport.drivers.links import Links

class Alarms(Links):
    doze_most: int
    stopped: bool
    def attend(self, waitable: Waitable, seconds: float | None = None) -> bool: ...
    def serve_on(self, loop: AbstractEventLoop) -> None: ...
