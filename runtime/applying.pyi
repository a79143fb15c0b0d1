from collections import OrderedDict

from orcalike.runtime.replica import Replica
from orcalike.runtime.sender import Sender
from orcalike.runtime.time_budget import TimeBudget
from orcalike.transport.layers.base import Layer
from orcalike.transport.view import Member

class Applying(Layer):
    """Invocations of objects, as they come in the order."""

    look_at: int
    @property
    def sender(self) -> Sender: ...
    @property
    def budget(self) -> TimeBudget: ...
    @property
    def position(self) -> int: ...
    @property
    def dirty(self) -> OrderedDict[Replica, None]: ...
    def note_ran(self, replica: Replica, bit: int) -> None: ...
    def member_at(self, position: int) -> Member: ...
