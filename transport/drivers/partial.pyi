from collections.abc import Callable

from orcalike.transport.drivers.pump import Pump
from orcalike.transport.stack import Stack

def pending(stack: Stack) -> int: ...
def send_part(pump: Pump, stack: Stack, count: int) -> Callable[[], None]: ...
