"""Plants faults in a copy of the core, one at a time, and checks that the tests of networks find each fault.

    python scripts/faults.py --seed 2
    python scripts/faults.py --only campaign

`crates/celltrain-scenario/tests/faults.csv` lists the faults. The differential campaign must find a fault in the fast
engine, shrink its network, and report the first event that differs, if any. A law must find a fault in code that both
engines share, and a trial of certificates one in certificates.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Test that runs the differential campaign.
CAMPAIGN = "differential::campaign::both_engines_agree_on_every_network_of_a_campaign"
FAULTS = ROOT / "crates/celltrain-scenario/tests/faults.csv"
CORE = "crates/celltrain-core/src"
COPIED = ["Cargo.toml", "Cargo.lock", "crates", "docs", "examples", "papers", "plans", "scenarios", "studies"]
#: Time limit in seconds for finding, shrinking and bisecting a fault.
LIMIT = 20 * 60
SWITCH = """
/// Returns whether a planted fault is in force.
mod planted {
    pub(crate) fn is_on(fault: &str) -> bool {
        static ON: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| std::env::var("PLANTED").ok());
        ON.as_deref() == Some(fault)
    }
}
"""


def read(table: Path) -> list[dict[str, str]]:
    """Returns the faults of a table. Each fault removes or replaces one statement in a function of the core."""
    with table.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def plant(files: dict[str, str], faults: Iterable[Mapping[str, str]]) -> None:
    """Plants faults in the core's source files, keyed by path. The variable PLANTED activates a fault by its number."""
    for number, fault in enumerate(faults):
        name, statement = f"{CORE}/{fault['file']}", fault["statement"]
        before, function, rest = files[name].partition(f"fn {fault['function']}(")
        assert statement in rest, f"{fault}: the function no longer contains this statement"
        instead = f'if crate::planted::is_on("{number}") {{ {fault.get("instead", "")} }} else {{ {statement} }}'
        files[name] = before + function + rest.replace(statement, instead, 1)
    files[f"{CORE}/lib.rs"] += SWITCH


def build(folder: Path) -> Path:
    """Writes the copy of the project and builds its integration tests. Returns the path of the program."""
    copied = [path for name in COPIED for path in [ROOT / name, *(ROOT / name).rglob("*")] if path.is_file()]
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in copied if path.suffix != ".pyc"}
    texts = {name: text.decode() for name, text in files.items() if name.startswith(CORE) and name.endswith(".rs")}
    plant(texts, read(FAULTS))
    for name, text in (files | {name: text.encode() for name, text in texts.items()}).items():
        path = folder / name
        # Cargo recompiles only files that are newer than its output.
        if not path.exists() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    # Use a separate target folder, because cargo would replace the programs of this checkout.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    command = "cargo test --locked --package celltrain-scenario --test integration --no-run"
    built = subprocess.run(
        [*command.split(), "--message-format=json"], cwd=folder, env=environment, stdout=subprocess.PIPE, check=True
    )
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith(b"{")]
    [program] = [message["executable"] for message in messages if message.get("executable")]
    return Path(program)


def run(program: Path, fault: int, test: str, *, seed: int) -> str:
    """Runs a test with a fault, and returns its output."""
    environment = {
        **os.environ,
        "PLANTED": str(fault),
        "CELLTRAIN_CAMPAIGN": "60000",
        "CELLTRAIN_CAMPAIGN_SEED": str(seed),
        "CELLTRAIN_DIFFERENTIAL": "2000",
    }
    if test != CAMPAIGN:
        # For a law or a certificate, the violation is sufficient.
        environment["PROPTEST_MAX_SHRINK_ITERS"] = "0"
    command = [str(program), "--include-ignored", "--exact", test, "--nocapture"]
    try:
        done = subprocess.run(
            command,
            cwd=program.parent,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "nothing in time"
    return done.stdout if done.returncode else "nothing"


def found(output: str, found_by: str) -> str | None:
    """Returns what a test found, in a line, or `None`. The campaign must show a network and an event."""
    if found_by != "campaign":
        violation = re.search(r"panicked at [^\n]*(?:laws|trials)[^\n]*\n(.+)", output)
        return violation and violation[1]
    network = re.search(r"the engines differ on (network \d+ of \w+)", output)
    # A fault may change a statistic alone.
    differs = (
        r"^(first event that differs: .*$|event \d+ of the end systems differs|the states and events .* are equal)"
    )
    event = re.search(differs, output, re.MULTILINE)
    shrunk = re.search(r"\n(duration = .*?)\n+\{", output, re.DOTALL)
    if not (network and event and shrunk):
        return None
    return f"{network[1]}; {len(shrunk[1].splitlines())} lines of TOML; {event[0]}"


def main() -> int:
    """Runs a test for each fault. Returns 1 if some fault is not found."""
    parser = argparse.ArgumentParser(description="Plant faults in a copy of the core.", allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=1, help="seed of the campaign (default: 1)")
    parser.add_argument("--only", default="", help="faults whose description or test contains this text")
    asked = parser.parse_args()
    folder = ROOT / "target" / "faults"
    program = build(folder)
    missed = []
    for number, fault in enumerate(read(FAULTS)):
        if asked.only not in fault["fault"] and asked.only not in fault["found_by"]:
            continue
        test = CAMPAIGN if fault["found_by"] == "campaign" else fault["found_by"]
        start = time.monotonic()
        output = run(program, number, test, seed=asked.seed)
        (folder / f"fault-{number}.txt").write_text(output)
        what = found(output, fault["found_by"])
        print(f"{(time.monotonic() - start) / 60:5.1f} min  {fault['fault']}: {what or 'NOT FOUND'}", flush=True)
        if not what:
            missed.append(fault["fault"])
    print(f"{len(missed)} faults were not found" if missed else "every fault was found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
