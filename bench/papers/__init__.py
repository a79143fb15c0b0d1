"""The papers' own experiments, as shapes beside today's figures; `python -m orcalike.bench.papers`."""
