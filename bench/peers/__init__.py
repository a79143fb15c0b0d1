"""Orcalike beside what people would use instead: `python -m orcalike.bench.peers`.

Each peer is a program of its own, set up for speed as its documentation says; `answers.py` has what
they share. `catalogue.py` lists them, `rounds.py` measures each in interleaved rounds with orcalike.
"""
