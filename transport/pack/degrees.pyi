from typing import final

@final
class DegreesOfMessages:
    """Runs of messages of one degree, by the message's number."""
