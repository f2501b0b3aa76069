"""Names, values and paths from other people appear safely on terminals, and in spreadsheets, pages and figures."""

from __future__ import annotations

import csv
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import ROOT, SMALL

import celltrain as ct
from celltrain import text

# Terminal colours of two kinds, a window title, line ends, writing directions, and invisible characters.
ODD = "a\x1b[31m\x9b1m\x1b]0;title\x07\nb\r\u202ec\u2066d\u200be\x7f"
DOLLARS = r"$\x$"
FORMULAS = ("=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "'quoted", "＝1+1")  # noqa: RUF001


def network(*names: str, name: str = "") -> ct.Scenario:
    """Returns a row of switches with these names, and a flow from the first to the last."""
    hosts = ("h1", "h2")
    nodes = (hosts[0], *names, hosts[1])
    links = [ct.Link(between=pair, rate="155.52Mbps", delay="5us") for pair in itertools.pairwise(nodes)]
    return ct.Scenario(
        name=name,
        duration="20ms",
        topology=ct.GeneralNetwork(
            hosts=hosts,
            switches=names,
            links=tuple(links),
            flows=(ct.Flow(name=names[0], from_="h1", to="h2"),),
        ),
        port={"default": ct.Port(buffer_cells=100, policy=ct.Epd(threshold=60))},
    )


def commands_no_terminal(shown: str) -> bool:
    return shown.replace("\n", "").isprintable()


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    path = tmp_path / "odd.toml"
    ct.save(network(ODD, "sw2", name=ODD), path)
    return path


def test_saved_scenarios_contain_no_terminal_escape_sequences_and_can_be_loaded_again(odd):
    assert commands_no_terminal(odd.read_text())
    assert ct.load(odd).name == ODD


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_names_from_scenarios_are_escaped_in_printed_output(celltrain, odd, arguments):
    # Regression: Rich removed the bell and several other characters but printed the escape.
    answer = celltrain("run", odd, *arguments)
    assert answer.code == 0
    assert commands_no_terminal(answer.out)
    if arguments:
        assert answer.json["scenario"] == ODD
        assert answer.json["flows"][0]["name"] == ODD
    else:
        assert r"a\x1b[31m\x9b1m" in answer.out
        assert r"\nb\r\u202ec" in answer.out


def test_names_from_scenarios_are_escaped_in_messages(celltrain, tmp_path):
    folder = tmp_path / "x\x1b[2Jy\nz"
    folder.mkdir()
    for content in (SMALL.replace("buffer", '"\\u009b1m\\u202e"'), SMALL.replace('"small"', '"\x1b[1m"')):
        path = folder / "scenario.toml"
        path.write_text(content)
        answer = celltrain("check", path)
        assert answer.code == 2
        assert commands_no_terminal(answer.err)
        assert r"x\x1b[2Jy\nz" in answer.err
    with pytest.raises(ct.ScenarioError) as refused:
        ct.load(path)
    assert commands_no_terminal(str(refused.value))


def test_names_from_scenarios_are_escaped_in_warnings():
    with pytest.warns(ct.CelltrainWarning) as warned:
        alone = network("sw1", "sw2").topology.replace(hosts=("h1", "h2", f"h\x9b{'3' * 5000}"))
        ct.run(network("sw1", "sw2").replace(topology=alone))
    message = str(warned[0].message)
    assert commands_no_terminal(message)
    assert len(message) < 1100
    assert warned[0].filename == __file__


@pytest.mark.slow
def test_a_name_of_one_megabyte_is_shortened_in_messages(celltrain, tmp_path):
    path = tmp_path / "long.toml"
    long = "9" * 1_000_000
    path.write_text(SMALL.replace('"20ms"', f'"{long}parsecs"').replace('"small"', f'"small"\n"k{long}" = 1'))
    answer = celltrain("check", path)
    assert answer.code == 2
    assert len(answer.err) < 5000
    assert "in all) ..." in answer.err
    for call in (
        lambda: ct.run(network("a"), seed=10**5000),
        lambda: ct.run(network("a"), trace=[long]),
        lambda: ct.run(network("a"), trace=["queue"], step=long),
        lambda: ct.run(ct.n_source(sources=2, link_delay="5us", buffer_cells=9, policy=ct.Epd(threshold=long))),
        lambda: ct.load(long),
        lambda: ct.sweep("lan-epd", over={long: [1]}),
        lambda: ct.sweep("lan-epd", over={"port.bottleneck.buffer": [long]}),
        lambda: ct.reproduce(long),
    ):
        with pytest.raises(ct.CelltrainError) as refused:
            call()
        assert len(str(refused.value)) < 5000


def test_csv_cells_that_look_like_spreadsheet_formulas_are_escaped_and_are_unchanged_when_read_back(tmp_path):
    names = FORMULAS
    result = ct.run(network(*names), trace=["queue"], step="10ms")
    result.write(tmp_path)
    for file in ("ports.csv", "queue.csv"):
        with (tmp_path / file).open(newline="", encoding="utf-8") as opened:
            rows = list(csv.DictReader(opened))
        for cell in (cell for row in rows for cell in row.values()):
            assert not cell.startswith(tuple("=+-@\t\r")) or _is_number(cell), cell
    with (tmp_path / "ports.csv").open(newline="", encoding="utf-8") as opened:
        found = [row["name"] for row in csv.DictReader(opened)]
    assert [name.removeprefix("'") for name in found] == result.ports["name"].to_pylist()
    assert "'=HYPERLINK(1)->+1+1" in found


def test_csv_files_contain_no_terminal_escape_sequences(tmp_path):
    odd = ODD.replace("\n", "").replace("\r", "")
    ct.run(network(ODD, "sw2"), trace=["queue"], step="10ms").write(tmp_path)
    for file in ("ports.csv", "queue.csv", "flows.csv"):
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert commands_no_terminal(text), file
        if file == "flows.csv":
            assert odd.encode("unicode_escape").decode() in text.replace("\n", "").replace("\r", "")


def test_a_name_of_one_megabyte_is_shortened_in_csv_rows(tmp_path):
    # Regression: a thousand samples made a gigabyte; three thousand exceeded the limit of a text column.
    import pyarrow.parquet

    long = "x" * 10**6 + "end"
    ct.run(network(long), trace=["cwnd"], step="200us").write(tmp_path)
    assert (tmp_path / "cwnd.csv").stat().st_size < 101 * 33_000
    with (tmp_path / "cwnd.csv").open(newline="", encoding="utf-8") as opened:
        cells = {row["flow"] for row in csv.DictReader(opened)}
    assert len(cells) == 1
    assert re.fullmatch(r"x+\.\.\. \(1,000,003 in all\) \.\.\.x+end", cells.pop())
    assert pyarrow.parquet.read_table(tmp_path / "cwnd.parquet")["flow"].unique().to_pylist() == [long]


def test_csv_files_with_many_rows_are_written_completely(tmp_path):
    import pyarrow as pa

    from celltrain.running.tables import write_csv

    names = pa.chunked_array([["a", "=b"] * 3000, [None, "c"] * 3000], pa.string())
    table = pa.table({"name": names, "same": names.dictionary_encode(), "number": range(12_000)})
    for rows in (table, table.slice(5, 0), table.slice(3, 9000)):
        write_csv(rows, tmp_path / "t.csv")
        with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as opened:
            found = [(row["name"].removeprefix("'"), row["same"], int(row["number"])) for row in csv.DictReader(opened)]
        wanted = [
            ((row["name"] or ""), (row["name"] or "").replace("=", "'="), row["number"]) for row in rows.to_pylist()
        ]
        assert found == wanted


def test_numbers_in_csv_files_are_written_as_numbers(tmp_path):
    import pyarrow as pa

    from celltrain.running.tables import write_csv

    table = pa.table({"=x": pa.array(["-1.5", "+2e-3", "-1.5 ms", None]), "y": pa.array([-1.5, -2.0, None, 0.0])})
    write_csv(table, tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ['"\'=x","y"', '"-1.5",-1.5', '"+2e-3",-2', '"\'-1.5 ms",', ",0"]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [DOLLARS, "$x_{$ and $", "_hidden", ODD, "long" * 5_000])
def test_a_plot_can_be_drawn_whatever_characters_the_names_in_it_contain(celltrain, tmp_path, name):
    # Regression: matplotlib's typesetter does not know the formula `$\x$`, which ended the command with exit code 3.
    pytest.importorskip("matplotlib")
    path = tmp_path / "named.toml"
    ct.save(network(name, "sw2", name=name), path)
    answer = celltrain("run", path, "--plot", tmp_path / "run.svg", "--trace", "queue,occupancy,cwnd,delivered")
    assert answer.code == 0, answer
    assert celltrain("check", path, "--plot", tmp_path / "net.svg").code == 0
    for picture in ("run.svg", "net.svg"):
        # The file must be valid XML, which permits no control characters, not even in comments.
        ElementTree.parse(tmp_path / picture)


def test_dollar_signs_are_shown_unchanged_in_titles_and_legends_of_plots():
    pytest.importorskip("matplotlib")
    result = ct.run(network(DOLLARS, "sw2", name=DOLLARS), trace=["cwnd"])
    axes = result.plot.cwnd()
    assert axes.get_title().startswith(f"Congestion windows\n{DOLLARS}, seed 1\nTCP: ")
    assert not axes.title.get_parse_math()
    assert [(one.get_text(), one.get_parse_math()) for one in axes.get_legend().get_texts()] == [(DOLLARS, False)]


@pytest.mark.nightly
@pytest.mark.slow
def test_names_from_scenarios_are_escaped_in_report_pages(tmp_path):
    pytest.importorskip("jinja2")
    axes = {f"<script>{ODD}": {"path": "port.bottleneck.buffer", "values": [150, 200]}}
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=150, policy=ct.TailDrop(), duration="5ms", name=ODD)
    try:
        store = ct.sweep(lan, over=axes, seeds=2)
    except ct.PlanError:
        # The plan may refuse a name with such characters.
        store = ct.sweep(lan, over={"port.bottleneck.buffer": [150, 200]}, seeds=2)
    page = ct.report(store, measures=["efficiency", "fairness"]).html()
    assert commands_no_terminal(page)
    assert f"<script>{ODD[0]}" not in page


def test_exceptions_with_arbitrary_text_can_be_pickled():
    class Unwilling:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    for value in (ODD, "\udc80", b"\xff", 10**5000, Unwilling(), ["x" * 10**6] * 10, float("nan"), None):
        fault = ct.Fault.of_option("key\x00", value, "is odd")
        assert commands_no_terminal(fault.message)
        assert len(fault.message) < 300
        for error in (ct.InputError, ct.ScenarioError, ct.PlanError, ct.StoreError, ct.TuneError, ct.ClusterError):
            again = pickle.loads(pickle.dumps(error([fault])))
            assert type(again) is error
            assert again.faults == [fault]
            assert str(again) == fault.message
            json.dumps(fault.to_dict())
    for single in (ct.NotTracedError(ODD), ct.MissingExtraError(ODD), ct.CelltrainError(ODD)):
        assert str(pickle.loads(pickle.dumps(single))) == ODD


def test_any_value_can_be_described_for_a_message_and_the_description_is_short():
    nested: list[object] = []
    nested.append(nested)
    for value in (nested, {1: nested}, "x" * 10**6, 10**5000, range(10**9), b"y" * 10**6, [["z"] * 10**5] * 10):
        assert len(text.described(value)) <= text.MOST_VALUE


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["list", "policies"], ["schema"], ["explain", "lan-epd"], ["run", "scenarios/lan-epd.toml", "--json"]],
)
def test_a_command_exits_without_a_message_if_its_output_pipe_is_closed(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "celltrain", *arguments],
            cwd=ROOT,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode in {0, 1}
