"""Membership: views, the agreement on them, and the quorum."""
