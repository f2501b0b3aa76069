"""The lab: its command, and the page, which `make lab-test` tests if node and the page are available."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import celltrain.cli.installation as command
import lab_data
import wheels
from celltrain.model import shipped

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "dist" / "lab.html"


def without_tools(tmp_path: Path) -> dict[str, str]:
    """Returns an environment whose PATH has the system's tools but no node, npm or cargo."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "bash", "make", "find", "test", "mkdir", "touch"):
        found = shutil.which(tool)
        if found is not None:
            (tools / tool).symlink_to(found)
    return {"PATH": str(tools), "HOME": str(tmp_path), "MAKEFLAGS": ""}


def test_the_lab_command_opens_the_lab_page_in_a_browser(celltrain, tmp_path, monkeypatch):
    page = tmp_path / "lab.html"
    page.write_text("<title>celltrain lab</title>")
    monkeypatch.setattr(command, "PAGE", page)
    opened: list[str] = []
    monkeypatch.setattr(command.webbrowser, "open", lambda address: opened.append(address) or True)
    assert page.as_uri() in celltrain("lab").out
    assert opened == [page.as_uri()]
    answer = celltrain("lab", "--json").json
    assert answer == {"page": page.as_uri(), "bytes": page.stat().st_size}
    copy = tmp_path / "copy.html"
    assert copy.as_uri() in celltrain("lab", "--out", copy).out
    assert copy.read_bytes() == page.read_bytes()
    assert opened == [page.as_uri()], "only the command without options opens a browser"


def test_if_the_lab_page_has_not_been_built_the_lab_command_explains_how_to_build_it(celltrain, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "PAGE", tmp_path / "lab.html")
    answer = celltrain("lab")
    assert answer.code == 2
    for words in ("make lab", "node 20", "npm", "cargo", "rustup target add wasm32-unknown-unknown"):
        assert words in " ".join(answer.err.split())


def test_a_release_wheel_cannot_be_built_without_the_lab_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(wheels, "PAGE", tmp_path / "lab.html")
    monkeypatch.setattr(wheels, "build", lambda target: pytest.fail("nothing is built"))
    monkeypatch.setattr(wheels, "built", lambda: pytest.fail("nothing is removed"))
    monkeypatch.setattr("sys.argv", ["wheels.py", "--with-lab"])
    assert wheels.main() == 1
    assert "build the page with make lab" in capsys.readouterr().err
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert release.index("make lab-test") < release.index("wheels.py --with-lab")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")
def test_the_make_target_lab_lists_all_missing_tools_and_builds_nothing(tmp_path):
    done = subprocess.run(
        ["make", ".make/lab-tools"], cwd=ROOT, env=without_tools(tmp_path), capture_output=True, text=True
    )
    assert done.returncode == 2
    for words in ("node is needed", "npm is needed", "cargo is needed", "rustup target add wasm32-unknown-unknown"):
        assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_make_targets_demo_and_test_do_not_require_node():
    text = (ROOT / "Makefile").read_text()
    rules = dict(re.findall(r"^([\w./ -]+):([^=\n]*)$", text, re.MULTILINE))

    def needs(target: str) -> set[str]:
        found: set[str] = set()
        ahead = [target]
        while ahead:
            for needed in rules.get(ahead.pop(), "").replace("|", " ").split():
                if needed not in found:
                    found.add(needed)
                    ahead.append(needed)
        return found

    assert ".make/lab-tools" in needs("lab")
    for target in ("demo", "test", "setup", "docs", "wheel"):
        assert ".make/lab-tools" not in needs(target)


CLAIMS = Path("page/claims.test.ts")


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.is_file():
        pytest.skip("dist/lab.html is missing: run make lab")
    return PAGE.read_text(encoding="utf-8")


def test_the_lab_page_is_one_file_of_limited_size_and_loads_no_other_files(page):
    assert len(page.encode()) <= 3_000_000
    assert len(gzip.compress(page.encode(), 9)) <= 1_560_000
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert "unsafe-inline" not in policy[1] and "'unsafe-eval'" not in policy[1]
    head = page[: page.index("<script")]
    assert not re.search(r'(?:src|href)="(?!data:)', head)


def node_tests(tests: list[Path], tmp_path: Path, **environment: str) -> None:
    """Bundles the lab's tests and runs the named tests."""
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    if not (ROOT / "lab" / "node_modules").is_dir():
        pytest.skip("lab/node_modules is missing: run make lab")
    # Node resolves packages relative to the folder of a test.
    folder = ROOT / "lab" / "out" / tmp_path.name
    try:
        subprocess.run(["node", "build.mjs", "--tests", str(folder)], cwd=ROOT / "lab", check=True)
        files = [str(folder / test.with_suffix(".mjs")) for test in tests]
        done = subprocess.run(
            ["node", "--test", "--test-reporter=spec", *files],
            cwd=ROOT / "lab",
            env={**os.environ, "CELLTRAIN_LAB": str(PAGE), **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def files_in(*folders: str) -> list[Path]:
    tests = ROOT / "lab" / "tests"
    return sorted(test.relative_to(tests) for folder in folders for test in (tests / folder).glob("*.test.ts*"))


@pytest.fixture(scope="module")
def native(tmp_path_factory) -> str:
    """A file with this machine's results of all shipped scenarios."""
    file: Path = tmp_path_factory.mktemp("lab") / "native.json"
    file.write_text(json.dumps(lab_data.answers()))
    return str(file)


@pytest.mark.nightly
def test_on_the_lab_page_every_shipped_scenario_has_the_same_fingerprint_as_in_the_native_engine(
    page, native, tmp_path
):
    left_out = {*shipped.names("scenario")} - {*json.loads(Path(native).read_text())}
    assert left_out == {"lan-quic"}, "the lab page does not include QUIC"
    # Checking the claims of the stories takes half a minute of simulation.
    node_tests([*files_in("engine"), CLAIMS], tmp_path, CELLTRAIN_NATIVE=native)


def test_on_the_lab_page_some_shipped_scenarios_have_the_same_fingerprints_as_in_the_native_engine(page, tmp_path):
    native = tmp_path / "native.json"
    native.write_text(json.dumps(lab_data.answers(every=8)))
    files = [file for file in files_in("engine", "page") if file != CLAIMS]
    node_tests(files, tmp_path, CELLTRAIN_NATIVE=str(native))


def chromium() -> str:
    """Returns the path of the browser; skips if there is none."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("neither chromium nor google-chrome is installed")
    return found


@pytest.mark.nightly
def test_the_lab_page_works_in_a_browser(page, native, tmp_path):
    node_tests(files_in("engine/browser", "page/browser"), tmp_path, CHROMIUM=chromium(), CELLTRAIN_NATIVE=native)
