"""Tests of `orcalike.objects`, CPython's own among them."""
