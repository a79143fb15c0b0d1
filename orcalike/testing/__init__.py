"""What examines orcalike itself: scenarios from seeds, checkers of the invariants, shrinking.

A *scenario* is an explicit list of what happens to a simulated group: casts, joins and leaves, and
faults. A seed stands for one (`swarm`); `run` lets it happen with all checkers on; `shrink` makes
one that fails as small as it gets. Programs do not need this package.
"""
