"""The simulator: groups on a simulated network, with faults, and all invariants checked.

A *scenario* is an explicit list of what happens to a group: casts, joins and leaves, and faults. A
seed stands for one (`generator`); `simulation` runs it with all checkers on; `shrink` makes one
that fails as small as it gets.
"""
