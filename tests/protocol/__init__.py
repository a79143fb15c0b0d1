"""The protocol core in the simulator: promises 1 to 5, 11 and 15 of docs/model.md."""
