"""The tests: units, the protocol in the simulator, real processes, and the users' own view."""
