"""Starts emulations and kills them at random moments: no process, namespace or device may be left.

    python scripts/emulate_kills.py --count 500 --seed 1

Needs root.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

SCENARIO = """\
name = "kills"
duration = "100s"
[topology.n_source]
sources = 2
link_delay = "1ms"
[port.bottleneck]
buffer = 100
[port.bottleneck.policy.tail_drop]
"""
#: Environment variable that marks an emulation and all processes that it starts.
MARK = "CELLTRAIN_KILLS"
#: Typical start-up time of an emulation. The kill happens within twice this time.
START_SECONDS = 1.5
PATIENCE_SECONDS = 5.0


def left(mark: str) -> list[str]:
    """Returns the processes with this mark."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def mounted() -> set[str]:
    """Returns the mounted namespaces. Without a process or a mount, a namespace ends."""
    return {line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - nsfs " in line}


def devices() -> str:
    """Returns the network devices of this namespace."""
    return subprocess.run(["ip", "-oneline", "link"], capture_output=True, text=True, check=True).stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the campaign. Returns 1 if anything was left behind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    draws, faults, running = random.Random(options.seed), 0, 0
    before: tuple[list[str], set[str], str] = [], mounted(), devices()
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder, "kills.toml")
        scenario.write_text(SCENARIO)
        program = "import time; print('up', flush=True); time.sleep(1000)"
        hosts = [
            word for host in ("destination1", "source1") for word in ("--", "host", host, sys.executable, "-c", program)
        ]
        for number in range(options.count):
            mark = f"{os.getpid()}-{number}"
            command = [sys.executable, "-m", "celltrain", "emulate", str(scenario), *hosts]
            output = subprocess.PIPE
            emulation = subprocess.Popen(command, env={**os.environ, MARK: mark}, stdout=output, stderr=output)
            time.sleep(draws.uniform(0, 2 * START_SECONDS))
            emulation.kill()
            out, _ = emulation.communicate()
            running += b"up" in out
            end = time.monotonic() + PATIENCE_SECONDS
            while (now := (left(mark), mounted(), devices())) != before and time.monotonic() < end:
                time.sleep(0.05)
            if now != before:
                faults += 1
                print(
                    f"emulation {number}: left {now[0]}, namespaces {now[1] ^ before[1]}, devices {now[2]}", flush=True
                )
    print(f"{options.count} kills, {running} while programs ran: {faults} left processes or devices")
    return int(faults > 0 or not running)


if __name__ == "__main__":
    sys.exit(main())
