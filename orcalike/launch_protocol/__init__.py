"""What launcher and rank exchange: variables and lines, written and read here."""
