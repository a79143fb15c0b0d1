from typing import final

@final
class Ring:
    """A queue that grows as it must."""
