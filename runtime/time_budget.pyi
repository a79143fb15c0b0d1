from orcalike.runtime.budget import Budget

class TimeBudget:
    """How long packets and operations have taken on the thread that receives."""

    accounts: Budget
