"""The commands of installing.md run, and every command and make target on a page exists."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from pages import blocks

from celltrain.cli import COMMANDS

PAGE = ROOT / "docs/installing.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def lines(beginning: str) -> list[str]:
    """Returns the lines of the block in installing.md that contains this text."""
    [block] = [block for block in blocks(PAGE) if beginning in block.text]
    return block.text.splitlines()


@pytest.mark.slow
@pytest.mark.nightly
def test_following_the_installation_page_in_a_fresh_clone_produces_a_figure(tmp_path):
    # Works offline: it uses the packages of this environment and the compiler's existing output.
    offline = {
        **os.environ,
        # Builds without isolation need maturin on the path.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PYTHONPATH": os.pathsep.join(site.getsitepackages()),
        "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")),
    }
    for line in lines("pip install '.[plot]'"):
        command = line.replace("mine", str(tmp_path / "mine")).replace("first.svg", str(tmp_path / "first.svg"))
        answer = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT, env=offline, timeout=600
        )
        assert answer.returncode == 0, f"{line}\n{answer.stdout}{answer.stderr}"
    assert "lan-selective-drop" in (tmp_path / "first.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_and_make_target_that_a_page_names_exists(page: Path):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:\S*/)?celltrain ([a-z]+)", text))
    code = "\n".join(block.text for block in blocks(page) if block.language in ("console", "sh", "text"))
    named |= set(re.findall(r"(?m)^(?:\$ )?(?:\S*/)?celltrain ([a-z]+)", code))
    assert named <= {*COMMANDS}
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets
