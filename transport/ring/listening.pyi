from orcalike.transport.ring.fast import FastOrder

class ListeningOrder(FastOrder):
    """An order in memory, of which news wakes this member."""
