"""`python -m orcalike` is the `orcalike` command."""

from orcalike.cli import main

if __name__ == "__main__":
    main()
