from typing import Self, final

@final
class ReadBuffer:
    def __new__(cls, data: bytes | bytearray | memoryview) -> Self: ...
