"""`python -m tests.histories FOLDER --r DEGREE`."""

from tests.histories.judge import main

main()
