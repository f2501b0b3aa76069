"""Gives every command damaged files, and checks that it reports the damage and loses no data.

    python scripts/mutated_files.py --count 5000
    python scripts/mutated_files.py --case 17

The files are databases of stores and their manifests, plans, search plans, graphs and scheduler files. Damage includes
flipped bytes, truncation, insertions, duplicate keys, values of other types, huge numbers, deep nesting and empty
files. Each file is given to the command line, in this process for speed. The command must end with 0 or 2, or with 1 if
that is a valid answer: `store verify` found something, or a run of a sweep failed. It must never end with 3, a
traceback, a signal or a timeout. If the store can be read afterwards, its rows must be unchanged.

Cases are numbered; a number and the seed reproduce a case (--case). Supervised processes run them, so a process that
dies or hangs costs one case and is reported. The script exits with 1 if anything was wrong.

No case connects to the network: every address in a scheduler file is treated as unreachable.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

#: Number of cases per process.
BATCH = 200
#: Timeout in seconds for one case, with a margin of a minute for busy machines.
PATIENCE = 60.0

PLAN = """\
name = "small"
measures = ["efficiency", "fairness"]

[scenario]
duration = "1ms"

[scenario.topology.n_source]
sources = 2
link_delay = "5us"

[scenario.port.bottleneck]
buffer = 100

[scenario.port.bottleneck.policy.epd]
threshold = 60

[axes]
threshold = { path = "port.bottleneck.policy.epd.threshold", values = [50, 60] }
buffer = { path = "port.bottleneck.buffer", from = 100, to = 300, step = 100 }

[seeds]
first = 1
count = 2

[limits]
time = "200ms"
"""
TUNE = """\
scenario = "lan-selective-drop"

[axes]
duration = ["1ms"]

[tune]
objectives = { efficiency = "maximize", fairness = "maximize" }
trials = 6
batch = 3

[tune.parameters]
Z = { path = "port.bottleneck.policy.selective_drop.z", from = 0.5, to = 2.0 }

[tune.seeds]
search = 1
selection = 2
confirmation = 2
"""
GRAPHML = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="rate" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="a"/><node id="b"/><node id="c"/>
    <edge source="a" target="b"><data key="d0">155.52Mbps</data></edge>
    <edge source="b" target="c"/>
  </graph>
</graphml>
"""
GRAPH = {
    "directed": False,
    "nodes": [{"id": "a"}, {"id": "b"}, {"id": 3}, {"id": "d", "kind": "host"}],
    "links": [
        {"source": "a", "target": "b", "rate": "155.52Mbps", "delay": "5us"},
        {"source": "b", "target": 3},
        {"source": 3, "target": "d", "delay": "1ms"},
    ],
}
SCHEDULER = {"type": "Scheduler", "id": "Scheduler-1", "address": "tcp://127.0.0.1:1", "services": {}, "workers": {}}
KINDS = ("manifest", "database", "plan", "tune plan", "json graph", "xml graph", "scheduler file", "trials")


@dataclass(frozen=True)
class Case:
    """A damaged file, a description of the damage, and the command that reads it."""

    number: int
    kind: str
    how: str
    command: str

    def __str__(self) -> str:
        return f"case {self.number}: {self.kind}, {self.how}, celltrain {self.command}"


class Bench:
    """Intact files in a folder, from which each case starts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.whole, self.case = folder, folder / "whole", folder / f"case-{os.getpid()}"

    def set_up(self, *, search: bool = True) -> None:
        """Creates the intact files; the search takes longest."""
        from celltrain.ensemble.plan import Plan
        from celltrain.ensemble.sweeps import run_plan
        from celltrain.running import Local

        self.whole.mkdir(exist_ok=True)
        (self.whole / "plan.toml").write_text(PLAN)
        (self.whole / "tune.toml").write_text(TUNE)
        (self.whole / "graph.json").write_text(json.dumps(GRAPH))
        (self.whole / "graph.graphml").write_text(GRAPHML)
        (self.whole / "scheduler.json").write_text(json.dumps(SCHEDULER, indent=2))
        run_plan(Plan.of_toml(PLAN), self.whole / "store", Local(1))
        if search:
            code, told = run(["tune", self.whole / "tune.toml", "--store", self.whole / "search", "--jobs", "1"])
            assert code == 0, told
        for name in ("graph.json", "graph.graphml"):
            code, told = run(["import", self.whole / name, "--flows", 2, "--delay", "5us"])
            assert code == 0, told

    def commands(self, kind: str, chance: random.Random) -> tuple[Path, list[object]]:
        """Returns the file to damage, and a command that reads it."""
        at = self.case
        store, plan = at / "store", at / "plan.toml"
        command: list[Any]
        if kind in ("manifest", "database"):
            command = chance.choice(
                [
                    *(["store", verb, store] for verb in ("show", "verify")),
                    ["store", "export", store, "--csv", "--out", at / "rows.csv"],
                    ["sweep", plan, "--store", store, "--resume", "--jobs", "1"],
                    ["sweep", plan, "--store", store, "--resume", "--retry-failed", "--jobs", "1"],
                    ["report", store, "--out", at / "report", "--json"],
                ]
            )
            return store / "store.sqlite", command
        if kind == "plan":
            command = chance.choice(
                [["sweep", plan, "--dry-run"], ["sweep", plan, "--store", store, "--resume", "--jobs", "1"]]
            )
            return plan, command
        if kind == "tune plan":
            return at / "tune.toml", ["tune", at / "tune.toml", "--dry-run", "--store", at / "new"]
        if kind == "trials":
            name = chance.choice(["asked.json", "tune.json"])
            return at / "search" / name, ["tune", at / "tune.toml", "--store", at / "search", "--resume", "--jobs", "1"]
        if kind == "scheduler file":
            file = at / "scheduler.json"
            return file, ["sweep", plan, "--dry-run", "--scheduler-file", file, "--dask-timeout", "20ms"]
        graph = at / ("graph.json" if kind == "json graph" else "graph.graphml")
        return graph, ["import", graph, "--flows", 2, "--delay", "5us", *chance.choice([[], ["--json"]])]

    def other_rows(self) -> str:
        """Returns a complaint if the damaged store is readable but its rows differ from the original; otherwise ""."""
        from celltrain.ensemble.store import Store
        from celltrain.errors import StoreError

        try:
            found = Store.open(self.case / "store").table()
        except StoreError:
            return ""
        return (
            ""
            if found.equals(Store.open(self.whole / "store").table())
            else "contains rows that differ from the rows of the sweep"
        )

    def do(self, seed: int, number: int) -> tuple[Case, int, str]:
        """Runs a case. Returns the case, its exit code, and a description of the failure, if any."""
        chance = random.Random(f"{seed}/{number}")
        kind = KINDS[number % len(KINDS)]
        shutil.rmtree(self.case, ignore_errors=True)
        shutil.copytree(self.whole, self.case)
        path, command = self.commands(kind, chance)
        if kind == "manifest":
            how = changed_manifest(path, chance)
        else:
            how, content = mutated(path.read_bytes(), chance)
            path.write_bytes(content)
        begun = time.monotonic()
        code, told = run(command)
        words = " ".join(str(word).replace(str(self.case), ".") for word in command)
        case = Case(number, kind, how, words)
        may_be_no = command[1] == "verify" or "--resume" in command
        wrong = ""
        if code not in (0, 2) and not (code == 1 and may_be_no):
            wrong = f"ended with {code}"
        elif "Traceback" in told or "internal error" in told:
            wrong = "has a traceback"
        elif kind in ("manifest", "database") and (other := self.other_rows()):
            wrong = other
        elif (took := time.monotonic() - begun) > PATIENCE:
            wrong = f"took {took:.0f} s"
        elif code == 2 and not told.strip():
            wrong = "says nothing"
        return case, code, f"{wrong}: {told[-600:]}" if wrong else ""


def changed_manifest(path: Path, chance: random.Random) -> str:
    """Changes a value of the manifest in a store's database. Returns a description."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT key, value FROM about ORDER BY key").fetchall()
        key, value = chance.choice(rows)
        how, content = mutated(value.encode(), chance)
        text = content.decode(errors="replace").replace("\0", "?")
        connection.execute("UPDATE about SET value = ? WHERE key = ?", (text, key))
    return f"{key} {how}"


def mutated(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Damages a file's content. Returns a description and the new content."""
    how = chance.choice(list(HOW))
    answer = HOW[how](content, chance)
    while how != "nothing" and answer == content and chance.random() < 0.9:
        answer = HOW[how](content, chance)
    return how, answer


def _flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 5, 40])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _overwritten(content: bytes, chance: random.Random) -> bytes:
    place, length = chance.randrange(len(content)), chance.choice([1, 4, 16, 200])
    return content[:place] + chance.randbytes(length) + content[place + length :]


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def _without(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + content[place + chance.randrange(1, 64) :]


def _inserted(content: bytes, chance: random.Random) -> bytes:
    pieces = [
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b"\n",
        b"=",
        b",",
        b"<",
        b"&a;",
        "\u202e".encode(),
    ]
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.choice(pieces) * chance.choice([1, 1, 2, 1000]) + content[place:]


def _twice(content: bytes, chance: random.Random) -> bytes:
    """Repeats a line or the whole content, which duplicates keys."""
    lines = content.splitlines(keepends=True)
    if len(lines) < 2:
        pairs = list(re.finditer(rb'"[^"]*": [^,{}\[\]]+', content))
        if not pairs:
            return content + content
        pair = chance.choice(pairs)
        return content[: pair.start()] + pair[0] + b", " + content[pair.start() :]
    place = chance.randrange(len(lines))
    return b"".join([*lines[: place + 1], lines[place], *lines[place + 1 :]])


VALUES = [
    *(
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b'"x"',
        b"-1",
        b"0",
        b"1e999",
        b"-0.0",
        b"nan",
        b"inf",
        b"NaN",
        b"Infinity",
    ),
    *(b"1" * 5000, b"18446744073709551616", b"9223372036854775808", b"4294967296", b"1e308", b"0.1", b'"\\u0000"'),
    *(b'"' + b"x" * 100_000 + b'"', b"[" * 50 + b"]" * 50, b"[[[[[1]]]]]", b"1979-05-27", b'{"a": 1}', b'"\\ud800"'),
]


def _swapped(content: bytes, chance: random.Random) -> bytes:
    """Replaces a value with another of a different type or size."""
    values = list(re.finditer(rb'(?<=[=:\[,] )?("[^"\n]*"|\b\d[\w.]*\b|\btrue\b|\bfalse\b|\bnull\b)', content))
    if not values:
        return _overwritten(content, chance)
    value = chance.choice(values)
    return content[: value.start()] + chance.choice(VALUES) + content[value.end() :]


def _nested(content: bytes, chance: random.Random) -> bytes:
    depth = chance.choice([50, 79, 81, 200, 990, 1010, 5000, 100_000])
    forms = {
        b"[": (b"[" * depth, b"]" * depth),
        b'{"a":': (b'{"a":' * depth, b"1" + b"}" * depth),
        b"{a=": (b"{a=" * depth, b"1" + b"}" * depth),
        b"<a>": (b"<a>" * depth, b"</a>" * depth),
    }
    begin, end = chance.choice(list(forms.values()))
    values = list(re.finditer(rb"(?<=[=:] )[^\s{}\[\]]+", content))
    if values and chance.random() < 0.7:
        value = chance.choice(values)
        return content[: value.start()] + begin + end + content[value.end() :]
    return chance.choice([begin + end, begin, content + begin + end])


def _emptied(content: bytes, chance: random.Random) -> bytes:
    return chance.choice([b"", b" ", b"\n\n", b"{}", b"[]", b"null", b"\0" * len(content), b"\xef\xbb\xbf"])


HOW: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bytes flipped": _flipped,
    "overwritten": _overwritten,
    "cut short": _cut,
    "a part removed": _without,
    "a part inserted": _inserted,
    "a key twice": _twice,
    "another value": _swapped,
    "a changed value and flipped bytes": lambda content, chance: _flipped(_swapped(content, chance), chance),
    "nested": _nested,
    "emptied": _emptied,
    "nothing": lambda content, _: content,
}


@functools.cache
def command_line() -> Callable[..., None]:
    """Returns the whole command line. Building it takes longer than most commands."""
    from celltrain.cli import app

    return typer.main.get_command(app)


def run(command: Sequence[object]) -> tuple[int, str]:
    """Runs the command line in this process. Returns its exit code and everything printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            command_line()([str(word) for word in command], prog_name="celltrain")
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
    raise AssertionError("a command ends by raising its exit code")


def calm() -> None:
    """Disables network access and run-time estimates, because the cases only test files."""
    cases = importlib.import_module("celltrain.ensemble.cases")
    cluster = importlib.import_module("celltrain.running.cluster")

    async def unreachable(address: str, timeout: float) -> str:
        return "cannot be reached"

    vars(cases)["PROBE_SECONDS"] = 0.02
    vars(cluster)["_missing"] = unreachable


def work(folder: Path, seed: int, numbers: Sequence[int]) -> None:
    """Runs several cases, and prints a line of JSON before and after each."""
    calm()
    bench = Bench(folder)
    for number in numbers:
        print(json.dumps({"begun": number}), flush=True)
        case, code, wrong = bench.do(seed, number)
        print(
            json.dumps({"case": str(case), "kind": case.kind, "how": case.how, "code": code, "wrong": wrong}),
            flush=True,
        )


def _batches(folder: Path, seed: int, numbers: Sequence[int]) -> list[dict[str, object]]:
    """Runs cases in a process that is replaced if it dies. Returns their results."""
    left, found = list(numbers), []
    while left:
        some = left[:BATCH]
        arguments = [sys.executable, __file__, "--work", folder, "--seed", seed, "--numbers", ",".join(map(str, some))]
        out = subprocess.run(
            [*map(str, ["timeout", PATIENCE + len(some) * 5.0]), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in out.stdout.splitlines()]
        found += [line for line in lines if "case" in line]
        begun = [line["begun"] for line in lines if "begun" in line]
        done = sum("case" in line for line in lines)
        if not begun:
            raise SystemExit(f"no case was begun: {out.stderr[-2000:]}")
        if done < len(some):
            last = begun[-1] if len(begun) > done else some[done]
            wrong = f"the process ended with {out.returncode}: {out.stderr[-600:]}"
            found.append(
                {"case": f"case {last}", "kind": KINDS[last % len(KINDS)], "how": "?", "code": 3, "wrong": wrong}
            )
            done = some.index(last) + 1
        left = left[done:]
    return found


def main() -> int:
    """Runs the campaign. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Gives commands files that were changed.")
    parser.add_argument("--count", type=int, default=5000, help="cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="number of processes at a time")
    parser.add_argument("--case", type=int, help="run only this case, and print its message")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--numbers", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work, options.seed, [int(number) for number in options.numbers.split(",")])
        return 0
    numbers = range(options.count) if options.case is None else [options.case]
    codes: Counter[tuple[str, int]] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="celltrain-mutated-") as folder:
        Bench(Path(folder)).set_up()
        begun = time.monotonic()
        batches = [numbers[begin : begin + BATCH] for begin in range(0, len(numbers), BATCH)]
        with ThreadPoolExecutor(options.jobs) as pool:
            answers = pool.map(lambda batch: _batches(Path(folder), options.seed, batch), batches)
            for answer in answers:
                for line in answer:
                    codes[str(line["kind"]), int(str(line["code"]))] += 1
                    if line["wrong"]:
                        wrong += 1
                        print(f"WRONG: {line['case']}: {line['wrong']}", flush=True)
                    elif options.case is not None:
                        print(line["case"], line["code"])
                print(f"{sum(codes.values()):,} files, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        seconds = time.monotonic() - begun
    for kind in KINDS:
        found = ", ".join(f"{count:,} with {code}" for (of, code), count in sorted(codes.items()) if of == kind)
        if found:
            print(f"{kind}: {found}")
    total = sum(codes.values())
    print(f"in all: {total:,} files, {wrong:,} wrong, {60 * total / seconds:,.0f} a minute (seed {options.seed})")
    return 1 if wrong or total < len(numbers) else 0


if __name__ == "__main__":
    sys.exit(main())
