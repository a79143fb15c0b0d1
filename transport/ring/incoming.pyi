from typing import final

@final
class Incoming:
    def size(self) -> int: ...
