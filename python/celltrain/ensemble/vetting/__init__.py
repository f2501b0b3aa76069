"""Vets a new policy: checks its correctness, and compares it with classic policies in standard scenarios.

>>> import celltrain as ct
>>> mine = ct.Formula(admit="Y < K - X")
>>> answer = ct.vet(mine, scenarios=["lan-5"], against=["epd"], seeds=2)
>>> [check["check"] for check in answer["conformance"] if not check["holds"]]
[]
>>> sorted(answer["metrics"])[:2]
['efficiency', 'fairness']
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain import _core
from celltrain.drawing.html import render_answer, sections
from celltrain.drawing.words import UNDEFINED, counted, estimated
from celltrain.ensemble.comparing import Compared, compare, wrong_seeds
from celltrain.ensemble.comparing.data import FEWEST_SEEDS, HALF, ends, few
from celltrain.ensemble.plan_warnings import carried_nothing, carries_little, percent
from celltrain.ensemble.vetting import standard
from celltrain.ensemble.vetting.standard import Readings, Standard, check_policy, fits_both, policy_of, standard_of
from celltrain.errors import CelltrainWarning, Fault, InputError, warn
from celltrain.model.arguments import Cancel, checked
from celltrain.model.grids import Block, Grid, Line
from celltrain.model.network import tcp_lines, tcp_summary
from celltrain.model.policy_files import Policy as Named
from celltrain.model.scenario import Reading, fingerprint
from celltrain.running import statistics
from celltrain.text import among, shown

if TYPE_CHECKING:
    from celltrain.model.python_classes import PythonMemoryPolicy, PythonPolicy
    from celltrain.model.types import MemoryPolicy, Policy

__all__ = ["vet"]

#: The check that a policy admits frames into an empty buffer.
ADMITS = "admits_into_an_empty_buffer"
#: The fraction of the reference policy's data that any policy must deliver.
LEAST_SHARE = 0.5
#: Descriptions of metrics whose names are not words.
WORDS = {
    "max_queue_cells": "largest queue (cells)",
    "least_goodput_mbps": "least goodput (Mb/s)",
    "short_ms_p99": "p99 completion time, short requests (ms)",
    "short_slowdown": "mean slowdown, short requests",
    "slowdown": "mean slowdown, all requests",
    "query_ms": "mean time of a query (ms)",
    "query_ms_p99": "p99 time of a query (ms)",
    "goodput_mbps": "goodput (Mb/s)",
    "open_requests": "requests still open at the end",
}


@checked()
def vet(
    policy: Policy
    | MemoryPolicy
    | PythonPolicy
    | PythonMemoryPolicy
    | Named
    | Mapping[str, Any]
    | str
    | os.PathLike[str],
    *,
    scenarios: Sequence[str] | None = None,
    against: Sequence[str] | None = None,
    seeds: int = 10,
    first_seed: int = 1,
    jobs: int | None = None,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
    certificates: bool = True,
) -> dict[str, Any]:
    """Checks a policy of ports or of memories, and compares it with classic policies in a standard set of scenarios.

    Args:
        policy: A policy such as `celltrain.Formula(admit="X <= 0.9 * K")`, a text such as `"epd:threshold=80%"`, a table
            such as `{"fba": {}}`, or an argument of `celltrain.Policy.read`: a TOML file with a table `policy`, a scenario
            with one policy, or `mine.py:Mine`.
        scenarios: Names of the standard set: `lan-5`, `lan-15`, `wan-5`, `lan-5-sack`, `wan-5-sack`,
            `lan-5-random`, `unequal-rtt`; for memories `switch`, `small-memory`, `switch-dctcp`, `leaf-spine`; all when
            None.
        against: Policies to compare it with: names, texts such as `"dynamic_threshold:alpha=2"`, policy files, or
            `mine.py:Mine`; when None `epd`, `selective_drop` and
            `fba`, for memories `longest_queue_drop`, `dynamic_threshold`, `abm` and `occamy`; no policy for `[]`.
        seeds: Number of runs in each scenario.
        first_seed: The first seed; the others follow.
        jobs: Threads; one for each core when None.
        progress: Called from time to time with the completed fraction, 0 to 1.
        cancel: A handle that ends the call from another thread; see `celltrain.Cancel`.
        certificates: False to simulate every run, even if it is known to equal another run.

    Returns:
        A dict as printed by `celltrain vet --json`. `policy`: the name. `conformance`: `check`, `holds` and `evidence`
        of each check. `metrics`: by name, `mean` with `low` and `high` of its 95 % interval (Student's t, over the
        seeds; None for a single seed). `efficiency` and `fairness`, or `slowdown` and so on for memories, are means over
        the scenarios; `lan-5.efficiency` and so on are for one scenario. `beside`: the same for each other policy.
        `differences`: by other policy, this policy minus the other, paired by seed. `remarks`: the most important
        warnings, for example that the policy carries almost nothing. `tcp`: the TCP of each scenario. `settings`: the
        numbers among the settings of each policy of memories. `ranking`: a text for each measure in which another TCP
        reverses the ranking of this and another policy. `ranking_by_clocks`: the same for random clocks. `without_running`: number of
        runs with results copied from equal runs. `without_certificate`: reasons why the results of some runs could not
        be copied. `artifacts`: `policy` as JSON, `table` as Markdown, `warnings`, and `failures` of runs.

    Raises:
        InputError: With every fault of the policy and its place; also for invalid options.
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> answer = ct.vet({"fba": {}}, scenarios=["lan-5"], against=[], seeds=2)
    >>> 0 < answer["metrics"]["lan-5.efficiency"]["mean"] < 1
    True
    """
    mine, readings = policy_of(policy, scenarios=scenarios), Readings()
    of = standard_of(mine, scenarios, readings)
    named = _names("scenarios", scenarios, list(of.scenarios))
    others = of.against(against, named, readings)
    faults = list(wrong_seeds(seeds, first_seed))
    if not named:
        faults.append(Fault.of_option("scenarios", "[]", "is empty; name at least one scenario"))
    if faults:
        raise InputError(faults)
    of_check = check_policy(mine, of, named, readings)
    of_core: list[dict[str, Any]] = json.loads(of.conformance(json.dumps(mine.table), first_seed))
    verdicts = [*of_core, _engines_agree(mine, of, named, first_seed)]
    compared: dict[str, Compared] = {}
    for done, name in enumerate(named):

        def on(share: float, done: int = done) -> None:
            if progress is not None:
                progress((done + share) / len(named))

        options = {"seeds": seeds, "first_seed": first_seed, "jobs": jobs, "certificates": certificates, "progress": on}
        compared[name] = _compared_in(name, mine, of, others, readings, **options)
    carried = {name: _share_of(of.reference, each) for name, each in compared.items()}
    remarks = [*_which(mine, of), *_remarks(mine.name, of, verdicts, compared, carried)]
    verdicts = [_with_runs(one, compared) if one["check"] == ADMITS else one for one in verdicts]
    verdicts += [_every_run_ends(compared), _carries_enough(of.reference, carried)]
    places = dict(enumerate(others, 1))
    differences = {other: _estimates(of, compared, place, of_differences=True) for place, other in places.items()}
    called = column_name(mine.name, list(others))
    is_memory = of.kind == "memory"
    settings = {name: of.settings_of(name, table, readings) for name, table in others.items()} if is_memory else {}
    answer: dict[str, Any] = {
        "policy": mine.name,
        "seeds": seeds,
        "first_seed": first_seed,
        "scenarios": named,
        "tcp": {name: tcp_summary(of.scenarios[name]) for name in named},
        "settings": settings,
        "remarks": remarks,
        "conformance": verdicts,
        "without_running": sum(each.without_running for each in compared.values()),
        "without_certificate": sorted({reason for each in compared.values() for reason in each.without_certificate}),
        "metrics": _estimates(of, compared, 0),
        "beside": {other: _estimates(of, compared, place) for place, other in places.items()},
        "differences": differences,
        "ranking": reversals(called, named, differences, of.pairs, of.shares),
        "ranking_by_clocks": reversals(called, named, differences, of.clocks, of.shares),
    }
    doubts = [
        *remarks,
        *(one for one in of_check if not any(one.endswith(remark.partition(" ")[2]) for remark in remarks)),
        *(f"{name}: {one}" for name, each in compared.items() for one in _doubts(each)),
    ]
    if scenarios is None and of.kind == "port" and fits_both(mine, readings):
        first = next(iter(standard.MEMORIES.scenarios))
        doubts.append(
            f"{shown(mine.name)} is also a valid policy of memories; to vet it in memories: --scenarios {first}"
        )
    if any(one.too_few for one in compared.values()):
        doubts.append(f"{few(seeds)}. Use {FEWEST_SEEDS} seeds or more")
    answer["artifacts"] = {
        "policy": json.dumps(mine.table, ensure_ascii=False),
        "table": markdown(answer),
        "warnings": doubts,
        "failures": [
            {"scenario": name, "policy": one.name, "seed": one.seed, "error": one.error}
            for name, each in compared.items()
            for one in each.failures
        ],
    }
    warn(doubts)
    return answer


def _names(option: str, wanted: Sequence[str] | None, known: list[str]) -> list[str]:
    """Returns the wanted names without repetitions, or all known names; raises `InputError` for unknown ones."""
    faults = [
        Fault.of_option(option, name, f"is unknown; {among(re.sub(r'[-_ ]+', '_', name.lower()), known)}")
        for name in wanted or ()
        if name not in known
    ]
    if faults:
        raise InputError(faults)
    return known if wanted is None else list(dict.fromkeys(wanted))


def _compared_in(
    name: str,
    mine: Named,
    of: Standard,
    others: Mapping[str, dict[str, Any] | None],
    readings: Readings,
    **options: Any,
) -> Compared:
    """Compares the policies in one scenario: the vetted policy first, then the others, and the reference."""
    if of.reference not in others:
        # The reference for delivered data has no column.
        others = {**others, of.reference: None}
    tables = [mine.table, *(of.other(other, name) if table is None else table for other, table in others.items())]
    with warnings.catch_warnings():
        # The answer already contains the relevant warnings.
        warnings.simplefilter("ignore", CelltrainWarning)
        cases: list[Any] = [readings.of(of, name, table).accepted() for table in tables]
        names, measures = [column_name(mine.name, list(others)), *others], list(of.measures.values())
        return compare(*cases, names=names, measures=measures, **options)


# The checks.


def _verdict(check: str, wrong: Sequence[str], right: str) -> dict[str, Any]:
    """Returns the verdict of a check, with all problems as its evidence."""
    return {"check": check, "holds": not wrong, "evidence": "; ".join(wrong) or right}


def _engines_agree(mine: Named, of: Standard, named: Sequence[str], seed: int) -> dict[str, Any]:
    """Checks that both engines give the same fingerprint for the beginning of every scenario."""
    different = []
    for name in named:
        changes: dict[str, Any] = {"duration": of.by_both}
        # The scenario may measure for longer than this, and wait until all requests are complete.
        changes |= {key: value for key, value in standard.AT_ONCE.items() if key in of.scenarios[name]}
        case = Reading.of_table(of.scenario(name, mine.table, **changes), name).accepted()
        fast, reference = (fingerprint(case, seed, engine) for engine in ("fast", "reference"))
        if fast != reference:
            different.append(f"{name}: {fast} and {reference}")
    return _verdict("both_engines_agree", different, f"the same fingerprints in {of.by_both} of {', '.join(named)}")


def _every_run_ends(compared: Mapping[str, Compared]) -> dict[str, Any]:
    failed = [
        f"{name}, seed {one.seed}: {one.error}"
        for name, each in compared.items()
        for one in each.failures
        if one.name == each.names[0]
    ]
    runs = sum(len(each.seeds) for each in compared.values())
    return _verdict("every_run_ends", failed[:1], counted(runs, "run"))


def _with_runs(verdict: dict[str, Any], compared: Mapping[str, Compared]) -> dict[str, Any]:
    """Returns the check with an empty buffer. It also fails if the policy delivers no data in some runs."""
    empty = {name: each.carried_nothing[0] for name, each in compared.items()}
    nothing = [f"{name}: {runs.sum():,} of {counted(runs.size, 'run')}" for name, runs in empty.items() if runs.any()]
    if not nothing:
        return verdict
    wrong = [] if verdict["holds"] else [verdict["evidence"]]
    return _verdict(verdict["check"], [*wrong, f"no data was delivered in {', '.join(nothing)}"], "")


def _carries_enough(reference: str, carried: Mapping[str, float]) -> dict[str, Any]:
    """Checks that the policy carries at least half as much as the reference in each scenario."""
    little = [f"{percent(share)} in {name}" for name, share in carried.items() if share < LEAST_SHARE]
    least = min(carried, key=lambda name: carried[name])
    right = f"{percent(carried[least])} or more; least in {least}"
    return _verdict(f"carries_half_of_{reference}", [", ".join(little)] if little else [], right)


def _share_of(reference: str, compared: Compared) -> float:
    """Returns the policy's traffic as a fraction of the reference's in a scenario; 1 if unknown."""
    both = np.stack([compared.delivered[place].reshape(-1) for place in (0, compared.names.index(reference, 1))])
    own, most = both[:, ~np.isnan(both).any(axis=0)].sum(axis=1)
    return float(own / most) if most else 1.0


def _which(mine: Named, of: Standard) -> Iterator[str]:
    """Yields how to vet the other policy of a scenario with policies of ports and of memories."""
    if mine.note:
        [other] = {standard.PORTS.kind, standard.MEMORIES.kind} - {of.kind}
        scenarios = {one.kind: one.scenarios for one in (standard.PORTS, standard.MEMORIES)}[other]
        yield f"{shown(mine.note)}; to vet the other one: --scenarios {next(iter(scenarios))}"


def _remarks(
    name: str,
    of: Standard,
    verdicts: Sequence[Mapping[str, Any]],
    compared: Mapping[str, Compared],
    carried: Mapping[str, float],
) -> Iterator[str]:
    """Yields remarks to read first: scenarios in which the policy delivers no or little data, and refusals."""
    for scenario, each in compared.items():
        if count := int(each.carried_nothing[0].sum()):
            yield f"{scenario}: {carried_nothing(shown(each.names[0]), count, each.carried_nothing[0].size)}"
    if little := [(share, scenario) for scenario, share in carried.items() if 0 < share < LEAST_SHARE]:
        (share, first), *others = little
        where = "".join([f" in {first}", *(f", {percent(share)} in {scenario}" for share, scenario in others)])
        yield carries_little(shown(name), share, of.reference.replace("_", " "), where)
    for verdict in verdicts:
        if verdict["check"] == ADMITS and (remark := verdict["evidence"].partition(", but it ")[2]):
            yield f"{shown(name)} {remark}"


def _doubts(compared: Compared) -> Iterator[str]:
    """Yields warnings about a scenario, except those in the remarks and those of `celltrain check`."""
    mine = shown(compared.names[0])
    for doubt in compared.doubts:
        if doubt not in compared.of_check and not doubt.startswith((f"{mine} carries ", f"{mine} carried ")):
            yield doubt


# The numbers.


def _estimates(
    of: Standard, compared: Mapping[str, Compared], place: int, *, of_differences: bool = False
) -> dict[str, dict[str, float | None]]:
    """Returns means with intervals, over all scenarios and per scenario: of a policy, or of the vetted one minus it."""
    found = {}
    for number, share in enumerate(of.measures):
        if share in of.shares:
            by_seed = np.mean([each.values[:, 0, :, number] for each in compared.values()], axis=0)
            values = by_seed[0] - by_seed[place] if of_differences else by_seed[place]
            over_all = statistics.mean(values)
            found[share] = ends(over_all.mean[0], over_all.half[0])
    for name, each in compared.items():
        for number, measure in enumerate(of.measures):
            own, more = each.means[number], each.differences[number]
            # Differences in the comparison have the opposite sign to differences in this table.
            mean, half = (-more.mean, more.half) if of_differences else (own.mean, own.half)
            found[f"{name}.{measure}"] = ends(mean[place], half[place])
    return found


def reversals(
    policy: str,
    scenarios: Sequence[str],
    differences: Mapping[str, Mapping[str, Any]],
    pairs: Sequence[Mapping[str, str]],
    shares: Sequence[str] = standard.PORTS.shares,
) -> list[str]:
    """Returns a text for each measure in which the ranking of this and another policy depends on the scenario.

    The scenarios of a pair differ only in the TCP, or only in clocks and starts. Both differences must be significant,
    with opposite signs: if only one is significant, the scenarios do not necessarily differ.

    Args:
        policy: Name of this policy.
        scenarios: Scenarios of the set that were run.
        differences: By other policy and metric: this policy minus the other.
        pairs: Pairs of scenarios, each with a description of its TCP or clocks.
        shares: The metrics to look at.
    """
    found = []
    for pair in pairs:
        if not set(pair) <= set(scenarios):
            continue
        for other_policy, of in differences.items():
            for share in shares:
                first, second = (_sign(of[f"{scenario}.{share}"]) for scenario in pair)
                if first * second < 0:
                    one, other = (f"{words} ({scenario})" for scenario, words in pair.items())
                    ranks = ("higher", "lower") if first > 0 else ("lower", "higher")
                    found.append(
                        f"compared with {other_policy}, the {share} of {policy} is {ranks[0]} {one} and {ranks[1]} {other}"
                    )
    return found


def _sign(difference: Mapping[str, float | None]) -> int:
    """Returns 1 or -1 for a significant difference, else 0."""
    low, high = difference["low"], difference["high"]
    if low is None or high is None:
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


def column_name(name: str, others: Sequence[str]) -> str:
    """Returns the name of this policy in a comparison, marked if another policy has the same name."""
    return f"this {name}" if name in others else name


# The answer of the vet command in words.


def blocks(answer: Mapping[str, Any], *, brief: bool = False) -> Iterator[Block]:
    """Yields an answer as lines and tables; if `brief`, only failed checks and means over all scenarios."""
    seeds, last = answer["seeds"], answer["first_seed"] + answer["seeds"] - 1
    of_seeds = f"seeds {answer['first_seed']} to {last}" if seeds > 1 else f"seed {last}"
    for remark in answer["remarks"]:
        yield Line(text=remark, style="bold")
    yield Line(text=f"{answer['policy']}: {of_seeds} in {', '.join(answer['scenarios'])}", style="bold", is_note=True)
    for text in tcp_lines(answer["tcp"].items()):
        yield Line(text=text, is_note=True)
    if answer["settings"]:
        yield Line(text=f"next to {', '.join(answer['settings'].values())}", is_note=True)
    checks = answer["conformance"]
    printed = [check for check in checks if not (brief and check["holds"])]
    if printed:
        grid = Grid(heads=["check", "holds", "evidence"], left=(0, 1, 2))
        for check in printed:
            grid.add_row(check["check"].replace("_", " "), _holds(check), check["evidence"])
        yield grid
    if brief:
        yield Line(text=f"{sum(check['holds'] for check in checks)} of {len(checks)} checks hold")
    mine, *others = heads(answer)
    words = ["metric"] if brief else ["metric", "TCP"]
    grid = Grid(heads=[*words, mine, *others], left=range(len(words)), keys=len(words))
    before = None
    for name, *cells in rows(answer):
        scenario, _, metric = name.rpartition(".")
        if brief and scenario:
            continue
        if (label := f"{scenario}, {standard.duration_of(scenario)}" if scenario else "all scenarios") != before:
            grid.add_group(label)
            before = label
        tcp = [] if brief else [standard.tcp_of(scenario) if scenario else ""]
        grid.add_row(WORDS.get(metric, metric), *tcp, *cells)
    yield grid
    for key, what in (("ranking", "TCP"), ("ranking_by_clocks", "clocks")):
        if found := answer[key]:
            more = f"; --json lists {counted(len(found) - 1, 'more reversed difference')}" if len(found) > 1 else ""
            yield Line(text=f"The ranking depends on the {what}: {found[0]}{more}.", style="bold")
    if seeds > 1:
        yield Line(text=HALF, is_note=True)
        if others:
            yield Line(
                text=f"* differs significantly from {mine} (95 % interval of the paired differences; see --json)",
                is_note=True,
            )


def page(answer: Mapping[str, Any]) -> str:
    """Renders an answer as one self-contained HTML page."""
    checks = answer["conformance"]
    facts = [
        (f"{sum(check['holds'] for check in checks)} of {len(checks)}", "checks hold"),
        (f"{len(answer['scenarios']):,}", "scenarios"),
        (f"{answer['seeds']:,}", "seeds in each"),
    ]
    beside = f", compared with {', '.join(answer['beside'])}" if answer["beside"] else ""
    ranking = {name: answer[name] for name in ("ranking", "ranking_by_clocks")}
    title, subtitle = f"{answer['policy']}, vetted", f"By celltrain {_core.build()['version']}{beside}"
    warnings = [*(one for texts in ranking.values() for one in texts), *answer["artifacts"]["warnings"]]
    parts = sections(blocks({**answer, "remarks": [], **dict.fromkeys(ranking, ())}), "Checks and means")
    return render_answer(title, subtitle, facts, warnings, parts)


def _holds(check: Mapping[str, Any]) -> str:
    """Returns the verdict of a check as text. If no frame was sent, the check of whole frames proves nothing."""
    if check["check"] == "whole_frames" and check["evidence"].startswith("0 frames sent,"):
        return "nothing sent"
    return "yes" if check["holds"] else "NO"


def heads(answer: Mapping[str, Any]) -> list[str]:
    """Returns the headings of the policies' columns: the tested policy, and each other policy."""
    others = list(answer["beside"])
    return [column_name(answer["policy"], others), *others]


def rows(answer: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yields the rows of the table: a metric, the mean of this policy, and the mean of each other policy.

    A star marks a significant difference: the 95 % interval of the differences, paired by seed, excludes zero.
    """
    for name, own in answer["metrics"].items():
        cells = [_cell(own)]
        for other, theirs in answer["beside"].items():
            more = answer["differences"][other][name]
            beyond = more["low"] is not None and (more["low"] > 0 or more["high"] < 0)
            cells.append(f"{_cell(theirs[name])}{' *' if beyond else '  '}")
        yield [name, *cells]


def _cell(estimate: Mapping[str, float | None]) -> str:
    mean, high = estimate["mean"], estimate["high"]
    return UNDEFINED if mean is None else estimated(mean, float("nan") if high is None else high - mean)


def markdown(answer: Mapping[str, Any]) -> str:
    """Returns the table as Markdown."""
    columns = [re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", shown(head)) for head in heads(answer)]
    lines = [["metric", *columns], ["---", *("---:" for _ in columns)], *rows(answer)]
    return "\n".join(f"| {' | '.join(cell.strip() for cell in line)} |" for line in lines)
