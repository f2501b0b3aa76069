"""Regenerates every derived file, and prints what changed, grouped by cause: `make bless`.

It refuses to run in CI, and with a debug build of celltrain. If there are uncommitted changes, it continues only with
`FORCE=1`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import moved
from celltrain import _core

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
TESTS = [PYTHON, "-m", "pytest", "--quiet", "--no-header", "-p", "no:cacheprovider"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A cause of changes, and the command that writes the affected files."""

    cause: str
    command: list[str]
    may_fail: bool = False
    """True for tests, which fail when they write files. `make test` then reports the remaining problems."""
    environment: dict[str, str] = field(default_factory=lambda: {"CELLTRAIN_BLESS": "1"})


def cargo(target: str, name: str) -> list[str]:
    """Returns the command for the Rust tests with this name. `make test` runs the same test programs, compiled once."""
    return ["cargo", "test", "--workspace", "--quiet", *target.split(), name]


def script(name: str) -> list[str]:
    """Returns the command for a script of this folder."""
    return [PYTHON, f"scripts/{name}.py"]


STEPS = [
    Step(cause="types of scenarios: Python classes and stubs", command=script("generate_models")),
    Step(cause="plans: their JSON Schema", command=script("plan_schema")),
    Step(cause="register of standards: links to tests", command=[*script("standards"), "--write"]),
    Step(
        cause="formulas: names and functions on their page",
        command=cargo("--lib", "the_page_about_formulas_lists"),
        may_fail=True,
    ),
    Step(
        cause="faults of scenarios: their messages",
        command=cargo("--lib", "the_parsed_example_scenarios_equal_the_saved_parse_results"),
        may_fail=True,
    ),
    Step(
        cause="results of runs: fingerprints",
        command=cargo("--test integration", "fingerprints_of_every_eighth_shipped_scenario"),
        may_fail=True,
    ),
    Step(
        cause="output of commands: help, tables, messages and saved answers",
        command=[*TESTS, *(f"python/tests/test_{name}.py" for name in ("snapshots", "messages", "answers"))],
        may_fail=True,
    ),
]


def main() -> None:
    """Runs every step and prints the changes of each."""
    refuse(os.environ, moved.git("status", "--porcelain"), _core.build()["profile"])
    head = moved.git("rev-parse", "HEAD").strip()
    state, failed = files(), []
    for step in STEPS:
        print(f"bless: {step.cause}", file=sys.stderr)
        done = subprocess.run(step.command, cwd=ROOT, env={**os.environ, **step.environment}, capture_output=True)
        if done.returncode != 0 and not step.may_fail:
            sys.exit(f"{(done.stdout + done.stderr).decode()}\nbless: {' '.join(step.command)} failed")
        before, state = state, files()
        changed = sorted(name for name in before.keys() | state.keys() if before.get(name) != state.get(name))
        if changed:
            print(f"\n{step.cause}\n" + "\n".join(f"    {line}" for line in sizes(changed)))
        elif done.returncode != 0:
            failed.append(step)
            print((done.stdout + done.stderr).decode()[-2000:], file=sys.stderr)
    print("\n" + "\n".join(moved.report(head)))
    if failed:
        sys.exit("bless: these steps failed and changed nothing: " + "; ".join(step.cause for step in failed))


def refuse(environment: os._Environ[str] | dict[str, str], uncommitted: str, profile: str = "release") -> None:
    """Exits with 2 in CI, with a debug build of celltrain, and with uncommitted changes unless FORCE=1."""
    if profile != "release":
        print("bless: celltrain is a debug build, and saved answers would name it; run: make setup", file=sys.stderr)
        sys.exit(2)
    if environment.get("CI"):
        print("bless: refuses to run in CI (the variable CI is set), where it would accept any change", file=sys.stderr)
        sys.exit(2)
    if uncommitted.strip():
        print(
            "bless: there are uncommitted changes, which will mix with the regenerated files:\n"
            + "".join(f"    {line}\n" for line in uncommitted.splitlines()[:20]),
            end="",
            file=sys.stderr,
        )
        if environment.get("FORCE") != "1":
            print("bless: commit them, or run: make bless FORCE=1", file=sys.stderr)
            sys.exit(2)


def files() -> dict[str, str]:
    """Returns a checksum of each file that differs from the last commit, keyed by path."""
    names = [line[3:].strip('"') for line in moved.git("status", "--porcelain", "--untracked-files=all").splitlines()]
    return {
        name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() if (ROOT / name).is_file() else ""
        for name in names
    }


def sizes(names: list[str]) -> list[str]:
    """Returns each path with the numbers of its added and removed lines."""
    rows = (line.split("\t") for line in moved.git("diff", "--numstat", "HEAD", "--", *names).splitlines())
    counts = {name: f"+{added} -{removed}" for added, removed, name in rows}
    return [f"{name}  {counts.get(name, 'new')}" for name in names]


if __name__ == "__main__":
    main()
