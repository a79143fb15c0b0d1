from typing import Any

DEPTH_MAX: int
ELEMENTS_MAX: int

def unpack(data: bytes, what: str, depth: int = ..., elements: int = ...) -> Any: ...
def shown(text: str) -> str: ...
