from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Before anything imports matplotlib: tests have no screen.
os.environ["MPLBACKEND"] = "Agg"

ROOT = Path(__file__).parents[2]

SMALL = """\
name = "small"
duration = "20ms"

[topology.n_source]
sources = 3
link_delay = "5us"

[port.bottleneck]
buffer = 100

[port.bottleneck.policy.epd]
threshold = 60
"""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Answer]


@pytest.fixture
def celltrain(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, in this process."""
    from celltrain.cli import app

    def run(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as ended:
            app([str(argument) for argument in arguments], prog_name="celltrain")
        out, err = capsys.readouterr()
        return Answer(code=int(ended.value.code or 0), out=out, err=err)

    return run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario file that runs in a blink and loses cells."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path
