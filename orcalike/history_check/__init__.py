"""Checkers of recorded histories: what `ORCALIKE_HISTORY` wrote is held against the promises.

`check.check_folder(folder, degree)` reads a folder and gives all that is wrong; `orcalike check-history`
prints it. Nothing here knows how orcalike works: the records (docs/history.md) and the invariants
(docs/internals/invariants.md) are all there is.
"""
