"""The table of the heartbeats; C alone uses it."""
