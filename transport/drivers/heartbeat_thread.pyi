"""The thread of the heartbeats; C alone uses it."""
