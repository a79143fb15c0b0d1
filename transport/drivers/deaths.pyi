"""Deaths of members: their stacks are notified of one after all that the member had sent (H13)."""
