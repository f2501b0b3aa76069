"""Does what a page about adding something says, in a copy of the project, and runs cargo there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import ROOT, blocks

# Compiled once and kept, so that a second run takes seconds; the copies stand in one place each for the same reason.
TARGET = ROOT / "target" / "adding"
COPIED = [
    "Cargo.toml",
    "Cargo.lock",
    "rustfmt.toml",
    "crates",
    "docs/abr.md",
    "docs/gfr.md",
    "docs/measures.md",
    "docs/models",
    "scenarios",
    "papers",
    "studies",
]


def applied(page: Path, *, also: dict[str, str], of: Path) -> Path:
    """A copy of the project with what a page adds in it, and files of the test `of`; skips where there is no cargo."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is needed")
    copy = TARGET / page.stem
    shutil.rmtree(copy, ignore_errors=True)
    for name in COPIED:
        source, target = ROOT / name, copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
    made_from = (page, of, Path(__file__))
    for block in blocks(page):
        if block.comment.startswith("file: "):
            _write(copy / block.comment.removeprefix("file: "), block.text, made_from)
        elif block.comment.startswith("insert-after: "):
            name, _, line = block.comment.removeprefix("insert-after: ").partition(" | ")
            lines = (copy / name).read_text().splitlines(keepends=True)
            [place] = [number for number, text in enumerate(lines, start=1) if line in text]
            _write(copy / name, "".join([*lines[:place], block.text, *lines[place:]]), made_from)
    for name, text in also.items():
        _write(copy / name, text, made_from)
    _make_young(copy)
    return copy


def _make_young(copy: Path) -> None:
    """Makes cargo compile the copy's own crates where it compiled those of another page last, which it cannot tell from these.

    It knows a crate by its place in the workspace and by the age of its files. Both copies share what they depend on.
    """
    last = TARGET / "last-page"
    if not last.exists() or last.read_text() != copy.name:
        for root in copy.glob("crates/*/src/lib.rs"):
            root.touch()
        last.write_text(copy.name)


def _write(path: Path, text: str, made_from: tuple[Path, ...]) -> None:
    """Writes a file that is no younger than what it is made from: cargo compiles what is younger than last time."""
    sources = [*made_from, *([path] if path.exists() else [])]
    youngest = max(source.stat().st_mtime for source in sources)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (youngest, youngest))


def cargo(project: Path, *arguments: str) -> str:
    """Runs cargo in a copy; without a network where the crates are there already."""
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(TARGET / "build"),
        # Quick to compile rather than quick to run.
        **{f"CARGO_PROFILE_{profile}_OPT_LEVEL": "0" for profile in ("DEV", "TEST")},
        **{f"CARGO_PROFILE_{profile}_DEBUG": "0" for profile in ("DEV", "TEST")},
    }
    command = ["cargo", *arguments]
    ended = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def formatted(project: Path, package: str) -> None:
    """Fails if `cargo fmt` would change a file of a package; skips if there is no rustfmt."""
    if shutil.which("rustfmt") is None:
        pytest.skip("rustfmt is needed")
    cargo(project, "fmt", "--check", "--package", package)
