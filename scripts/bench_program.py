"""Builds `celltrain-bench` and asks it, for the scripts that count and draw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CRATE = ROOT / "crates" / "celltrain-bench"


def build() -> Path:
    """The optimised program."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "celltrain-bench"]
    command += ["--bin", "celltrain-bench", "--message-format", "json-render-diagnostics"]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit("cargo is needed: install Rust (https://rustup.rs)")
    if done.returncode != 0:
        sys.exit(done.returncode)
    messages = (json.loads(line) for line in done.stdout.splitlines())
    [program] = [message["executable"] for message in messages if message.get("executable")]
    return Path(program)


def compiler() -> str:
    """The release of the compiler, such as 1.95.0."""
    return output(["rustc", "--version"]).split()[1]


def cases(program: Path, group: str) -> dict[str, str]:
    """The names and titles of the scenarios of a group: whole, scaling or guard."""
    listed = json.loads(output([str(program), "--list", "--json"]))
    return {case["scenario"]: case["title"] for case in listed if case["group"] == group}


def run(program: Path, scenario: str, engine: str, *, under: list[str] | None = None) -> dict[str, Any]:
    """What one run says, `under` another program if need be."""
    answer: dict[str, Any] = json.loads(
        output([*(under or []), str(program), "--scenario", scenario, "--engine", engine, "--json"])
    )
    return answer


def output(command: list[str]) -> str:
    """What a command prints; its complaints are shown when it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout
