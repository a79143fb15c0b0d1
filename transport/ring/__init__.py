"""The order in shared memory: its protocol, in C, and what is said of it in a change of view."""
