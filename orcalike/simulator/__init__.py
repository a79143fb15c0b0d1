"""The simulator: groups on a simulated network, with faults, and all invariants checked."""
