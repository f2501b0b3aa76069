"""Parts of a paper: rows, networks in any case, settings, seeds, an estimate, and runs kept for later."""

from __future__ import annotations

import signal
from datetime import date

import pytest

import celltrain as ct
from celltrain import _core
from celltrain.cli import installation
from celltrain.papers import _command, load

AF_96_1269 = "af-96-1269"
ROW = ("reproduce", AF_96_1269, "--network", "lan", "--table", "2", "--row", "5,1000,epd")


def test_rows_of_a_paper_can_be_selected_by_any_of_their_values_in_any_letter_case():
    paper = load(AF_96_1269)
    chosen = paper.numbers(tables=[2], networks=["lan"], rows=["5,1000,EPD"])
    assert chosen
    assert {tuple(one.row.values()) for one in chosen} == {("LAN", 5, 1000, "epd")}
    assert paper.numbers(tables=[2], networks=["LAN"], rows=["LAN,5,1000,epd"]) == chosen
    assert len(paper.numbers(tables=[2], rows=["5,1000,epd", "15,epd"])) > len(chosen)
    with pytest.raises(ct.PaperError, match=r"has no row '5,1001,epd' there; did you mean LAN,5,1000,epd\?"):
        paper.numbers(tables=[2], networks=["lan"], rows=["5,1001,epd"])
    with pytest.raises(ct.PaperError, match="has no network 'LANs'; it has LAN, WAN"):
        paper.numbers(networks=["LANs"])


def test_the_reproduce_command_prints_the_scenario_of_a_paper_row_as_toml_that_can_be_run(celltrain, tmp_path):
    told = celltrain(*ROW, "--toml", "--set", "duration=20ms")
    assert told.out.startswith("# Performance of TCP over UBR+ (af-96-1269), table 2: network = LAN, sources = 5, ")
    (tmp_path / "row.toml").write_text(told.out)
    scenario = ct.load(tmp_path / "row.toml")
    assert (scenario.duration, scenario.topology.sources) == ("20ms", 5)
    several = celltrain("reproduce", AF_96_1269, "--table", "2", "--toml")
    assert (several.code, "prints one scenario, but 48 are selected" in several.err) == (2, True)


@pytest.mark.slow
def test_the_options_set_and_seed_change_the_runs_of_a_reproduction(celltrain):
    short = ("--set", "duration=20ms", "--seeds", "2", "--json")
    answer = celltrain(*ROW, *short, "--seed", "7").json
    assert answer["overrides"] == {"duration": "20ms"}
    assert answer["numbers"][0]["mean"] != celltrain(*ROW, *short).json["numbers"][0]["mean"]
    changed = celltrain(*ROW, *short, "--set", "tcp=sack", "--set", "port.bottleneck.policy=fba:z=0.5").json
    assert changed["overrides"] == {"duration": "20ms", "tcp": "sack", "port.bottleneck.policy": "fba:z=0.5"}
    wrong = celltrain(*ROW, "--set", "nothing=1")
    assert (wrong.code, "nothing" in wrong.err) == (2, True)


def test_the_estimated_time_of_a_reproduction_comes_from_the_number_of_runs_and_short_trial_runs(celltrain):
    answer = celltrain("reproduce", AF_96_1269, "--table", "2", "--set", "duration=50ms", "--dry-run", "--json").json
    assert (answer["scenarios"], answer["runs"]) == (48, 48 * 30)
    assert answer["simulated_seconds"] == pytest.approx(48 * 30 * 0.05)
    assert answer["seconds"] > 0
    assert "about " in celltrain(*ROW, "--set", "duration=20ms", "--dry-run").out


@pytest.mark.slow
@pytest.mark.usefixtures("one_format")
def test_the_csv_output_of_a_reproduction_is_the_same_on_the_screen_and_in_files(celltrain, tmp_path):
    words = (*ROW, "--set", "duration=20ms", "--seeds", "2", "--out", tmp_path, "--csv")
    printed = celltrain(*words, "-").out
    assert (tmp_path / "numbers.csv").read_text() == printed
    assert celltrain(*words, tmp_path / "mine.csv").code == 0
    assert (tmp_path / "mine.csv").read_text() == printed
    names = [name.strip('"') for name in printed.splitlines()[0].split(",")]
    assert len(set(names)) == len(names)
    assert {"network", "sources"} <= set(names)


@pytest.mark.slow
@pytest.mark.usefixtures("one_format")
def test_an_interrupted_reproduction_can_be_resumed_without_repeating_finished_runs(celltrain, tmp_path, monkeypatch):
    words = (*ROW, "--set", "duration=20ms", "--jobs", "1", "--out", tmp_path, "--csv", "-", "--seeds")
    whole = celltrain(*words, "6").out
    (tmp_path / "runs.json").unlink()
    assert celltrain(*words, "6", "--resume").code == 2
    before, ran = _core.run_cases, []

    def run_cases(cases, runs, *arguments, **options):
        some = runs if ran else runs[:2]
        before(cases, some, *arguments, **options)
        ran.extend(seed for _, seed, _ in some)
        if len(some) < len(runs):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_core, "run_cases", run_cases)
    stopped = celltrain(*words, "6")
    assert stopped.code == 130
    assert f"interrupted: finished runs are kept in {tmp_path}; continue with --resume" in stopped.err
    done, ran[:] = set(ran), [0]
    again = celltrain(*words, "6", "--resume")
    assert again.code == 0
    assert done.isdisjoint(ran)
    assert again.out == whole
    ran.clear()
    assert celltrain(*words, "6", "--resume").out == whole
    assert ran == []
    # The scenario of another row has other keys.
    assert celltrain(*words, "1", "--resume", "--set", "tcp=sack").code == 0
    assert ran == [1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", ["", "[]", '{"runs": {"a": 1}}', '{"runs": {"a": {"values": {"efficiency": ["x", null]}}}}']
)
def test_resuming_from_a_results_file_not_written_by_celltrain_is_refused(celltrain, tmp_path, content):
    (tmp_path / "runs.json").write_text(content)
    told = celltrain(*ROW, "--out", tmp_path, "--resume")
    assert (told.code, told.err.count("\n"), "to begin again" in told.err) == (2, 1, True), told.err


def test_resuming_a_reproduction_requires_an_output_folder(celltrain):
    told = celltrain(*ROW, "--resume")
    assert (told.code, "needs the folder with the finished runs: name it with --out" in told.err) == (2, True)


def test_an_interrupted_reproduction_prints_the_command_that_resumes_it_and_keeps_finished_runs(celltrain, monkeypatch):
    monkeypatch.setattr(_core, "run_cases", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    told = celltrain("compare", "lan-epd", "lan-tail-drop", "--seeds", "2")
    assert told.code == 130
    assert told.err.splitlines() == [
        "interrupted",
        "compare keeps no finished runs; celltrain sweep keeps them, and continues with --resume",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("one_format")
def test_a_message_warns_that_without_the_resume_option_finished_runs_in_the_folder_are_repeated(celltrain, tmp_path):
    words = (*ROW, "--set", "duration=20ms", "--seeds", "1", "--out", tmp_path)
    assert "--resume" not in celltrain(*words).err
    assert f"{tmp_path} has finished runs, which this command repeats; --resume keeps" in celltrain(*words).err
    assert "runs again" not in celltrain(*words, "--resume").err
    page = (tmp_path / "reproduce.html").read_text()
    typed = "celltrain reproduce af-96-1269 --table 2 --network lan --row 5,1000,epd --set duration=20ms --seeds 1"
    assert f"Command: {typed}<" in page
    assert f"written on {date.today().isoformat()}" in page
    # Figure 1 is not drawn, because its scenario does not have the changed setting.
    assert not list(tmp_path.glob("*figure1*"))
    assert list(tmp_path.glob("*table2.svg"))


@pytest.mark.parametrize(
    "seeds, options",
    [({"LAN": 3, "WAN": 3}, "--seeds 3"), ({"LAN": 3, "WAN": 2}, "--seeds 3 --wan-seeds 2"), (4, "--seeds 4")],
)
def test_the_command_shown_on_a_paper_page_uses_the_number_of_seeds_stated_on_the_page(seeds, options):
    assert (
        _command(load(AF_96_1269), seeds, 1, {"table": [1]}) == f"celltrain reproduce {AF_96_1269} --table 1 {options}"
    )


@pytest.mark.slow
def test_reproduction_tables_state_the_rule_for_agreement_and_latex_tables_include_the_notes(celltrain):
    words = ("reproduce", AF_96_1269, "--table", "1", "--network", "lan", "--seeds", "1")
    rule = "agrees: if the published value is inside the seeds' range"
    told = celltrain(*words).out
    assert rule in told
    assert " claims need rows or tables that were not run, and are left out." in told
    latex = celltrain(*words, "--tex").out
    below, _, rest = latex.partition("\\end{tabular}\n\n\\smallskip\n{\\footnotesize\n")[2].partition("\\par}")
    assert [line.partition(" ")[0] for line in below.splitlines()] == ["agrees:", "1)", "2)", "3)"]
    assert "\\begin{tabular}" in rest, "the notes are below their own table"


def test_the_doctor_command_names_the_commit_if_the_checkout_differs_from_the_build(celltrain, monkeypatch):
    monkeypatch.setattr(installation, "checkout", lambda: "0123456789abcdef")
    monkeypatch.setattr(_core, "build", lambda: {"version": "0.3.0", "commit": "89abcdef", "profile": "release"})
    found = {row["name"]: row for row in installation.examine()}
    assert "the checkout is at 01234567" in found["commit"]["advice"]
    assert found["commit"]["fine"]
    monkeypatch.setattr(installation, "checkout", lambda: "89abcdef00000000")
    assert {row["name"]: row for row in installation.examine()}["commit"]["advice"] == ""
