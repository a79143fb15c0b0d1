"""What launcher and rank say to each other: the variables and the lines, written and read here."""
