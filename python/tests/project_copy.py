"""A copy of the project with the additions from the tutorial pages and the planted faults.

One build of the copy of the project serves the tests of all these pages and the test of the planted faults.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pages import ROOT, blocks, included

import faults

TARGET = ROOT / "target" / "adding"
COPY = TARGET / "copy"
COPIED = [
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "docs/abr.md",
    "docs/gfr.md",
    "docs/models",
    "scenarios",
    "papers",
    "studies",
]
#: Kinds of models with a page about adding one. The test program `adding` of `celltrain-run` runs a scenario with each.
PAGES = ["congestion_control", "measure", "policy", "topology"]
ADDING = "crates/celltrain-run/tests/adding"
#: Crates whose unit tests are not needed for the pages or the planted faults.
UNTESTED = [f"crates/celltrain-{name}" for name in ("bench", "capture", "emulate", "formula", "hosts", "web")]
#: Planted faults: each removes one statement from a function.
FAULTS = faults.read(ROOT / "crates/celltrain-core/tests/planted.csv")


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Test programs of the copy."""

    by_name: dict[tuple[str, str], str]
    """Paths of test programs, keyed by crate and target (a library's name with underscores, or `adding`)."""

    def run(self, package: str, target: str, *arguments: str) -> str:
        """Runs tests of a test program, which must pass. Returns their output."""
        program = self.by_name[package, target]
        done = subprocess.run([program, *arguments], cwd=COPY / "crates" / package, capture_output=True, text=True)
        assert done.returncode == 0, f"{program} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def page_of(kind: str) -> Path:
    """Returns the page about adding a model of this kind."""
    return ROOT / "docs" / f"adding-a-{kind.replace('_', '-')}.md"


@functools.cache
def build() -> Programs:
    """Writes the copy of the project and builds its test programs; skips without cargo."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is needed")
    with alone():
        _write(_files())
        # The whole workspace is built, so that dependencies have the features with which `cargo test` has already
        # compiled them.
        built = cargo("test", "--workspace", "--no-run", "--message-format=json")
    messages = [json.loads(line) for line in built.splitlines() if line.startswith("{")]
    return Programs(
        by_name={
            (Path(message["manifest_path"]).parent.name, message["target"]["name"]): message["executable"]
            for message in messages
            if message.get("executable")
        }
    )


@contextmanager
def alone() -> Iterator[None]:
    """Prevents other test processes from using the copy."""
    import fcntl

    TARGET.mkdir(parents=True, exist_ok=True)
    with (TARGET / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cargo(*arguments: str) -> str:
    """Runs cargo in the copy; offline if the crates have been downloaded."""
    # `cargo test` has already compiled the dependencies in this folder.
    environment = {**os.environ, "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
    command = ["cargo", *arguments]
    ended = subprocess.run(command, cwd=COPY, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def added(kind: str) -> dict[str, str]:
    """Returns the files that a page adds or changes, keyed by path, with their new text but without planted faults."""
    found: dict[str, str] = {}
    for block in blocks(page_of(kind)):
        if block.comment.startswith("file: "):
            name = block.comment.removeprefix("file: ")
            assert not (ROOT / name).exists(), f"{page_of(kind).name} would overwrite the existing file {name}"
            found[name] = included(block)
        elif block.comment.startswith("insert-after: "):
            name, _, line = block.comment.removeprefix("insert-after: ").partition(" | ")
            lines = (found.get(name) or (ROOT / name).read_text()).splitlines(keepends=True)
            [place] = [number for number, text in enumerate(lines, start=1) if line in text]
            found[name] = "".join([*lines[:place], included(block), *lines[place:]])
    return found


def _files() -> dict[str, str]:
    """Returns the text of each file in the copy, keyed by path."""
    files: dict[str, str] = {}
    for name in COPIED:
        source = ROOT / name
        for path in source.rglob("*") if source.is_dir() else [source]:
            if path.is_file() and path.suffix != ".pyc":
                files[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    # Build only the unit tests that are used, and the tests of the pages.
    unused = re.compile(r"crates/[^/]+/(tests|examples)/.*\.rs")
    files = {name: text for name, text in files.items() if not unused.fullmatch(name)}
    for name in [name for name in files if name.endswith("/Cargo.toml")]:
        files[name] = re.sub(r"\[\[(test|example)\]\]\n(.+\n)+", "", files[name])
    for crate in UNTESTED:
        text = files[f"{crate}/Cargo.toml"]
        text = text if "[lib]\n" in text else f"{text}\n[lib]\n"
        files[f"{crate}/Cargo.toml"] = text.replace("[lib]\n", "[lib]\ntest = false\n")
    changed: set[str] = set()
    for kind in PAGES:
        changes = added(kind)
        assert not changed & changes.keys(), f"{kind}: another page changes {changed & changes.keys()}"
        changed |= changes.keys()
        files |= changes
        files[f"{ADDING}/{kind}.rs"] = (ROOT / f"python/tests/rust/adding_a_{kind}.rs").read_text()
    files[f"{ADDING}/main.rs"] = "".join(f"mod {kind};\n" for kind in PAGES)
    faults.plant(files, FAULTS)
    # The examples compile in the project, and are added to their crates here.
    files["Cargo.toml"] = re.sub(r',(?:\s*#.*)?\s*"examples/[^]]*', "", files["Cargo.toml"])
    # In the project itself, the same tests draw more cases.
    tests = [f"{faults.CORE}/{name}/conformance.rs" for name in ("policy", "tcp/congestion")]
    for name in [*tests, "crates/celltrain-run/src/vetting/tests.rs"]:
        files[name] = re.sub(r"cases: \d+", "cases: 20", files[name])
    # Optimise for compile time, not for run time. The dependencies are compiled as for the project's own tests.
    for crate in ("celltrain-core", "celltrain-formula"):
        files["Cargo.toml"] += f"\n[profile.dev.package.{crate}]\nopt-level = 0\n"
    return files


def _write(files: dict[str, str]) -> None:
    """Updates the copy. Leaves unchanged files untouched, because cargo recompiles newer files."""
    for path in COPY.rglob("*"):
        if path.is_file() and path.relative_to(COPY).as_posix() not in files:
            path.unlink()
    for name, text in files.items():
        path = COPY / name
        if not path.exists() or path.read_bytes() != text.encode():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
