"""The layers, one protocol a file."""
