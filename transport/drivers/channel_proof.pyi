"""The proof of the key on a channel; C alone uses it."""
