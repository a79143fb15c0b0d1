class GroupClock:
    """What reads take for the time; it never goes back."""
