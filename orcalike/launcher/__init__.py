"""The launcher: processes of a run, their output, their signals and their end; and its witness."""
