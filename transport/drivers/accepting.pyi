"""Taking what a listener has accepted: connections of non-members, which have greeted."""
