"""The simulator: any number of stacks in one process, on a virtual clock, from one seed.

It drives the same compiled stacks that run in production. All that happens
is an event on one heap, ordered by time and by a tie that is drawn from the seed; so a seed is a
schedule, and the same seed gives the same trace. Links are reliable FIFO channels, as COM wants
them; processes die, stop and come back; directions between two of them are cut.
"""

from orcalike.transport.drivers.sim.network import Delays, Path
from orcalike.transport.drivers.sim.node import End, Node
from orcalike.transport.drivers.sim.streams import Stream
from orcalike.transport.drivers.sim.world import World

__all__ = ["Delays", "End", "Node", "Path", "Stream", "World"]
