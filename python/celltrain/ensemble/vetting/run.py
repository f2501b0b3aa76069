"""Vetting a policy: what must hold of any policy, and the standard scenarios beside the classics."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain import _core
from celltrain.drawing.pages.words import counted
from celltrain.ensemble.comparing import Compared, compare
from celltrain.ensemble.comparing.comparability import FEWEST_SEEDS, few
from celltrain.ensemble.comparing.compared import ends
from celltrain.ensemble.comparing.run import wrong_seeds
from celltrain.ensemble.plan_warnings import carried_nothing, carries_little, percent
from celltrain.ensemble.vetting import standard
from celltrain.ensemble.vetting.policy import check, given
from celltrain.ensemble.vetting.table import beside_others, by_clocks, heads, ranking, rows
from celltrain.errors import CelltrainWarning, Fault, InputError, ScenarioError, warn
from celltrain.model.arguments import checked
from celltrain.model.cancel import Cancel, endable
from celltrain.model.policy_files import Policy as Named
from celltrain.model.progress import watched
from celltrain.running import statistics
from celltrain.running.results import run
from celltrain.running.summary import tcp_summary
from celltrain.text import among, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from celltrain.model.python_policy import PythonPolicy
    from celltrain.model.types import Policy

#: The check that a policy admits frames into an empty buffer, and the check that it carries enough.
ADMITS, CARRIES = "admits_into_an_empty_buffer", "carries_half_of_tail_drop"
#: The policy that shows how much there is to carry, and the share of it that any policy has to carry.
TAIL_DROP, LEAST_SHARE = "tail_drop", 0.5
#: The part of a scenario that both engines run: the reference engine is slow.
BY_BOTH = "200ms"


@checked()
@endable
@watched
def vet(
    policy: Policy | PythonPolicy | Named | Mapping[str, Any] | str | os.PathLike[str],
    *,
    scenarios: Sequence[str] | None = None,
    beside: Sequence[str] | None = None,
    seeds: int = 10,
    first_seed: int = 1,
    jobs: int | None = None,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> dict[str, Any]:
    """Holds a policy against what must hold of any, and runs it in a standard set of scenarios beside the classics.

    Args:
        policy: A policy such as `celltrain.Formula(admit="X <= 0.9 * K")`, a text such as `"epd:threshold=80%"`, a table
            such as `{"fba": {}}`, or what `celltrain.Policy.read` takes: a TOML file with a table `policy`, a scenario
            with one policy, or `mine.py:Mine`.
        scenarios: Names of the standard set: `lan-5`, `lan-15`, `wan-5`, `lan-5-sack`, `wan-5-sack`,
            `lan-5-random`, `unequal-rtt`; all when None.
        beside: Names of policies it is put beside, with their default settings; `epd`, `selective_drop` and `fba` when
            None, and `[]` for none.
        seeds: Runs in each scenario.
        first_seed: The first seed; the others follow.
        jobs: Threads; one for each core when None.
        progress: Called now and then with the share that is done, 0 to 1.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Returns:
        A dict as `celltrain vet --json` prints it. `policy`: its name. `conformance`: for each check `check`, `holds` and
        `evidence`. `metrics`: by name `mean`, and `low` and `high` of the 95 % interval (Student's over the seeds; None of
        one seed): `efficiency` and `fairness` are means over the scenarios, `lan-5.efficiency` and so on those of one.
        `beside`: the same of each other policy. `differences`: by other policy what this one has more, paired by seed.
        `remarks`: what to read first, such as that the policy carries next to nothing. `tcp`: the TCP of each scenario.
        `ranking`: texts, one for each measure in which another TCP reverses the ranking of this policy and another one;
        `ranking_by_clocks`: the same if random clocks reverse it.
        `artifacts`: texts for people and programs: `policy`, `table`, `warnings`, `failures`.

    Raises:
        InputError: With every fault of the policy, its place included, and where an option makes no sense.
        CancelledError: When `cancel` ended it.

    >>> import celltrain as ct
    >>> answer = ct.vet({"fba": {}}, scenarios=["lan-5"], beside=[], seeds=2)
    >>> 0 < answer["metrics"]["lan-5.efficiency"]["mean"] < 1
    True
    """
    named = _names("scenarios", scenarios, tuple(standard.SCENARIOS))
    others = _names("beside", beside, tuple(_listed()), standard.CLASSICS)
    faults = list(wrong_seeds(seeds, first_seed))
    if not named:
        faults.append(Fault.of_option("scenarios", "[]", "names nothing to run"))
    if faults:
        raise InputError(faults)
    mine = given(policy)
    of_check = check(mine, {name: standard.scenario(name, mine.table) for name in standard.SCENARIOS}, named)
    verdicts = list(_conformance(mine, named, first_seed))
    compared: dict[str, Compared] = {}
    for done, name in enumerate(named):

        def on(share: float, done: int = done) -> None:
            if progress is not None:
                progress((done + share) / len(named))

        compared[name] = _beside(mine, others, name, (seeds, first_seed, jobs), on)
    verdicts += _of_runs(compared)
    carried = {name: _of_tail_drop(each) for name, each in compared.items()}
    remarks = list(_remarks(mine.name, verdicts, compared, carried))
    verdicts = [
        *(_with_runs(verdict, compared) if verdict["check"] == ADMITS else verdict for verdict in verdicts),
        _carries(carried),
    ]
    of_policy = [_metrics(compared, place) for place in range(1 + len(others))]
    answer: dict[str, Any] = {
        "policy": mine.name,
        "seeds": seeds,
        "first_seed": first_seed,
        "scenarios": list(named),
        "tcp": {name: tcp_summary(standard.SCENARIOS[name]) for name in named},
        "remarks": remarks,
        "conformance": verdicts,
        "metrics": of_policy[0],
        "beside": dict(zip(others, of_policy[1:], strict=True)),
        "differences": {other: _differences(compared, place) for place, other in enumerate(others, 1)},
    }
    answer["ranking"] = ranking(heads(answer)[0], named, answer["differences"])
    answer["ranking_by_clocks"] = by_clocks(heads(answer)[0], named, answer["differences"])
    answer["artifacts"] = {
        "policy": json.dumps(mine.table, ensure_ascii=False),
        "table": _table(answer),
        "warnings": [
            *remarks,
            *(one for one in of_check if not any(one.endswith(remark.partition(" ")[2]) for remark in remarks)),
            *(f"{name}: {one}" for name, each in compared.items() for one in _doubts(each)),
            *(
                [f"{few(seeds)}. Use {FEWEST_SEEDS} seeds or more"]
                if any(one.too_few for one in compared.values())
                else []
            ),
        ],
        "failures": [
            {"scenario": name, "policy": one.name, "seed": one.seed, "error": one.error}
            for name, each in compared.items()
            for one in each.failures
        ],
    }
    warn(answer["artifacts"]["warnings"])
    return answer


def _names(option: str, asked: Sequence[str] | None, known: Sequence[str], usual: Sequence[str] = ()) -> list[str]:
    """Names out of a list, each once."""
    if asked is None:
        return list(usual or known)
    near = {name: among(re.sub(r"[-_ ]+", "_", name.lower()), known) for name in asked}
    faults = [Fault.of_option(option, name, f"is unknown; {near[name]}") for name in asked if name not in known]
    if faults:
        raise InputError(faults)
    return list(dict.fromkeys(asked))


def _listed() -> Iterator[str]:
    """Policies whose settings all have defaults, and EPD."""
    for choice in json.loads(_core.schema())["$defs"]["Policy"]["oneOf"]:
        [(name, reference)] = choice["properties"].items()
        about = json.loads(_core.schema())["$defs"][reference["$ref"].rpartition("/")[2]] if "$ref" in reference else {}
        if name == "epd" or not about.get("required"):
            yield name


def _conformance(mine: Named, named: Sequence[str], seed: int) -> Iterator[dict[str, Any]]:
    """The trials of the core, and a part of every scenario by both engines."""
    try:
        yield from json.loads(_core.conformance(json.dumps(mine.table), seed))
    except ValueError as error:
        raise ScenarioError.of_refusal(error) from None
    from celltrain.model.types import Scenario

    apart = []
    for name in named:
        scenario = Scenario.model_validate(standard.scenario(name, mine.table, duration=BY_BOTH))
        with warnings.catch_warnings():
            # The check of an empty buffer says the same.
            warnings.simplefilter("ignore", CelltrainWarning)
            fast, reference = (run(scenario, seed=seed, engine=engine) for engine in ("fast", "reference"))
        if fast.fingerprint != reference.fingerprint:
            apart.append(f"{name}: {fast.fingerprint} and {reference.fingerprint}")
    said = "; ".join(apart) or f"the same fingerprints in {BY_BOTH} of {', '.join(named)}"
    yield {"check": "both_engines_agree", "holds": not apart, "evidence": said}


def _beside(
    mine: Named,
    others: Sequence[str],
    name: str,
    options: tuple[int, int, int | None],
    progress: Callable[[float], object],
) -> Compared:
    """The runs of one scenario: this policy first, then the others."""
    from celltrain.model.types import Scenario

    seeds, first_seed, jobs = options
    if TAIL_DROP not in others:
        # It shows how much there is to carry, and has no column.
        others = [*others, TAIL_DROP]
    tables = [mine.table, *(standard.classic(other, name) for other in others)]
    with warnings.catch_warnings():
        # The answer has those that matter.
        warnings.simplefilter("ignore", CelltrainWarning)
        return compare(
            *(Scenario.model_validate(standard.scenario(name, table)) for table in tables),
            names=[beside_others(mine.name, others), *others],
            seeds=seeds,
            first_seed=first_seed,
            measures=list(standard.MEASURES.values()),
            jobs=jobs,
            progress=progress,
        )


def _of_runs(compared: Mapping[str, Compared]) -> Iterator[dict[str, Any]]:
    """What the runs of this policy say of it: whether they ended."""
    failed = [f"{name}, seed {one.seed}: {one.error}" for name, each in compared.items() for one in _failures(each)]
    runs = sum(len(each.seeds) for each in compared.values())
    yield {"check": "every_run_ends", "holds": not failed, "evidence": failed[0] if failed else counted(runs, "run")}


def _doubts(compared: Compared) -> Iterator[str]:
    """The doubts about a scenario that are not among the remarks or the warnings of the check."""
    mine = shown(compared.names[0])
    for doubt in compared.doubts:
        if doubt not in compared.of_check and not doubt.startswith((f"{mine} carries ", f"{mine} carried ")):
            yield doubt


def _of_tail_drop(compared: Compared) -> float:
    """Returns the share of what tail drop carries that this policy carries in a scenario; 1 if it is not known."""
    both = np.stack([compared.delivered[place].reshape(-1) for place in (0, compared.names.index(TAIL_DROP, 1))])
    own, most = both[:, ~np.isnan(both).any(axis=0)].sum(axis=1)
    return float(own / most) if most else 1.0


def _remarks(
    name: str, verdicts: Sequence[Mapping[str, Any]], compared: Mapping[str, Compared], carried: Mapping[str, float]
) -> Iterator[str]:
    """What has to be read before the table: scenarios in which this policy carries nothing or little, and refusals."""
    for scenario, each in compared.items():
        if count := int(each.carried_nothing[0].sum()):
            yield f"{scenario}: {carried_nothing(shown(each.names[0]), count, each.carried_nothing[0].size)}"
    if little := [(share, scenario) for scenario, share in carried.items() if 0 < share < LEAST_SHARE]:
        (share, first), *others = little
        where = "".join([f" in {first}", *(f", {percent(share)} in {scenario}" for share, scenario in others)])
        yield carries_little(shown(name), share, "tail drop", where)
    for verdict in verdicts:
        if verdict["check"] == ADMITS and (remark := verdict["evidence"].partition(", but it ")[2]):
            yield f"{shown(name)} {remark}"


def _with_runs(verdict: dict[str, Any], compared: Mapping[str, Compared]) -> dict[str, Any]:
    """The check of an empty buffer, failed as well if this policy carries nothing in some runs."""
    empty = {name: each.carried_nothing[0] for name, each in compared.items()}
    nothing = [f"{name}: {runs.sum():,} of {counted(runs.size, 'run')}" for name, runs in empty.items() if runs.any()]
    if not nothing:
        return verdict
    evidence = [] if verdict["holds"] else [verdict["evidence"]]
    said = "; ".join([*evidence, f"nothing was carried in {', '.join(nothing)}"])
    return {**verdict, "holds": False, "evidence": said}


def _carries(carried: Mapping[str, float]) -> dict[str, Any]:
    """The check that this policy carries half of what tail drop carries in each scenario."""
    little = [f"{percent(share)} in {name}" for name, share in carried.items() if share < LEAST_SHARE]
    least = min(carried, key=lambda name: carried[name])
    said = ", ".join(little) or f"{percent(carried[least])} or more; least in {least}"
    return {"check": CARRIES, "holds": not little, "evidence": said}


def _failures(compared: Compared) -> list[Any]:
    return [one for one in compared.failures if one.name == compared.names[0]]


def _metrics(compared: Mapping[str, Compared], place: int) -> dict[str, dict[str, float | None]]:
    """Means of a policy with their intervals: over all scenarios, and in each."""
    found = {}
    for number, share in enumerate(standard.MEASURES):
        if share in standard.SHARES:
            found[share] = _estimate(_over_all(compared, place, number))
    for name, each in compared.items():
        for number, measure in enumerate(standard.MEASURES):
            means = each.means[number]
            found[f"{name}.{measure}"] = ends(means.mean[place], means.half[place])
    return found


def _differences(compared: Mapping[str, Compared], place: int) -> dict[str, dict[str, float | None]]:
    """What this policy has more than another, seed by seed."""
    found = {}
    for number, share in enumerate(standard.MEASURES):
        if share in standard.SHARES:
            found[share] = _estimate(_over_all(compared, 0, number) - _over_all(compared, place, number))
    for name, each in compared.items():
        for number, measure in enumerate(standard.MEASURES):
            more = each.differences[number]
            # The comparison says what the other has more than this one.
            found[f"{name}.{measure}"] = ends(-more.difference[place], more.half[place])
    return found


def _over_all(compared: Mapping[str, Compared], place: int, number: int) -> NDArray[np.float64]:
    """By seed: the mean of a measure over the scenarios."""
    values = np.array([each.values[place, 0, :, number] for each in compared.values()])
    mean: NDArray[np.float64] = values.mean(axis=0)
    return mean


def _estimate(values: NDArray[np.float64]) -> dict[str, float | None]:
    known = values[~np.isnan(values)]
    means = statistics.means(np.zeros(len(known), dtype=np.int64), known, 1)
    return ends(means.mean[0], means.half[0])


def _table(answer: Mapping[str, Any]) -> str:
    """The table as Markdown."""
    columns = [_escaped(head) for head in heads(answer)]
    lines = [["metric", *columns], ["---", *("---:" for _ in columns)], *rows(answer)]
    return "\n".join(f"| {' | '.join(cell.strip() for cell in line)} |" for line in lines)


def _escaped(name: str) -> str:
    """A name in a cell of Markdown: no mark of it does what it would there."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", shown(name))
