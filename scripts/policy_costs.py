"""Writes the tables of docs/policy-costs.md from what the core says of its policies and schedulers.

    python scripts/policy_costs.py            writes them
    python scripts/policy_costs.py --check    exits with 1 when the page is stale

What is counted stands on the page itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import page_tables
from celltrain.catalog import Cost, entries

PAGE = Path(__file__).parent.parent / "docs" / "policy-costs.md"
VCS, PLACES = 1000, 4000
# The comparison of Computer Communications 21: what each technique is made of here.
TECHNIQUES = {
    "EPD": ("epd", "fifo"),
    "EPD, per-VC accounting": ("per_vc_accounting", "fifo"),
    "EPD, virtual queuing": ("virtual_queuing", "fifo"),
    "EPD, per-VC queuing": ("per_vc_accounting", "round_robin"),
    "with minimum shares, virtual queuing": ("virtual_queuing_weighted", "fifo"),
    "with minimum shares, per-VC queuing": ("per_vc_accounting", "minimum_rate"),
}


def tables() -> dict[str, str]:
    """The tables, by the name between the page's marks."""
    costs = {entry.name: entry.cost for kind in ("policies", "schedulers") for entry in entries(kind) if entry.cost}
    techniques = ((name, [costs[part] for part in parts]) for name, parts in TECHNIQUES.items())

    def listed(kind: str) -> Iterable[tuple[str, list[Cost]]]:
        for entry in entries(kind):
            yield f"[`{entry.name}`](models/{entry.name}.md)", [costs[entry.name]]

    return {
        "techniques": table("technique", techniques),
        "policies": table("policy", listed("policies")),
        "schedulers": table("scheduler", listed("schedulers")),
    }


def table(title: str, rows: Iterable[tuple[str, list[Cost]]]) -> str:
    """A Markdown table of what each row's parts cost together."""
    columns = ("bits a VC", "bits a port", "bits a place", "operations a cell", "a frame", "bytes in all")
    lines = [f"| {title} | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for name, costs in rows:
        sums = [
            sum(cost.bits_per_vc for cost in costs),
            sum(cost.bits_per_port for cost in costs),
            sum(cost.bits_per_place for cost in costs),
            sum(cost.operations_per_cell for cost in costs),
            sum(cost.operations_per_frame for cost in costs),
            -(-sum(cost.stored_bits(vcs=VCS, places=PLACES) for cost in costs) // 8),
        ]
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in sums)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page_tables.main(PAGE, tables())
