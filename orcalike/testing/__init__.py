"""What tests are made of: those of programs that use orcalike, and those of orcalike itself.

A program's tests have pytest's fixtures `orcalike_group` and `orcalike_processes` (`plugin`), and
need nothing else here.

For orcalike itself there are scenarios from seeds, checkers of the invariants, and shrinking. A
*scenario* is an explicit list of what happens to a simulated group: casts, joins and leaves, and
faults. A seed stands for one (`swarm`); `run` lets it happen with all checkers on; `shrink` makes
one that fails as small as it gets.
"""
