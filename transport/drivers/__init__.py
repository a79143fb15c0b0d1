"""The drivers: what connects the protocol core to sockets, threads, clocks, or to a simulation."""
