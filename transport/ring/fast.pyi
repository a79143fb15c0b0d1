from orcalike.transport.drivers.mapped_order import MappedOrder

class FastOrder(MappedOrder):
    """An order in memory, into which PACK puts packets past the layers between."""
