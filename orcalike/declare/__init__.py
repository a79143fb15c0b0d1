"""Declarations: what a program says of its classes, and what is checked when it says it."""
