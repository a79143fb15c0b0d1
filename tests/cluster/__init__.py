"""Tests with real processes, sockets and signals."""
