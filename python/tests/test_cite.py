"""Answers name the version with its commit, and entries for bibliographies are complete."""

from __future__ import annotations

import re

import celltrain as ct
from celltrain import _core
from celltrain.papers.paper import PAPER


def test_all_files_that_state_the_version_of_celltrain_agree_on_version_and_commit(celltrain, small):
    build = _core.build()
    commit = build["commit"]
    assert build["version"] == _core.__version__ + ("" if commit is None else f"+g{commit}")
    assert commit is None or re.fullmatch(r"[0-9a-f]{8,}", commit)
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", _core.__version__)
    assert ct.__version__ == build["version"]
    for words in (
        ("run", small),
        ("reproduce", "af-96-1269", "--table", "1", "--network", "lan", "--seeds", "1"),
        ("cite",),
    ):
        assert celltrain(*words, "--json").json["build"] == build


def test_every_paper_has_a_complete_bibtex_entry(celltrain):
    answer = celltrain("cite", "--json").json
    entries = {entry["key"]: entry for entry in answer["entries"]}
    assert list(entries) == ["celltrain", *PAPER.ids()]
    for key, entry in entries.items():
        assert {"author", "title", "year"} <= set(entry["fields"]), key
        assert all(entry["fields"].values()), key
        assert entry["bibtex"].count("{") == entry["bibtex"].count("}")
        # An unknown form of publication would give an entry of type misc.
        assert (entry["type"] == "misc") == (key == "celltrain")
    assert entries["comcom-1998"]["fields"]["pages"] == "1070-1079"
    assert "pages = {1070--1079}," in entries["comcom-1998"]["bibtex"]
    assert celltrain("cite").out == "".join(entry["bibtex"] + "\n" for entry in entries.values())


def test_celltrain_reports_an_unknown_commit_if_git_is_missing(celltrain, monkeypatch):
    built = {"version": "0.3.0.dev0", "commit": None, "profile": "release"}
    monkeypatch.setattr(_core, "build", lambda: built)
    told = celltrain("cite").out
    assert "note = {Version 0.3.0.dev0, built without git, so its commit is unknown}," in told
    found = {row["name"]: row for row in celltrain("doctor", "--json").json["findings"]}
    assert (found["commit"]["value"], found["commit"]["fine"]) == ("unknown", True)


def test_the_cite_command_prints_the_bibtex_entry_of_a_paper_and_refuses_an_unknown_paper(celltrain):
    assert celltrain("cite", "draft-jagan").out.startswith("@techreport{draft-jagan,\n")
    told = celltrain("cite", "nothing")
    assert (told.code, told.err.count("\n")) == (2, 1)
