"""The wire: messages with headers pushed and popped in one buffer."""
