"""`make bless` refuses in CI and with uncommitted changes; `moved` lists the numbers that a change moves."""

from __future__ import annotations

import pytest

import bless
import moved


def test_the_bless_command_refuses_to_run_in_continuous_integration(capsys):
    with pytest.raises(SystemExit) as ended:
        bless.refuse({"CI": "true", "FORCE": "1"}, "")
    assert ended.value.code == 2
    assert "refuses to run in CI" in capsys.readouterr().err


def test_the_bless_command_lists_uncommitted_changes_and_continues_only_with_force(capsys):
    with pytest.raises(SystemExit) as ended:
        bless.refuse({}, " M README.md\n")
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "README.md" in said and "make bless FORCE=1" in said
    bless.refuse({"FORCE": "1"}, " M README.md\n")
    assert "README.md" in capsys.readouterr().err
    bless.refuse({}, "")
    assert capsys.readouterr().err == ""


def test_the_bless_command_refuses_a_debug_build_because_saved_outputs_state_the_build_profile(capsys):
    with pytest.raises(SystemExit) as ended:
        bless.refuse({"FORCE": "1"}, "", "debug")
    assert ended.value.code == 2
    assert "make setup" in capsys.readouterr().err


def test_every_script_and_test_that_the_bless_command_runs_exists():
    words = [word for step in bless.STEPS for word in step.command]
    paths = [bless.ROOT / word for word in words if word.endswith(".py")]
    assert len(paths) >= 5
    assert [path for path in paths if not path.exists()] == []


def test_every_rust_test_that_the_bless_command_runs_exists():
    """Cargo succeeds even if no test has the given name."""
    names = [step.command[-1] for step in bless.STEPS if step.command[0] == "cargo"]
    text = "".join(path.read_text() for path in (bless.ROOT / "crates").glob("celltrain-*/**/*.rs"))
    assert len(names) == 3
    assert [name for name in names if f"fn {name}" not in text] == []


def test_the_bless_command_reports_a_changed_fingerprint_with_both_values():
    old = "scenario,seed,fingerprint\na,1,x\nb,1,y\n"
    assert moved.fingerprints(old, old.replace("y", "z") + "c,1,w\n") == [
        "b, seed 1: y -> z",
        "c, seed 1: absent -> w",
    ]


@pytest.mark.parametrize(
    ("suffix", "old", "new", "row"),
    [
        (".csv", "case,n,x\nlan,5,0.50\n", "case,n,x\nlan,5,0.75\n", "| lan, 5, x | 0.50 | 0.75 | +0.25 (+50.00%) |"),
        (".json", '{"a": [{"b": 2}]}', '{"a": [{"b": 1}]}', "| a[0].b | 2 | 1 | -1 (-50.00%) |"),
        (
            ".md",
            "text 9\n| EPD | 0.5 | A-25 |\n",
            "text 8\n| EPD | 0.6 | A-26 |\n",
            "| EPD | 0.5 | 0.6 | +0.1 (+20.00%) |",
        ),
    ],
)
def test_the_bless_command_reports_the_change_of_a_reproduced_number(suffix, old, new, row):
    assert moved.numbers_moved(old, new, suffix) == [row]
    assert moved.numbers_moved(old, old, suffix) == []


def test_the_bless_command_reports_no_change_if_a_commit_is_compared_with_itself():
    if not (moved.ROOT / ".git").exists():
        pytest.skip("no git checkout")
    head = moved.git("rev-parse", "HEAD").strip()
    if not moved.git("status", "--porcelain", "--", moved.FINGERPRINTS, *moved.FOLDERS):
        assert moved.report(head) == ["**Fingerprints:** none moved.", "", "**Published numbers:** none moved."]


def test_every_page_about_adding_a_model_ends_with_the_bless_command():
    pages = sorted((bless.ROOT / "docs").glob("adding-*.md"))
    assert len(pages) >= 5
    assert [page.name for page in pages if "make bless" not in page.read_text()] == []
