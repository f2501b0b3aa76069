"""A scenario or a plan names only files in its folder or below, and no message quotes a file of sizes."""

from __future__ import annotations

import sys

import pytest
from test_requests import NETWORK, WEB

import celltrain as ct
from celltrain.model import shipped

SECRET = "hunter2,12345\n1000,1\n"
POLICY = 'policy.epd = { threshold = "80%" }\n'
CLASS = "import celltrain as ct\nclass Mine(ct.PythonPolicy):\n    def admit(self, view, vc):\n        return True\n"
#: Every key of a scenario or a plan that names a file, with the files needed; `NAME` stands for a name.
SIZES = NETWORK + WEB.replace("{}", "NAME")
SMALL_SIZES = SIZES.replace("NAME", "2kB")
#: A scenario whose bottleneck follows a trace.
TRACE = """duration = "50ms"
topology.n_source = { sources = 1, link_rate = "100Mbps", link_delay = "1ms" }
port.bottleneck = { buffer = 100, policy.tail_drop = {} }
link."sw1->sw2".rate_change.trace = "NAME"
"""
PLAN = 'measures = ["efficiency"]\nseeds = 1\n'
BASE = 'scenario = "lan-epd"\n'
CASES = {
    "sizes of a scenario": ("scenario.toml", SIZES, ".csv", "1000,1\n"),
    "sizes of a plan's scenario": (
        "plan.toml",
        PLAN + 'axes.duration = ["1ms"]\n[scenario]\n' + SIZES.replace("[requests", "[scenario.requests"),
        ".csv",
        "1000,1\n",
    ),
    "sizes on an axis": (
        "plan.toml",
        PLAN + 'scenario = "web.toml"\naxes."requests.web.sizes" = ["NAME"]\n',
        ".csv",
        "1000,1\n",
    ),
    "a trace": ("scenario.toml", TRACE, ".down", "1\n2\n2\n5\n"),
    "a trace on an axis": (
        "plan.toml",
        PLAN + 'scenario = "lan-epd"\naxes."link.sw1->sw2.rate_change.trace" = ["NAME"]\n',
        ".down",
        "1\n2\n2\n5\n",
    ),
    "the scenario of a plan": (
        "plan.toml",
        PLAN + 'scenario = "NAME"\naxes.duration = ["1ms"]\n',
        ".toml",
        SMALL_SIZES,
    ),
    "a policy": ("plan.toml", PLAN + BASE + 'axes."port.bottleneck.policy" = ["epd", "@NAME"]\n', ".toml", POLICY),
    "a class": ("plan.toml", PLAN + BASE + 'axes."port.bottleneck.policy" = ["epd", "NAME:Mine"]\n', ".py", CLASS),
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads a file that names a second file, which is outside its folder, in a subfolder, or a link."""
    monkeypatch.setenv("CELLTRAIN_POLICIES", "other")
    monkeypatch.chdir(tmp_path)

    def load(case: str, name: str) -> str:
        file, text, ending, content = CASES[case]
        folder = tmp_path / "mine"
        for place in (folder / "below", tmp_path / "x"):
            place.mkdir(parents=True, exist_ok=True)
            (place / f"other{ending}").write_text(content)
        if not (folder / f"link{ending}").is_symlink():
            (folder / f"link{ending}").symlink_to(tmp_path / "x" / f"other{ending}")
        (folder / "web.toml").write_text(SMALL_SIZES)
        (folder / file).write_text(text.replace("NAME", f"{name}{ending}"))
        sys.modules.pop("other", None)
        try:
            if file == "plan.toml":
                ct.Plan.load(folder / file)
            else:
                ct.load(folder / file)
        except ct.InputError as error:
            return str(error)
        finally:
            sys.modules.pop("other", None)
        return ""

    return load


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has different links")
@pytest.mark.parametrize("case", CASES)
def test_a_scenario_can_refer_only_to_files_in_its_folder_or_in_subfolders(load, tmp_path, case):
    assert load(case, "below/other") == ""
    for name in ("../x/other", str(tmp_path / "x" / "other"), "below/../../x/other"):
        assert "is outside the folder of the file that names it" in load(case, name), name
    if case != "a class":
        # A class loaded through a link would have another module name.
        assert "is outside the folder" in load(case, "link")


def test_a_file_named_on_the_command_line_may_be_in_any_folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "sizes.csv").write_text("1000,1\n")
    (tmp_path / "mine" / "web.toml").write_text(SMALL_SIZES)
    path = str(tmp_path / "sizes.csv")
    found = ct.load(tmp_path / "mine" / "web.toml", settings={"requests.web.sizes": path})
    assert found.requests["web"].sizes == ((1000, 1),)


@pytest.mark.parametrize(
    "row",
    ["hunter2,12345", "1_000,0.5", "\uff11\uff10,0.5", "\u0663,0.5", "1000,0.5,hunter2", "nan,1", "inf,1",
        "1e999,1", "0x10,1", "1000,1e", "2000,-12345"],
)  # fmt: skip
def test_the_error_for_a_malformed_row_of_a_size_file_gives_only_its_line(tmp_path, row):
    (tmp_path / "mine.csv").write_text(f"500,0.1\n{row}\n9000,1\n")
    (tmp_path / "web.toml").write_text(SIZES.replace("NAME", "mine.csv"))
    [fault] = ct.check(tmp_path / "web.toml")
    assert (fault.file, fault.line) == (str(tmp_path / "mine.csv"), 2)
    assert not any(part in fault.message for part in ("hunter2", "12345", row)), fault.message


def test_the_header_line_of_a_request_size_file_may_contain_any_text(tmp_path):
    (tmp_path / "mine.csv").write_text("bytes,probability\n1000,1\n")
    assert shipped.read_rows("mine.csv", tmp_path, "requests.web.sizes").rows == [[1000, 1]]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", None, "is empty; each line is a time in whole milliseconds, such as 12, at which 1504 bytes may leave"),
        ("1\n\n2.5\n", 3, "is not a time in whole milliseconds, such as 12, at which 1504 bytes may leave"),
        ("1\n-2\n", 2, "is not a time in whole milliseconds"),
        ("1\nhunter2\n", 2, "is not a time in whole milliseconds"),
        ("1\n\n5\n4\n", 4, "goes backwards after 5; a trace is in order, so write 5 or more"),
        ("0\n0\n", 2, "is the end of the trace, which must last from 1 to 1000000000 milliseconds"),
    ],
)
def test_an_unreadable_trace_is_refused_with_the_number_of_its_line(tmp_path, text, line, problem):
    (tmp_path / "mine.down").write_text(text)
    (tmp_path / "cellular.toml").write_text(TRACE.replace("NAME", "mine.down"))
    [fault] = ct.check(tmp_path / "cellular.toml")
    if line is not None:
        assert (fault.file, fault.line) == (str(tmp_path / "mine.down"), line)
    assert problem in fault.message
    assert "hunter2" not in fault.message


def test_a_link_follows_the_trace_in_a_file(tmp_path):
    (tmp_path / "mine.down").write_text("1\n2\n2\n5\n")
    (tmp_path / "cellular.toml").write_text(TRACE.replace("NAME", "mine.down"))
    read = ct.load(tmp_path / "cellular.toml")
    assert read.link["sw1->sw2"].rate_change.trace == (1, 2, 2, 5)
    # 40 opportunities, each with 28 cells and more.
    port = ct.run(read).ports.to_pandas().set_index("name").loc["sw1->sw2"]
    assert 28 < port["forwarded_cells"] <= 40 * 1504 / 53 + 1
