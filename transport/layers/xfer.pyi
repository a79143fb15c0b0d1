from typing import final

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core
from orcalike.transport.view import Member
from orcalike.transport.xfer.donor import Donor

@final
class Xfer(Donor):
    def awaited_donors(self) -> tuple[Member, ...]: ...
    def __init__(self, core: Core, config: StackConfig, me: Member) -> None: ...
