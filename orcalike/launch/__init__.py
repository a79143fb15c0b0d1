"""The engine of `orcalike run`: processes, their output, their signals and their end."""
