"""Inputs of others, drawn and mutated, for all compiled code that reads them: `make fuzz-asan`."""
