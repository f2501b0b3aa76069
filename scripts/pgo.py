"""Runs every shipped scenario once. `make pgo` then compiles the core for what these runs execute most."""

from __future__ import annotations

from pathlib import Path

import celltrain as ct

for scenario in sorted((Path(__file__).parent.parent / "scenarios").glob("*.toml")):
    ct.run(scenario)
