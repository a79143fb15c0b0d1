"""A session: one membership of this process in a group, from `join` until it leaves."""
