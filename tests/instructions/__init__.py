"""What each operation takes, in instructions: the same each time, whatever else the machine does."""
