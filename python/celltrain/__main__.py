"""`python -m celltrain`: the command line."""

from celltrain.cli import main

main()
