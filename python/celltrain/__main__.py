"""The entry point of `python -m celltrain` and of the `celltrain` command."""

from __future__ import annotations

from celltrain import stopping


def main() -> None:
    """Runs the command line."""
    stopping.end_at_once()
    # Imports take up to a second. Ctrl-C must already work during that time.
    from celltrain import cli

    cli.main()


if __name__ == "__main__":
    main()
