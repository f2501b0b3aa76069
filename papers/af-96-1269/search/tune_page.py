"""Fills the page about tuned parameters with the results of saved searches.

    celltrain tune plans/tune-selective-drop.toml --store out/tune-selective-drop
    celltrain tune plans/tune-fba.toml --store out/tune-fba
    python scripts/campaign.py tune-study     calls it with out/tune-selective-drop/report/tune.json out/tune-fba/report/tune.json

The script copies each result to tuned-<policy>.json next to the page, docs/studies/tuned-selective-drop.md, and draws
its figure into docs/images. It replaces the text between `<!-- selective_drop:begin -->` and `<!-- selective_drop:end
-->`, and between the same marks for fba.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from celltrain.ensemble.tuning import Estimate, Tuned
from celltrain.ensemble.tuning.result import Left, Searched
from paper_page import ROOT, fill

STUDIES, IMAGES = ROOT / "docs" / "studies", ROOT / "docs" / "images"
PAGE = STUDIES / "tuned-selective-drop.md"


def main() -> int:
    """Reads the results and fills the page."""
    parser = argparse.ArgumentParser(description="Fill the page of tuned parameters with the numbers of searches.")
    parser.add_argument("answers", type=Path, nargs="+", help="the file report/tune.json of each search")
    for path in parser.parse_args().answers:
        tuned = Tuned._of_dict(json.loads(path.read_text(encoding="utf-8")))
        name = policy(tuned).replace("_", "-")
        print(f"wrote {shutil.copyfile(path, STUDIES / f'tuned-{name}.json')}")
        image = IMAGES / f"tuned-{name}.png"
        tuned.drawing().figure.savefig(image, dpi=110, metadata={"Software": None})
        print(f"wrote {image}")
        fill(PAGE, policy(tuned), numbers(tuned))
    print(f"wrote {PAGE}")
    return 0


def policy(tuned: Tuned) -> str:
    """Returns the policy whose parameters were searched."""
    path: str = tuned.facts["parameters"][0]["path"]
    return path.split(".")[-2]


def numbers(tuned: Tuned) -> str:
    """Returns a summary of the searches, and a table of their gains over the reference."""
    facts = tuned.facts
    seeds = {word: facts["seeds"][word]["count"] for word in ("search", "selection", "confirmation")}
    lines = [
        f"Each of {len(tuned.searches)} searches made {facts['trials']} trials with {seeds['search']} seeds. The finalists "
        f"were chosen with {seeds['selection']} other seeds, and the numbers below are from {seeds['confirmation']} more, "
        f"± half of the 95 % interval. This took {facts['runs']:,} runs (version {facts['version']}, Optuna "
        f"{facts['optuna']}). Differences beyond the seeds' spread are bold.",
        "",
        "| configuration | R = 0.9, Z = 0.8: efficiency | fairness | most efficiency at no less fairness: R, Z | efficiency gained | "
        "fairness | most fairness at no less efficiency: R, Z | fairness gained | efficiency |",
        "| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for searched in tuned.searches:
        reference = next(c for c in searched.confirmed if c.label is not None)
        assert reference.estimates is not None, "the reference setting ran in every configuration"
        own = [mean(one) for one in reference.estimates]
        by_objective = {left.objective: left for left in searched.left}
        cells = [searched.title, *own, *gain(by_objective[0]), *gain(by_objective[1])]
        lines.append(f"| {' | '.join(cells)} |")
    beyond = [sum(gained(searched, i) for searched in tuned.searches) for i in (0, 1)]
    lines += [
        "",
        f"In {beyond[0]} of {len(tuned.searches)} configurations, a setting raises efficiency by more than the seeds' spread "
        f"without lowering fairness by more than its spread. In {beyond[1]}, a setting raises fairness in the same way.",
    ]
    return "\n".join(lines)


def gained(searched: Searched, objective: int) -> bool:
    """Returns whether a setting improves one objective significantly without a significant loss in the other."""
    return any(
        left.differences[objective].mean > left.differences[objective].half
        and left.differences[1 - objective].mean >= -left.differences[1 - objective].half
        for left in searched.left
    )


def gain(left: Left) -> list[str]:
    """Returns three table cells: the setting, the gain, and the change in the other measure."""
    if left.same:
        return ["the same", "", ""]
    setting = ", ".join(f"{value:g}" for value in left.parameters.values())
    return [setting, difference(left.differences[left.objective]), difference(left.differences[1 - left.objective])]


def difference(estimate: Estimate) -> str:
    """Formats a difference, in bold if it is significant."""
    # Adding 0.0 removes the minus sign of a number that rounds to zero.
    text = f"{round(estimate.mean, 3) + 0.0:+.3f} ± {estimate.half:.3f}"
    return f"**{text}**" if estimate.beyond else text


def mean(estimate: Estimate) -> str:
    """Formats a mean with its interval."""
    return f"{estimate.mean:.3f} ± {estimate.half:.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
