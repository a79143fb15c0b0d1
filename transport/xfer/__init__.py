"""XFER: the state of a group for joiners."""
