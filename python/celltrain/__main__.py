"""`python -m celltrain`, and the `celltrain` command: the command line."""

from __future__ import annotations

from celltrain import stopping


def main() -> None:
    """Runs the command line; the entry point of the `celltrain` command."""
    stopping.end_at_once()
    # Imports take up to a second, in which Ctrl-C works too.
    from celltrain import cli

    cli.main()


if __name__ == "__main__":
    main()
