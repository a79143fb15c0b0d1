class Holders:
    """The members of one view whose word counts."""

    replicas: int
