from typing import final

@final
class Parts:
    def size(self) -> int: ...
