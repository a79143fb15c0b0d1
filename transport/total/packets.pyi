class Packets:
    """A queue that grows as it must."""
