"""orcalike as a guest of other engines: their workers are the members, and they start and end them.

`orcalike.ext.dask` and `orcalike.ext.ray` need the package of that name, and are imported by nothing
else here.
"""
