"""Writes the answers of all shipped scenarios, each with its own seed.

    python scripts/lab_native.py out/lab/native.json

The lab's tests compare the page with them; `make lab-test` calls it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import celltrain as ct
from celltrain import shipped


def main() -> None:
    """Writes the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("into", type=Path, help="the JSON file to write")
    write(parser.parse_args().into)


def write(into: Path) -> None:
    """By shipped scenario the object of `celltrain run --json`."""
    answers = {name: ct.run(ct.load(name)).to_dict() for name in shipped.names("scenario")}
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
