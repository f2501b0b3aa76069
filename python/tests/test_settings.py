"""Settings that replace a scenario's own: the same grammar on the command line, in plans and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomllib
from conftest import SMALL, Command, is_refused
from hypothesis import given
from hypothesis import strategies as st

import celltrain as ct
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.tuning import TunePlan
from celltrain.model import grammar, overrides, policy_files

SAH = """\
name = "SAH"
policy.formula = { admit = "X <= 0.9 * K or Y < Z * X / max(N, 1)", constants = { Z = 0.8 } }
"""
MINE = """\
import celltrain as ct

class Half(ct.PythonPolicy):
    share = 0.5

    def admit(self, view, vc):
        return view.X <= self.share * view.K
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    Path("sah.toml").write_text(SAH)
    Path("settingsmine.py").write_text(MINE)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1000,2000", ["1000", "2000"]),
        ("formula:admit=min(X,3)<1,epd", ["formula:admit=min(X,3)<1", "epd"]),
        ('formula:admit="X < 1, or so", epd', ['formula:admit="X < 1, or so"', "epd"]),
        ("[1, 2],[3]", ["[1, 2]", "[3]"]),
        ("it's,fine", ["it's", "fine"]),
        ("a,", ["a", ""]),
    ],
)
def test_commas_inside_brackets_or_quotes_do_not_separate_the_values_of_an_option(text: str, parts: list[str]) -> None:
    assert grammar.split(text) == parts


@given(st.text(alphabet="ab,:=\"'()[]{} ", max_size=20))
def test_any_string_of_settings_is_either_split_or_refused_with_a_message(text: str) -> None:
    try:
        assert grammar.split(text)
    except ValueError as error:
        assert "has no closing" in str(error)


def test_policy_settings_given_as_a_string_are_parsed_into_a_table_at_any_nesting_level() -> None:
    text = "formula:admit=Y < Z * X / max(N, 1):constants.Z=0.8"
    assert grammar.choice(text, ["formula"], "policy") == {
        "formula": {"admit": "Y < Z * X / max(N, 1)", "constants": {"Z": 0.8}}
    }


def test_a_scenario_loaded_with_changed_settings_lists_them_in_its_name() -> None:
    lan = ct.load("small.toml", settings={"port.bottleneck.buffer": 200, "tcp": "reno"})
    assert lan.port["bottleneck"].buffer_cells == 200
    assert isinstance(lan.tcp, ct.Reno)
    assert lan.name == "small (port.bottleneck.buffer=200, tcp=reno)"
    by_hand = ct.load("small.toml")
    port = by_hand.port["bottleneck"].replace(buffer_cells=200)
    same = by_hand.replace(port={**by_hand.port, "bottleneck": port}, tcp=ct.Reno())
    assert ct.run(lan).fingerprint == ct.run(same).fingerprint != ct.run("small.toml").fingerprint


def test_a_table_setting_is_applied_before_settings_inside_that_table_whatever_their_order() -> None:
    settings = {"port.bottleneck.policy.fba.z": 0.5, "port.bottleneck.policy": "fba"}
    assert ct.load("small.toml", settings=settings).port["bottleneck"].policy == ct.Fba(z=0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"port.bottleneck.bufer": 3}, ["port.bottleneck.bufer is not a setting", "did you mean buffer?"]),
        ({"port.bottleneck.buffer": -5}, ["small.toml: port.bottleneck.buffer = -5 is not a whole number of cells"]),
        (
            {"port.bottleneck.policy": "edp"},
            ["has 'edp', which is not a policy. Did you mean epd? Policies: tail_drop"],
        ),
        ({"port.bottleneck.policy": "nowhere.toml"}, ["nowhere.toml: there is no such file"]),
        ({"topology.n_source.links.3": 1}, ["is not a setting"]),
        ({"port.bottleneck.buffer": 50}, ["small.toml:12: port.bottleneck.policy.epd.threshold = 60 is above"]),
    ],
)
def test_the_error_for_a_refused_setting_names_the_setting(settings: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ct.InputError) as refused:
        ct.load("small.toml", settings=settings)
    for word in words:
        assert word in str(refused.value)


def test_the_error_for_setting_only_the_buffer_of_an_undefined_port_suggests_the_default_port(
    celltrain: Command,
) -> None:
    wanted = (
        "port.bottleneck.policy is missing, as the scenario has no port.bottleneck; did you mean port.default.buffer?"
    )
    is_refused(celltrain("run", "parking-lot", "--set", "port.bottleneck.buffer=3000"), [wanted])
    both = ["--set", "port.bottleneck.policy=epd", "--set", "port.bottleneck.buffer=300"]
    assert celltrain("check", "parking-lot", *both).code == 0


def test_a_policy_with_settings_can_be_given_as_a_string_in_python() -> None:
    assert ct.Port(buffer_cells=100, policy="epd:threshold=80%").policy == ct.Epd(threshold="80%")
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy="fba:z=0.5", duration="5ms")  # type: ignore[arg-type]
    assert lan.port["bottleneck"].policy == ct.Fba(z=0.5)
    with pytest.raises(ct.ScenarioError, match=r"policy = 'edp' is not a policy\. Did you mean epd\?"):
        ct.Port(buffer_cells=100, policy="edp")  # type: ignore[arg-type]


def test_a_policy_file_is_accepted_wherever_a_policy_name_is_accepted() -> None:
    policy = ct.Policy.read("sah.toml")
    assert policy.name == "SAH"
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=policy, duration="5ms")  # type: ignore[arg-type]
    assert lan.port["bottleneck"].policy == ct.Formula(**policy.table["formula"])
    vary = {"port.bottleneck.policy": [policy, "@sah.toml"]}
    with pytest.raises(ct.InputError, match="vary = SAH appears twice"):
        ct.compare(lan, vary=vary)
    compared = ct.compare(lan, vary={"port.bottleneck.policy": ["epd:threshold=80%", policy, ct.Fba()]}, seeds=1)
    assert compared.names == ("epd:threshold=80%", "SAH", "fba")
    assert ct.vet(policy, scenarios=["lan-5"], against=[], seeds=1)["policy"] == "SAH"


@pytest.mark.parametrize("written", ['SAH = "sah.toml"', 'SAH = "@sah.toml"', 'SAH = "formula:admit=X < 9"'])
def test_a_plan_axis_accepts_a_policy_file_in_the_folder_of_the_plan(written: str) -> None:
    Path("plans").mkdir()
    Path("plans/sah.toml").write_text(SAH)
    Path("sah.toml").unlink()
    text = f'scenario = "lan-epd"\nseeds = 1\n[axes.policy]\npath = "port.bottleneck.policy"\nvalues.{written}\n'
    Path("plans/plan.toml").write_text(f"{text}values.TD = {{ tail_drop = {{}} }}\n")
    plan = Plan.load("plans/plan.toml")
    [axis] = plan.axes
    assert axis.labels == ("SAH", "TD")
    assert list(plan.points[0].scenario["port"]["bottleneck"]["policy"]) == ["formula"]
    # A store contains the plan, but neither the folder nor the policy file.
    again = Plan.of_document(json.loads(json.dumps(plan.document)))
    assert again.points[0].scenario == plan.points[0].scenario


def test_the_policies_on_a_plan_axis_can_be_given_as_strings_with_settings() -> None:
    text = 'scenario = "lan-epd"\nseeds = 1\n[axes]\n"port.bottleneck.policy" = ["as-is", "fba:z=0.5", "@sah.toml"]\n'
    Path("plan.toml").write_text(text)
    [axis] = Plan.load("plan.toml").axes
    assert axis.labels == ("as-is", "fba:z=0.5", "SAH")
    Path("plan.toml").write_text(text.replace("sah.toml", "hsa.toml").replace("fba:z", "fbb:z"))
    with pytest.raises(ct.PlanError) as refused:
        Plan.load("plan.toml")
    assert "hsa.toml: there is no such file" in str(refused.value)
    assert "plan.toml:4: axes" in str(refused.value)
    assert "'fbb', which is not a policy. Did you mean fba?" in str(refused.value)


OWN_TCP = """
[tcp.vanilla]
mss = "1kB"
receive_window = "100kB"
congestion = "formula"
formula.on_ack = { cwnd = "cwnd + 1" }

[flow.tcp2.tcp.sack]
mss = "600B"
"""


def test_a_tcp_variant_selected_by_an_option_keeps_the_tcp_settings_of_the_scenario(celltrain: Command) -> None:
    Path("own.toml").write_text(SMALL + OWN_TCP)
    kept = ct.load("own.toml").tcp.to_dict()
    for said in ("reno", "reno:mss=2kB"):
        made = ct.load("own.toml", settings={"tcp": said}).tcp
        assert made.to_dict() == {**kept, **({"mss": "2kB"} if ":" in said else {})}
        assert isinstance(made, ct.Reno)
    # A formula stays with the congestion control that it describes.
    other = ct.load("own.toml", settings={"tcp": "reno:congestion=cubic"}).tcp
    assert (other.congestion, other.formula, other.mss) == ("cubic", None, "1kB")
    # A table or an object is used unchanged.
    for said in ({"reno": {}}, ct.Reno()):
        assert ct.load("own.toml", settings={"tcp": said}).tcp == ct.Reno()
    flows = ct.load(
        "own.toml", settings={"flow.tcp1.tcp": "reno", "flow.tcp2.tcp": "reno", "tcp": "tahoe:mss=3kB"}
    ).flow
    assert (flows["tcp1"].tcp.mss, flows["tcp2"].tcp.mss) == ("3kB", "600B")
    explained = celltrain("explain", "wan-epd", "--set", "tcp=sack").out
    assert 'receive_window = "600' in explained[explained.index("[tcp.sack]") :]


@pytest.mark.parametrize(
    "values",
    ['["as-is", "reno", "sack:mss=2kB"]', '{ as-is = "as-is", reno = "reno", "sack:mss=2kB" = "sack:mss=2kB" }'],
)
def test_with_tcp_variants_on_an_axis_the_results_record_the_tcp_settings_of_the_scenario(values: str) -> None:
    Path("own.toml").write_text(SMALL + OWN_TCP)
    Path("plan.toml").write_text(f'scenario = "own.toml"\n[axes.tcp]\npath = "tcp"\nvalues = {values}\n')
    plan = Plan.load("plan.toml")
    own = tomllib.loads(OWN_TCP)["tcp"]["vanilla"]
    wanted = [{"vanilla": own}, {"reno": own}, {"sack": {**own, "mss": "2kB"}}]
    assert [point.scenario["tcp"] for point in plan.points] == wanted
    assert [point.values["tcp"] for point in plan.points] == ["as-is", "reno", "sack:mss=2kB"]
    again = Plan.of_document(json.loads(json.dumps(plan.document)))
    assert [point.scenario for point in again.points] == [point.scenario for point in plan.points]
    settings = Plan.load("plan.toml", settings={"tcp.vanilla.receive_window": "200kB"})
    assert [next(iter(point.scenario["tcp"].values()))["receive_window"] for point in settings.points] == ["200kB"] * 3


def test_tcp_variants_in_a_comparison_keep_the_tcp_settings_of_the_scenario(celltrain: Command) -> None:
    Path("own.toml").write_text(SMALL + OWN_TCP)
    compare = ["compare", "own.toml", "--seeds", 1, "--vary"]
    varied = celltrain(*compare, "tcp=vanilla,reno,sack:mss=2kB")
    for line in (
        "TCP of vanilla: vanilla with formulas (mss 1000 B, window 100 kB, 100 ms ticks)",
        "TCP of reno: reno with formulas (mss 1000 B, window 100 kB, 100 ms ticks)",
        "TCP of sack:mss=2kB: sack with formulas (mss 2000 B, window 100 kB, 100 ms ticks)",
    ):
        assert line in " ".join(varied.out.split())
    # A setting given with --set is kept as well.
    windows = celltrain(*compare, "tcp=vanilla,reno", "--set", "tcp.vanilla.receive_window=200kB").out
    assert windows.count("window 200 kB") == 2
    alone = celltrain(*compare, "duration=10ms,20ms", "--set", "tcp=sack").out
    assert "sack with formulas (mss 1000 B" in " ".join(alone.split())
    tables = ct.compare("own.toml", vary={"tcp": ["reno", {"sack": {}}, ct.Tahoe()]}, seeds=1)
    assert ["mss 1000 B" in one for [one] in tables.tcp] == [True, False, False]


def test_the_base_scenario_of_a_plan_can_have_changed_settings() -> None:
    text = 'scenario = "lan-epd"\nseeds = 1\n[axes]\n"port.bottleneck.buffer" = [1000, 2000]\n'
    Path("plan.toml").write_text(text)
    plan, other = Plan.load("plan.toml", settings={"tcp": "reno"}), Plan.load("plan.toml")
    assert plan.points[0].scenario["tcp"] == {"reno": other.points[0].scenario["tcp"]["vanilla"]}
    assert plan.name == "plan (tcp=reno)"
    assert plan.digest != other.digest
    with pytest.raises(ct.PlanError, match=r"--set port.bottleneck.buffer=500 sets what plan.toml varies"):
        Plan.load("plan.toml", settings={"port.bottleneck.buffer": 500})
    tune = TunePlan.load("tune-selective-drop", settings={"seed": 7})
    assert tune.document["scenario"]["seed"] == 7


@pytest.mark.slow
def test_a_policy_class_is_loaded_only_if_the_user_allows_python_code_to_be_loaded(
    celltrain: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELLTRAIN_POLICIES", raising=False)
    for said in ("settingsmine.py", "settingsmine.py:Half", "settingsmine:Half"):
        answer = celltrain("vet", said)
        assert answer.err.count("\n") == 1
        is_refused(answer, [f"{said}: is a Python class", "CELLTRAIN_POLICIES=settingsmine", "docs/python-policies.md"])
    monkeypatch.setenv("CELLTRAIN_POLICIES", "settingsmine")
    is_refused(celltrain("vet", "settingsmine.py"), ["does not name a class; write settingsmine.py:CLASS"])
    is_refused(celltrain("vet", "settingsmine.py:Whole"), ["settingsmine.py:Whole: is not a class of settingsmine"])
    options = ("--scenarios", "lan-5", "--seeds", 1, "--against", "fba", "--json")
    answer = celltrain("vet", "settingsmine.py:Half", *options).json
    assert answer["policy"] == "Half"
    assert 0 < answer["metrics"]["lan-5.efficiency"]["mean"] < 1


@pytest.mark.parametrize("text", ["@a.toml", "a.toml", "a.py", "a.py:B", "a:B", "epd", "epd:threshold=1", "as-is"])
def test_the_command_line_distinguishes_policy_files_from_policy_names(text: str) -> None:
    assert policy_files.is_file(text) == (text[0] in "@a" and text != "as-is")


@pytest.mark.parametrize("form", ["{}", '{name = "X"}', "policy = 3", 'policy = "edp"', "duration = 3", "[a]\n[b]"])
def test_a_policy_file_without_a_policy_is_refused(form: str) -> None:
    Path("wrong.toml").write_text(form)
    with pytest.raises(ct.InputError, match=r"wrong\.toml"):
        ct.Policy.read("wrong.toml")


def test_a_scenario_file_vetted_for_its_only_policy_is_listed_under_the_name_of_the_scenario(
    celltrain: Command,
) -> None:
    options = ("--scenarios", "lan-5", "--seeds", 1, "--against", "fba", "--json")
    assert ct.Policy.read("small.toml").name == "small"
    assert celltrain("vet", "lan-fba", *options).json["policy"] == ct.load("lan-fba").name
    assert celltrain("vet", "fba:z=0.5", *options).json["policy"] == "fba:z=0.5"


def test_an_invalid_set_option_is_refused_and_the_message_quotes_its_value() -> None:
    for text, words in {
        "port.bottleneck.buffer": "is not PATH=VALUE",
        "port.bottleneck.bufer=3": "did you mean buffer?",
        "port.bottleneck.buffer=1,2": "has 2 values; give one value, or compare all values: celltrain compare FILE --vary",
        "port.bottleneck.policy=formula:admit=(X": "has no closing )",
    }.items():
        with pytest.raises(ct.InputError) as refused:
            overrides.single([text])
        assert str(refused.value).startswith(f"--set {text}")
        assert words in str(refused.value)


SET = ("--set", "port.bottleneck.buffer=200", "--set", "port.bottleneck.policy=epd:threshold=80%")


@pytest.mark.slow
def test_every_command_that_takes_a_scenario_accepts_the_set_option(celltrain: Command, tmp_path: Path) -> None:
    settings = {"port.bottleneck.buffer": 200, "port.bottleneck.policy": "epd:threshold=80%"}
    lan = ct.load("small.toml", settings=settings)
    wanted = ct.run(lan, seed=3).fingerprint
    name = "small (port.bottleneck.buffer=200, port.bottleneck.policy=epd:threshold=80%)"

    answer = celltrain("run", "small.toml", *SET, "--seed", 3, "--json").json
    assert (answer["scenario"], answer["fingerprint"]) == (name, wanted)
    assert celltrain("run", "small.toml", *SET).out.startswith(name)
    by_vary = [{"--set": "--vary"}.get(word, word) for word in SET]
    assert celltrain("run", "small.toml", *by_vary, "--seed", 3, "--json").json["fingerprint"] == wanted
    assert celltrain("run", "small.toml", *SET, "--seeds", 3, "--json").json["fingerprints"]["3"] == wanted

    compared = celltrain("compare", "small.toml", *SET, "--seeds", 3, "--vary", "tcp=as-is,reno", "--out", "out")
    assert compared.code == 0
    assert wanted in Path("out/runs.csv").read_text()

    assert (
        celltrain("run", "small.toml", *SET, "--seed", 3, "--events", "events", "--json").json["fingerprint"] == wanted
    )
    assert celltrain("check", "small.toml", *SET).out == "small.toml: no problems found\n"
    why = celltrain("why", "small.toml", *SET, "--seed", 3, "--flow", "tcp1", "--at", "5ms", "--json")
    assert why.json == ct.why(lan, seed=3, flow="tcp1", at="5ms").to_dict()

    printed = celltrain("explain", "lan-epd", *SET)
    Path("again.toml").write_text(printed.out)
    again = ct.load("again.toml")
    assert ct.run(again).fingerprint == ct.run(ct.load("lan-epd", settings=settings)).fingerprint
    is_refused(celltrain("explain", "fba", *SET), ["--set", "fba is one of the policies"])


@pytest.mark.slow
def test_sweep_and_tune_accept_the_set_option(celltrain: Command) -> None:
    Path("plan.toml").write_text('scenario = "small.toml"\nseeds = 1\n[axes]\n"port.bottleneck.buffer" = [100, 200]\n')
    assert celltrain("sweep", "plan.toml", "--store", "store", "--set", "duration=5ms").code == 0
    sweep = ct.Store.open("store")
    assert sweep.plan.base["duration"] == "5ms"
    assert "duration=5ms" in sweep.manifest["name"]
    is_refused(celltrain("sweep", "plan.toml", "--store", "other", "--set", "duration=x"), ["duration"])
    refused = celltrain("sweep", "plan.toml", "--dry-run", "--set", "port.bottleneck.buffer=9")
    is_refused(refused, ["--set port.bottleneck.buffer=9 sets what plan.toml varies (axis port.bottleneck.buffer)"])
    assert celltrain("tune", "tune-selective-drop", "--dry-run", "--set", "seed=4").code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
def test_every_command_that_takes_a_store_folder_as_an_option_calls_it_store(
    celltrain: Command,
) -> None:
    text = (
        'scenario = "small.toml"\nmeasures = ["efficiency"]\nseeds = 2\n[axes]\n"port.bottleneck.buffer" = [100, 200]\n'
    )
    Path("plan.toml").write_text(text)
    assert celltrain("sweep", "plan.toml", "--store", "store").code == 0
    assert celltrain("report", "--store", "store").code == 0
    assert Path("store/report/report.html").is_file()
    is_refused(celltrain("report"), ["--store names the store of a sweep"])
    is_refused(celltrain("report", "store", "--store", "store"), ["but the argument does so, too: give only one"])


@pytest.mark.nightly
@pytest.mark.slow
def test_the_run_command_draws_a_figure_into_a_file(celltrain: Command) -> None:
    drawn = celltrain("run", "small.toml", "--plot", "run.svg", "--trace", "queue")
    assert drawn.out.endswith("wrote run.svg\n")
    assert Path("run.svg").read_text().count('id="axes_') == 1
    assert celltrain("run", "small.toml", "--plot", "both.svg").code == 0
    assert Path("both.svg").read_text().count('id="axes_') == 2
    assert celltrain("run", "small.toml", "--seeds", 2, "--plot", "seeds.pdf", "--csv", "seeds.csv").code == 0
    assert Path("seeds.pdf").read_bytes().startswith(b"%PDF")
    assert Path("seeds.csv").read_text().startswith("name,measure,n,mean")
    assert celltrain("run", "small.toml", "--csv", "flows.csv").code == 0
    assert Path("flows.csv").read_text().startswith("name,goodput_mbps")
    for command in ("run", "compare", "check"):
        answer = celltrain(command, "small.toml", "--plot", "run.gif")
        is_refused(answer, ["Cannot draw run.gif: use .svg, .pdf or .png."])


@pytest.mark.slow
def test_the_check_command_distinguishes_policy_files_from_scenarios(celltrain: Command) -> None:
    answer = celltrain("check", "sah.toml", "small.toml")
    assert answer.code == 0
    assert answer.out == "sah.toml: the port policy SAH; no problems found\nsmall.toml: no problems found\n"
    [policy] = celltrain("check", "sah.toml", "--json").json["policies"]
    assert (policy["file"], policy["name"], list(policy["policy"])) == ("sah.toml", "SAH", ["formula"])
    Path("wrong.toml").write_text("[policy.epd]\nthreshold = 1\ntreshold = 4\n")
    is_refused(
        celltrain("check", "wrong.toml"), ["wrong.toml:3: policy.epd.treshold is unknown; did you mean threshold?"]
    )
    Path("wrong.toml").write_text('policy.formula.admit = "X + now < 3"\n')
    is_refused(celltrain("check", "wrong.toml"), ["wrong.toml:1: policy.formula.admit", "mixes units"])
    is_refused(celltrain("check", "sah.toml", "--plot", "a.svg"), ["Cannot draw sah.toml: it is a policy"])
    is_refused(celltrain("check", "sah.toml", "--set", "tcp=reno"), ["--set tcp changes nothing in a policy file"])
    option = "port.bottleneck.policy.formula.constants.Z=0.5"
    assert celltrain("check", "sah.toml", "--set", option).code == 0


def test_a_comparison_accepts_policy_files_and_formulas_that_contain_commas(
    celltrain: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLTRAIN_POLICIES", "settingsmine")
    values = "as-is,@sah.toml,settingsmine.py:Half,formula:admit=min(X, 3) < 1"
    answer = celltrain("compare", "small.toml", "--vary", f"port.bottleneck.policy={values}", "--seeds", 1, "--json")
    names = [one["name"] for one in answer.json["scenarios"]]
    assert names == ["as-is", "SAH", "Half", "formula:admit=min(X, 3) < 1"]
    again = celltrain("compare", "small.toml", "--vary", "port.bottleneck.policy=@sah.toml,sah.toml")
    is_refused(again, ["--vary port.bottleneck.policy=@sah.toml,sah.toml has SAH twice; delete one"])
    is_refused(
        celltrain("compare", "small.toml", "--vary", "duration=1ms,2ms", "--set", "duration=3ms"), ["--vary sets"]
    )


@pytest.mark.slow
def test_policies_with_the_same_name_are_labelled_with_their_kind_or_file(
    celltrain: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLTRAIN_POLICIES", "settingsmine")
    Path("half.toml").write_text(SAH.replace("SAH", "Half"))
    Path("other.toml").write_text(SAH.replace("SAH", "Half").replace("0.9", "0.6"))
    Path("named_fba.toml").write_text(SAH.replace("SAH", "fba"))
    for values, wanted in {
        "@half.toml,settingsmine.py:Half": ["Half (formula)", "Half (Python)"],
        "@half.toml,@other.toml,fba": ["Half (@half.toml)", "Half (@other.toml)", "fba"],
        "fba,@named_fba.toml": ["fba (built-in)", "fba (formula)"],
    }.items():
        given = ("compare", "small.toml", "--vary", f"port.bottleneck.policy={values}", "--seeds", 1)
        answer = celltrain(*given, "--json")
        assert [one["name"] for one in answer.json["scenarios"]] == wanted
        called = [f"{place}" for place, _ in enumerate(wanted)]
        answer = celltrain(*given, "--names", ",".join(called), "--json")
        assert [one["name"] for one in answer.json["scenarios"]] == called
    Path("copy.toml").write_text(Path("half.toml").read_text())
    refused = celltrain("compare", "small.toml", "--vary", "port.bottleneck.policy=@half.toml,@copy.toml")
    is_refused(refused, ["@half.toml,@copy.toml has Half twice; delete one"])
    policies = [ct.Policy.read("half.toml"), "settingsmine.py:Half", "fba"]
    compared = ct.compare("small.toml", vary={"port.bottleneck.policy": policies}, seeds=1)
    assert compared.names == ("Half (formula)", "Half (Python)", "fba")


WAN = SMALL.replace('name = "small"', 'name = "wan"').replace("5us", "500us").replace("sources = 3", "sources = 2")


@pytest.mark.slow
def test_policies_are_compared_within_each_network(celltrain: Command) -> None:
    Path("wan.toml").write_text(WAN)
    policies = ["tail_drop", "fba", "epd:threshold=60%"]
    vary = {"port.bottleneck.policy": policies}
    compared = ct.compare("small.toml", "wan.toml", vary=vary, seeds=3)
    assert (compared.what, compared.names) == ("port.bottleneck.policy", tuple(policies))
    assert compared.settings == ({"scenario": "small"}, {"scenario": "wan"})
    # Runs and differences equal the runs and differences of separate comparisons in each network.
    for place, file in enumerate(("small.toml", "wan.toml")):
        alone = ct.compare(file, vary=vary, seeds=3)
        assert (compared.values[:, place] == alone.values[:, 0]).all()
        assert (compared.fingerprints[:, place] == alone.fingerprints[:, 0]).all()
        rows = [row for row in compared.table.to_pylist() if row["scenario"] == Path(file).stem]
        assert [{**row, "scenario": 0} for row in rows] == [{**row, "scenario": 0} for row in alone.table.to_pylist()]
    assert not any("different networks" in warning for warning in compared.warnings)
    options = ("--vary", f"port.bottleneck.policy={','.join(policies)}", "--seeds", 3)
    answer = celltrain("compare", "small.toml", "wan.toml", *options, "--json").json
    assert [(one["name"], one["settings"]) for one in answer["scenarios"][:3]] == [
        ("tail_drop", {"scenario": "small"}),
        ("tail_drop", {"scenario": "wan"}),
        ("fba", {"scenario": "small"}),
    ]
    assert {one["baseline"] for one in answer["differences"]} == {"tail_drop"}
    printed = celltrain("compare", "small.toml", "wan.toml", *options, "--plot", "both.svg", "--csv", "both.csv")
    assert printed.out.startswith("tail_drop, fba, epd:threshold=60% in small, wan: seeds 1 to 3 each\n")
    # The figure has two measures, with one panel per network.
    assert Path("both.svg").read_text().count('id="axes_') == 4
    assert Path("both.csv").read_text().startswith("name,scenario,measure")
    more = celltrain(
        "compare", "small.toml", "wan.toml", *options, "--vary", "port.bottleneck.buffer=100,150,200", "--plot", "m.svg"
    )
    assert more.code == 0
    assert Path("m.svg").read_text().count('id="axes_') == 4


def test_networks_whose_measures_cover_different_durations_are_not_compared(celltrain: Command) -> None:
    Path("wan.toml").write_text(WAN.replace("20ms", "30ms"))
    options = ("--vary", "port.bottleneck.policy=tail_drop,fba", "--seeds", 2)
    refused = celltrain("compare", "small.toml", "wan.toml", *options)
    words = "wan lasts 30ms, but small lasts 20ms: rates and counts would cover different times. Give all scenarios the same length, such as"
    is_refused(refused, [f"{words} --vary duration=20ms"])
    answer = celltrain("compare", "small.toml", "wan.toml", *options, "--set", "duration=10ms", "--json").json
    assert answer["set"] == {"duration": 0.01}
    assert "set: duration = 10 ms\n" in celltrain("compare", "small.toml", *options, "--set", "duration=10ms").out


def test_several_scenario_files_are_compared_with_each_other_if_no_policies_are_varied(celltrain: Command) -> None:
    Path("other.toml").write_text(SMALL.replace("60", "90"))
    options = ("--vary", "port.bottleneck.buffer=100,200", "--seeds", 1, "--json")
    answer = celltrain("compare", "small.toml", "other.toml", *options).json
    assert {one["name"] for one in answer["scenarios"]} == {"small", "other"}
    assert answer["scenarios"][0]["settings"] == {"port.bottleneck.buffer": 100}


def test_compare_accepts_a_list_of_scenarios_and_run_refers_users_with_several_seeds_to_compare() -> None:
    options = {"vary": {"duration": ["5ms"]}, "seeds": 2}
    assert (
        ct.compare(["small.toml", "lan-fba"], **options).names == ct.compare("small.toml", "lan-fba", **options).names
    )
    with pytest.raises(
        ct.InputError, match="scenarios = 3 is not a Scenario, a path or the name of a shipped scenario"
    ):
        ct.compare(["small.toml", 3])  # type: ignore[list-item]
    with pytest.raises(ct.InputError) as refused:
        ct.run("lan-epd", seeds=5)  # type: ignore[call-arg]
    assert str(refused.value) == "run simulates one seed. For several: celltrain.compare('lan-epd', seeds=5)"
    with pytest.raises(ct.InputError, match=r"celltrain\.load\('lan-epd', settings={'tcp': 'reno'}\)"):
        ct.run("lan-epd", settings={"tcp": "reno"})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="sneeds"):
        ct.run("lan-epd", sneeds=5)  # type: ignore[call-arg]


def test_an_error_in_a_policy_file_is_reported_with_file_and_line(celltrain: Command) -> None:
    Path("slip.toml").write_text('name = "slip"\n[policy]\nepd.foo = 1\n')
    Path("plan.toml").write_text(
        'scenario = "small.toml"\nseeds = 2\n[axes.policy]\npath = "port.bottleneck.policy"\n'
        'values = { a = "slip.toml", b = "epd" }\n'
    )
    fault = "slip.toml:3: policy.epd.foo is unknown; known keys: threshold"
    path = "port.bottleneck.policy"
    assert celltrain("compare", "small.toml", "--vary", f"{path}=@slip.toml,epd").err == f"{fault}\n"
    for command in ("check", "run"):
        answer = celltrain(command, "small.toml", "--set", f"{path}=@slip.toml")
        assert (answer.code, answer.err) == (2, f"{fault} (--set {path}=@slip.toml)\n")
    assert celltrain("sweep", "plan.toml", "--dry-run").err == f"{fault}; at point 0 (policy = a)\n"
    with pytest.raises(ct.InputError) as refused:
        ct.compare("small.toml", vary={path: [ct.Policy.read("slip.toml"), "epd"]})
    assert str(refused.value) == fault
    with pytest.raises(ct.ScenarioError, match=r"slip\.toml:3: policy\.epd\.foo"):
        ct.load("small.toml", settings={path: "slip.toml"})


def test_the_output_of_a_comparison_identifies_conditions_by_their_settings_and_not_by_numbers(
    celltrain: Command,
) -> None:
    answer = celltrain("compare", "small.toml", "--vary", "port.bottleneck.policy=epd:threshold=9999")
    assert answer.code == 2
    assert "at point" not in answer.err
    assert "(with port.bottleneck.policy = epd:threshold=9999)" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["compare", "small.toml", "--vary", "port.bottleneck.policy=fba:threshold=0.5,z=2"],
            "separate settings by colons: fba:threshold=0.5:z=2",
        ),
        (
            ["compare", "small.toml", "--vary", "port.bottleneck.policy=formula:admit=X<0,5*K"],
            "has a comma inside a number; write 0.5, not 0,5",
        ),
        (["compare", "small.toml", "--vary", "tcp=vanilla,cubic"], "is not a TCP. CUBIC is a congestion control"),
        (["check", "small.toml", "--set", "port.bottleneck.policy=sah"], "has 'sah'; did you mean sah.toml?"),
        (["check", "small.toml", "--set", "port.bottleneck.policy=@sah"], "sah: there is no such file; did you mean"),
        (["check", "sah"], "sah: there is no such file; did you mean sah.toml?"),
        (["vet", "sah"], "sah: there is no such file; did you mean sah.toml?"),
        (["vet", "lan-epdd"], "the text is not a policy. Did you mean lan-epd?"),
        (["vet", "two.toml"], "two.toml:1: policy has 2 policies (epd, fba); keep one, in a file of its own"),
        (["run", "sah.toml"], "sah.toml: is a policy, not a scenario; a scenario takes it with --set"),
        (["compare", "sah.toml", "small.toml"], "sah.toml: is a policy, not a scenario"),
        (["check", "plan.toml"], "plan.toml: is a plan, not a scenario; to check it: celltrain sweep plan.toml"),
        (
            ["check", "small.toml", "--set", "port.bottleneck.policy=sah.toml:Z=1"],
            "cannot give settings to the file sah.toml",
        ),
        (["run", "small.toml", "--port", "sw1->sw2"], "selects where queues, events and cells are recorded"),
        (["run", "small.toml", "--plot", "picture"], "Cannot draw picture: use .svg, .pdf or .png."),
        (["compare", "small.toml", "lan-epd", "--csv", "table"], "--csv table has no ending: write table.csv."),
        (["new"], "NAME is missing: celltrain new mine writes mine.toml"),
    ],
)
def test_the_error_for_a_common_command_line_mistake_shows_the_correct_command(
    celltrain: Command, arguments: list[str], said: str
) -> None:
    Path("two.toml").write_text("[policy]\nepd = {}\nfba = {}\n")
    Path("plan.toml").write_text('scenario = "small.toml"\nseeds = 2\n[axes]\nduration = ["1ms"]\n')
    answer = celltrain(*arguments)
    assert answer.code == 2
    assert said in answer.err


def test_the_error_for_passing_a_policy_to_run_shows_the_correct_call() -> None:
    with pytest.raises(ct.ScenarioError, match=r'celltrain.load\(.*settings=.*"port.bottleneck.policy": .epd.'):
        ct.run("lan-epd", policy="epd")


def test_an_option_value_with_superfluous_quotes_is_refused_with_the_correct_form(celltrain: Command) -> None:
    for command, text in (("run", 'host.start_spread="100ms"'), ("compare", "host.start_spread='100ms'")):
        told = celltrain(command, "small.toml", "--set", text)
        is_refused(told, [f"--set {text} has quotes; write it without quotes: host.start_spread=100ms"])
    assert celltrain("run", "small.toml", "--set", 'tcp.vanilla.timer.tick_phase="random"').code == 0


def test_the_error_for_a_misspelt_port_suggests_the_most_similar_port_of_the_scenario(celltrain: Command) -> None:
    words = "port.bottlenek is not a port of this scenario; did you mean port.bottleneck?"
    text = "port.bottlenek.buffer=500"
    is_refused(celltrain("run", "small.toml", "--set", text), ["small.toml: ", words, f"(--set {text})"])
    is_refused(celltrain("compare", "small.toml", "--set", text), [words])
    is_refused(celltrain("sweep", "selective-drop-rz", "--dry-run", "--set", text), ["selective-drop-rz.toml:", words])
    Path("plan.toml").write_text('scenario = "small.toml"\n[axes]\n"port.bottlenek.buffer" = [100, 200]\n')
    is_refused(celltrain("sweep", "plan.toml", "--dry-run"), [f"plan.toml:3: {words}"])
    # No port has a similar name, so the core reports the missing setting.
    is_refused(celltrain("run", "small.toml", "--set", "port.xx.buffer=500"), ["port.xx.policy is missing"])


def test_the_error_for_a_policy_file_passed_to_sweep_names_the_right_command(celltrain: Command) -> None:
    for command in ("sweep", "tune"):
        told = celltrain(command, "sah.toml", "--store", "out")
        is_refused(told, ["sah.toml: is a policy, not a plan", "celltrain vet sah.toml"])
