from typing import final

@final
class Roster:
    """The members of a view; there are none until `begin`."""
