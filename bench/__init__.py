"""Measurements of orcalike, each beside a limit that is measured in the same run."""
