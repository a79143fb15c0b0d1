from typing import final

@final
class MemberAcks:
    """The members of a view; there are none until `begin`."""
