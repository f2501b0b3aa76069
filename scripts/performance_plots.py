"""Draws how the cost of the engines grows, and fills the page docs/performance.md.

    python scripts/performance_plots.py                  draws docs/images/scaling.svg and .png from the saved numbers
    python scripts/performance_plots.py --page           measures (several minutes), saves, draws, fills the page
    python scripts/performance_plots.py --page --saved   fills the page from the saved numbers

The saved numbers are the CSV files in crates/celltrain-bench/measured. The script replaces the text between
`<!-- bench:begin -->` and `<!-- bench:end -->` on the page.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from celltrain.drawing.figure import COLOURS, STYLE
from instruction_guard import CRATE, ROOT, build, cases, compiler, output, run
from paper_page import fill, grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, str]

MEASURED = CRATE / "measured"
PAGE = ROOT / "docs" / "performance.md"
IMAGE = ROOT / "docs" / "images" / "scaling"
ENGINES = ("fast", "reference")
# Number of runs of a whole scenario on each engine, which alternate. The number is odd, so that one run is the median.
ROUNDS = 7
# The axes, their names on the page and in the figure, and whether they are logarithmic.
SERIES = {
    "sources": ("sources", True),
    "buffer": ("buffer (cells)", True),
    "hops": ("contended ports in a row", False),
    "seconds": ("simulated time (s)", True),
    "switches": ("switches of a mesh", True),
    "degree": ("trunk links per switch of a mesh", True),
    "vcs": ("VCs of a mesh", True),
}


def main() -> int:
    """Measures if requested, draws, and fills the page."""
    parser = argparse.ArgumentParser(description="Draw how the engines' cost grows, and update the page.")
    parser.add_argument("--page", action="store_true", help="measure again and update docs/performance.md too")
    parser.add_argument("--saved", action="store_true", help="with --page: use the saved measurements")
    parser.add_argument("--csv", type=Path, default=MEASURED / "scaling.csv", help="what --scaling printed")
    arguments = parser.parse_args()
    if arguments.page and not arguments.saved:
        measure(arguments.csv)
    scaling = read(arguments.csv)
    draw(scaling)
    if arguments.page:
        fill_page(scaling, read(MEASURED / "whole.csv"), read(MEASURED / "machine.csv")[0])
    return 0


def measure(scaling: Path) -> None:
    """Runs everything and saves the medians."""
    program = build()
    scaling.parent.mkdir(parents=True, exist_ok=True)
    print("measuring how cost grows", flush=True)
    scaling.write_text(output([str(program), "--scaling"]), encoding="utf-8")
    rows: list[Row] = []
    for scenario, title in cases(program, "whole").items():
        print(f"measuring {scenario}", flush=True)
        runs = [{engine: run(program, scenario, engine) for engine in ENGINES} for _ in range(ROUNDS)]
        for engine in ENGINES:
            peaks = [each[engine]["peak_rss_mib"] for each in runs]
            seconds = median(each[engine]["engine_seconds"] for each in runs)
            rows.append(
                {
                    "scenario": scenario,
                    "title": title,
                    "engine": engine,
                    "cell_hops": runs[0][engine]["cell_hops"],
                    "engine_seconds": f"{seconds:.6f}",
                    "peak_rss_mib": "" if None in peaks else f"{median(peaks):.1f}",
                }
            )
    write(MEASURED / "whole.csv", rows)
    cores = str(os.cpu_count())
    write(MEASURED / "machine.csv", [{"rustc": compiler(), "architecture": platform.machine(), "cores": cores}])


def draw(scaling: list[Row]) -> None:
    """Draws one panel per axis: the cost of a cell-hop against the quantity that varies."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.style import context

    with context(STYLE), rc_context({"svg.hashsalt": "celltrain"}):
        figure = Figure(figsize=(8.5, 11), layout="constrained")
        panels = figure.subplots(4, 2, sharey=True)
        for axes in panels.flat[len(SERIES) :]:
            axes.set_axis_off()
        for axes, (axis, (label, by_factors)) in zip(panels.flat, SERIES.items(), strict=False):
            panel(axes, [row for row in scaling if row["axis"] == axis], by_factors=by_factors)
            axes.set_xlabel(label)
        # All panels share the scale.
        panels[0, 0].set_yscale("log")
        costs = [float(row["ns_per_cell_hop"]) for row in scaling]
        decades = [1, 10, 100, 1000]
        panels[0, 0].set_yticks(decades, [str(decade) for decade in decades])
        panels[0, 0].set_ylim(bottom=1, top=1.5 * max(costs))
        for axes in panels[:, 0]:
            axes.set_ylabel("cost of a cell-hop (ns)")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        # Put the legend in the unused panel.
        panels.flat[-1].legend(handles, labels, loc="center")
        IMAGE.parent.mkdir(parents=True, exist_ok=True)
        for ending, metadata in (("png", {}), ("svg", {"Date": None})):
            path = IMAGE.with_suffix(f".{ending}")
            figure.savefig(path, dpi=150, metadata=metadata)
            print(f"wrote {path.relative_to(ROOT)}")


def panel(axes: Axes, rows: list[Row], *, by_factors: bool) -> None:
    """Draws one series, with a line for each engine."""
    places = {row["value"]: float(row["value"]) for row in rows if row["value"] != "infinite"}
    if len(places) < len({row["value"] for row in rows}):
        # Draw an infinite buffer one step to the right of the largest finite buffer.
        places["infinite"] = 4 * max(places.values())
    for engine, colour, marker in zip(ENGINES, COLOURS, "os", strict=False):
        chosen = [row for row in rows if row["engine"] == engine]
        at = [places[row["value"]] for row in chosen]
        cost = [float(row["ns_per_cell_hop"]) for row in chosen]
        axes.plot(at, cost, color=colour, marker=marker, markersize=4, label=f"{engine} engine")
    if by_factors:
        axes.set_xscale("log")
        shown = [value for value in places if len(places) < 8 or value[0] in "15i"]
        axes.set_xticks([places[value] for value in shown], [tick(value) for value in shown])
        axes.minorticks_off()
    else:
        axes.set_xticks(list(places.values()), list(places))


def tick(value: str) -> str:
    """Formats a value for an axis."""
    if value == "infinite":
        return "\u221e"
    return f"{int(value):,}".replace(",", "\u2009")


def fill_page(scaling: list[Row], whole: list[Row], machine: Row) -> None:
    """Fills the tables of the page."""
    version = next(line.split('"')[1] for line in (ROOT / "Cargo.toml").open() if line.startswith("version"))
    parts = [
        f"These are results of celltrain {version} (rustc {machine['rustc']}, {machine['architecture']}) on "
        f"{machine['cores']} cores shared with other work.\nThe engines took turns, and the numbers are medians of {ROUNDS} "
        "runs, each in a process of its own. M/s are million cell-hops per second, MiB is the peak memory, and the ratio "
        "shows how many times the fast engine is faster.",
        whole_table(whole),
        "![Cost of a cell-hop against sources, buffer, hops, simulated time, and the size of a random "
        "network](images/scaling.svg)",
        "The figure shows these medians of three runs:",
        scaling_table(scaling),
    ]
    fill(PAGE, "bench", "\n\n".join(parts))
    print(f"wrote {PAGE.relative_to(ROOT)}")


def whole_table(whole: list[Row]) -> str:
    """Returns the table of whole scenarios, with both engines side by side."""
    by_engine = {engine: {row["scenario"]: row for row in whole if row["engine"] == engine} for engine in ENGINES}
    rows = []
    for scenario, fast in by_engine["fast"].items():
        reference = by_engine["reference"][scenario]
        line = [fast["title"], f"{int(fast['cell_hops']):,}"]
        for row in (fast, reference):
            seconds = float(row["engine_seconds"])
            line += [f"{seconds:.4f}", f"{int(row['cell_hops']) / seconds / 1e6:.1f}", whole_mib(row)]
        ratio = float(reference["engine_seconds"]) / float(fast["engine_seconds"])
        rows.append([*line, f"{ratio:.1f}"])
    heads = ["scenario", "cell-hops", "fast: s", "M/s", "MiB", "reference: s", "M/s", "MiB", "ratio"]
    return grid(heads, rows, left=("scenario",))


def scaling_table(scaling: list[Row]) -> str:
    """Returns the table with the points of all series."""
    points: dict[tuple[str, str], dict[str, Row]] = {}
    for row in scaling:
        points.setdefault((row["axis"], row["value"]), {})[row["engine"]] = row
    rows = []
    for (axis, value), engines in points.items():
        line = [SERIES[axis][0], value if value == "infinite" else f"{int(value):,}"]
        for engine in ENGINES:
            if engine in engines:
                row = engines[engine]
                line += [f"{float(row['ns_per_cell_hop']):.1f}", whole_mib(row)]
            else:
                line += ["", ""]
        rows.append(line)
    heads = ["what grows", "to", "fast: ns a cell-hop", "MiB", "reference: ns a cell-hop", "MiB"]
    return grid(heads, rows, left=("what grows",))


def whole_mib(row: Row) -> str:
    """Formats the peak memory, if known."""
    return f"{float(row['peak_rss_mib']):.0f}" if row["peak_rss_mib"] else ""


def read(path: Path) -> list[Row]:
    """Reads the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[Row]) -> None:
    """Writes rows as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
