"""The lint for prose (scripts/prose.py) finds the constructions it looks for, and only in their kind of text."""

from __future__ import annotations

import subprocess

import pytest

import prose

SENTENCE = "What came of a run is kept."
NAME = "what_came_of_a_run_is_kept"

KINDS = {kind.name: kind for kind in prose.KINDS}


@pytest.mark.parametrize(
    ("name", "file", "text", "line"),
    [
        ("pages", "a.md", f"# A page\n\n{SENTENCE}\n", 3),
        ("table cells", "a.md", f"| a |\n|---|\n| b | {SENTENCE} |\n", 3),
        ("comments in Python", "a.py", f'"""{SENTENCE}"""\n', 1),
        ("comments in Python", "a.py", f"x = 1  # {SENTENCE}\n", 1),
        ("strings in Python", "a.py", f'x = 1\ny = f"{{x}}: " "{SENTENCE}"\n', 2),
        ("strings in Python", "a.py", 'x = (\n    "What came "\n    f"of a run is kept."\n)\n', 2),
        ("comments in Rust", "a.rs", f"/// {SENTENCE}\nfn f() {{}}\n", 1),
        ("strings in Rust", "a.rs", f'let c = \'"\'; // "\nlet x = "{SENTENCE}";\n', 2),
        ("strings in Rust", "a.rs", 'let x = "What came \\\n    of a run is kept.";\n', 1),
        ("comments in TypeScript", "a.ts", f"/** {SENTENCE} */\n", 1),
        ("test names", "a.rs", f"\n#[test]\nfn {NAME}() {{}}\n", 3),
        ("test names", "tests/test_a.py", f"def test_{NAME}():\n", 1),
        ("comments in configuration", ".github/workflows/a.yml", f"a: 1\nb: 2  # {SENTENCE}\n", 2),
        ("comments in configuration", "Makefile", f"# {SENTENCE}\n", 1),
    ],
)
def test_the_prose_check_reports_a_construction_only_for_the_kind_of_text_that_contains_it(name, file, text, line):
    read = [kind for kind in prose.KINDS if kind.files.search(file)]
    assert KINDS[name] in read
    for kind in read:
        found = [(at, pattern) for at, pattern, _ in prose.hits(kind, text)[1]]
        assert found == ([(line, "goes on, comes of"), (line, "headless clause")] if kind.name == name else [])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.md", f"```text\n{SENTENCE}\n```\n"),
        ("tests/a.py", f'x = "{SENTENCE}"\n'),
        ("a.toml", f'x = "{SENTENCE}"\n'),
        ("a.rs", f"fn {NAME}() {{}}\n"),
    ],
)
def test_the_prose_check_does_not_read_code(file, text):
    assert not any(prose.hits(kind, text)[1] for kind in prose.KINDS if kind.files.search(file))


def test_the_prose_check_reports_the_first_line_of_a_construction_that_spans_lines():
    text = "A page.\n\nIt is one\nof many. It stands\nin a table.\n"
    assert [(line, pattern) for line, pattern, _ in prose.hits(KINDS["pages"], text)[1]] == [(4, "stands")]


def test_the_prose_check_fails_if_any_kind_of_text_exceeds_the_limit(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.md").write_text("It is a page of many words. " * 200)
    (tmp_path / "a.toml").write_text(f"# {SENTENCE}\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    for files, status in (["a.md"], 0), (["a.toml"], 1):
        subprocess.run(["git", "add", *files], cwd=tmp_path, check=True)
        assert prose.main([]) == status
    assert capsys.readouterr().out.count("hits in 1,000 words") == 2 * len(KINDS)
