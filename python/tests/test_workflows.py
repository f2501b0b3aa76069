"""Files for external services: the release workflow and the citation file, validated against their schemas."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, import_or_skip

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import_or_skip("check_jsonschema")
RELEASE = ROOT / ".github/workflows/release.yml"


def judged(schema, *files) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_workflow_files_follow_the_format_of_github_actions(tmp_path):
    answer = judged("vendor.github-workflows", *RELEASE.parent.glob("*.yml"))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(RELEASE.read_text().replace("runs-on:", "runs-at:"))
    assert judged("vendor.github-workflows", wrong).returncode == 1


def test_the_release_workflow_runs_only_scripts_and_programs_that_exist():
    text = RELEASE.read_text()
    paths = re.findall(r"(?:scripts|requirements|python)/[\w./]+", text)
    assert len(paths) >= 3
    assert not [path for path in paths if not (ROOT / path).exists()]
    needed = {name for listed in re.findall(r"needs: (.+)", text) for name in re.findall(r"\w+", listed)}
    assert needed <= set(re.findall(r"^  (\w+):$", text, re.MULTILINE))


def test_github_actions_are_pinned_by_commit_and_name_their_version():
    for workflow in RELEASE.parent.glob("*.yml"):
        uses = re.findall(r"uses: (.+)", workflow.read_text())
        assert uses
        assert not [one for one in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)], workflow


def test_each_push_is_checked_once_and_a_newer_push_cancels_the_check_of_an_older_push():
    check = (RELEASE.parent / "check.yml").read_text()
    assert "  push:\n    branches: [main]\n  pull_request:\n" in check
    assert "cancel-in-progress: ${{ github.event_name == 'pull_request' }}" in check


def test_a_ci_job_tests_the_oldest_supported_versions_of_rust_and_python():
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    job = (RELEASE.parent / "check.yml").read_text().partition("\n  oldest:\n")[2].partition("\n\n  ")[0]
    assert f'RUSTUP_TOOLCHAIN: "{rust}"' in job and f'python-version: "{python}"' in job


def released() -> tuple[str, str]:
    """Returns the version of the last release, by the changelog, and the version of the workspace."""
    release = re.search(r"^## (\d+\.\d+\.\d+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert release is not None
    return release[1], tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


@pytest.mark.slow
def test_the_citation_file_is_valid_and_names_the_version_of_the_package():
    from celltrain.cli import explain
    from celltrain.papers.paper import PAPER, describe

    answer = judged("vendor.citation-file-format", ROOT / "CITATION.cff")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    text = (ROOT / "CITATION.cff").read_text()
    release, version = released()
    assert f"\nversion: {version}\n" in text
    assert text.count(f"\ndate-released: {explain.RELEASED}\n") == text.count("date-released") == (version == release)
    assert f'\ntitle: "{explain.TITLE}"\n' in text
    assert f'\n  - name: "{explain.AUTHORS}"\n' in text
    papers = [describe(one, PAPER) for one in PAPER.ids()]
    references = text.partition("\nreferences:\n")[2].split("\n  - type: ")
    assert len(references) == len(papers) == 4
    for paper in papers:
        [own] = [one for one in references if f'title: "{paper.title}"' in one]
        names = re.findall(r"given-names: \"?([^,\"]+)\"?, family-names: (.+)\}", own)
        assert [" ".join(name) for name in names] == list(paper.authors)
        assert f"year: {paper.year}" in own


def test_after_a_release_the_version_of_the_workspace_is_the_next_development_version():
    """The results differ from those of the release, so they must not contain the release's version."""
    release, version = released()
    has_changes = "\n* " in (ROOT / "CHANGELOG.md").read_text().partition(f"\n## {release}\n")[0]
    major, minor, _ = release.split(".")
    assert version == (f"{major}.{int(minor) + 1}.0-dev0" if has_changes else release)


def test_all_files_state_the_same_version_of_the_workspace():
    """All copies of the version must be equal. If one is changed, the test fails until the others follow."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    release, version = released()
    own = {name: one["version"] for name, one in cargo["dependencies"].items() if name.startswith("celltrain-")}
    assert own and set(own.values()) == {version}
    assert json.loads((ROOT / "lab/package.json").read_text())["version"] == version
    assert f"/celltrain-{release}-cp310-abi3-" in (ROOT / "docs/installing.md").read_text()
    for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
        packages = tomllib.loads((ROOT / lock).read_text())["package"]
        mine = {one["version"] for one in packages if one["name"] in {*own, "celltrain-core"}}
        assert mine == {version}, lock
