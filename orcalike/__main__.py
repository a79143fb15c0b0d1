"""The `orcalike` command, which `python -m orcalike` is as well."""

from orcalike.cli.interrupt import ended_at_once


def main() -> None:
    """The entry point of the `orcalike` command."""
    with ended_at_once():
        from orcalike.cli.verbs import main as run  # here: it takes as long as all else
    run()


if __name__ == "__main__":
    main()
