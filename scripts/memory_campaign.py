"""Holds what is foretold of a run's memory against what it takes.

    python scripts/memory_campaign.py                       200 random large networks and the ring of 10,000 hosts
    python scripts/memory_campaign.py --networks 20 --seed 7 --bytes 100

Each run has a process of its own, and so has its peak. From that goes what the same process took for a network of two hosts.
Fails where a run takes more than 1.5 times what was foretold. What is foretold of windows is what they may have on their
way, so a run may take much less; how many do is said at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: How far a peak may be above what was foretold, as a ratio; and how far below it is told apart.
FARTHEST = 1.5
#: Below so many megabytes what the allocator and the interpreter keep counts too much.
LEAST_MB = 50.0
#: The ring of the promise.
RING_HOSTS = 10_000
RING_PEAK_GB = 1.0
RING_CHECK_SECONDS = 2.0

TINY = """
duration = "1ms"
[topology.star]
hosts = 2
link_delay = "5us"
[tcp.vanilla]
[port.default]
buffer = 100
policy.tail_drop = {}
"""
POLICIES = (
    "policy.tail_drop = {}",
    "policy.ppd = {}",
    "policy.epd.threshold = 800",
    "policy.selective_drop = {}",
    "policy.fba = {}",
    "policy.virtual_queuing.threshold = 900",
)
ALLOCATORS = (
    "allocator.efci.threshold = 250",
    "allocator.equal_share = {}",
    "allocator.erica = {}",
    "allocator.erica_plus = {}",
    "allocator.max_min = {}",
)
SCHEDULERS = ("", "", "scheduler.round_robin = {}", "scheduler.wfq.weights = 1")
VARIANTS = ("vanilla", "reno", "sack", "tahoe")


def main() -> int:
    """Draw, run, compare."""
    parser = argparse.ArgumentParser(description="Compare what runs take of memory with what is foretold.")
    parser.add_argument("--networks", type=int, default=200, help="how many random networks")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--bytes", type=float, default=150.0, help="megabytes of a network, about")
    parser.add_argument("--child", choices=("fast", "reference"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measured(sys.stdin.read(), arguments.child)))
        return 0
    ratios: list[float] = []
    failures = 0
    for number in range(arguments.networks):
        draw = random.Random(f"{arguments.seed}/{number}")
        title, text, engine = network(draw, arguments.bytes)
        found = run_apart(text, engine)
        if "error" in found:
            print(f"{title}: {found['error']}", file=sys.stderr)
            failures += 1
            continue
        ratio = found["peak_mb"] / found["foretold_mb"]
        counts = max(found["peak_mb"], found["foretold_mb"]) >= LEAST_MB
        is_far = counts and ratio > FARTHEST
        failures += is_far
        if counts:
            ratios.append(ratio)
        note = "  too far" if is_far else "" if counts else "  (small)"
        print(
            f"{title:60} {engine:9} foretold {found['foretold_mb']:8.1f} MB, took {found['peak_mb']:8.1f}: "
            f"{ratio:.2f}{note}",
            flush=True,
        )
    if ratios:
        print(
            f"{len(ratios)} networks of {LEAST_MB:g} MB or more: took {min(ratios):.2f} to {max(ratios):.2f} of what was "
            f"foretold, median {statistics.median(ratios):.2f}; "
            f"{sum(ratio < 1 / FARTHEST for ratio in ratios)} took less than {1 / FARTHEST:.2f} of it"
        )
    failures += not ring_is_small()
    return 1 if failures else 0


def ring_is_small() -> bool:
    """Whether the ring of 10,000 hosts keeps what is promised of it."""
    found = run_apart(star(RING_HOSTS, "ring", "5ms", "policy.epd.threshold = 800"), "fast")
    if "error" in found:
        print(f"ring of {RING_HOSTS:,} hosts: {found['error']}", file=sys.stderr)
        return False
    print(
        f"ring of {RING_HOSTS:,} hosts: foretold {found['foretold_mb']:.0f} MB, took {found['peak_mb']:.0f} MB; "
        f"{found['check_seconds']:.2f} s to check, {found['run_seconds']:.1f} s to run"
    )
    return bool(found["peak_mb"] <= RING_PEAK_GB * 1000 and found["check_seconds"] <= RING_CHECK_SECONDS)


def run_apart(text: str, engine: str) -> dict[str, Any]:
    """What a process of its own says of a run."""
    command = [sys.executable, __file__, "--child", engine]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(text: str, engine: str) -> dict[str, Any]:
    """Runs a scenario in this process; what it took beyond what a tiny one did."""
    from celltrain import _core
    from celltrain.scenario import Reading

    def run(text: str) -> tuple[int, float, float]:
        begun = time.monotonic()
        reading = Reading.of_core(_core.parse(text, "scenario"))
        if reading.handle is None:
            raise SystemExit(reading.faults[0].message)
        checked = time.monotonic()
        foretold = reading.handle.memory_needed(engine)
        answer, _ = reading.handle.run(1, engine=engine)
        json.loads(answer)
        return foretold, checked - begun, time.monotonic() - checked

    run(TINY)
    base = peak()
    foretold, check_seconds, run_seconds = run(text)
    return {
        "foretold_mb": foretold / 1e6,
        "peak_mb": (peak() - base) / 1e6,
        "check_seconds": check_seconds,
        "run_seconds": run_seconds,
    }


def peak() -> int:
    """Bytes, the most this process ever had."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike what getrusage says, it begins anew with the program: what started it may have had more.
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def star(hosts: int, pattern: str, duration: str, port: str) -> str:
    """A star with every port alike."""
    return f"""
duration = "{duration}"
[topology.star]
hosts = {hosts}
pattern = "{pattern}"
link_delay = "5us"
[tcp.vanilla]
[port.default]
buffer = 1000
{port}
"""


def network(draw: random.Random, megabytes: float) -> tuple[str, str, str]:
    """A random large network: a title, its scenario and the engine that runs it."""
    # About 20 kB a flow of two VCs over some hops.
    flows = max(10, int(megabytes * 1e6 / 20_000 * draw.uniform(0.4, 1.6)))
    kind = draw.choice(("star", "ring", "n_source", "chain", "vc_merge", "internetwork", "network"))
    engine = draw.choice(("fast", "fast", "fast", "reference"))
    duration = f"{draw.choice((1, 2, 5, 10) if engine == 'fast' else (1, 2))}ms"
    delay = draw.choice(("5us", "50us", "500us"))
    buffer = draw.choice(("1000", "5000", "20000", '"infinite"'))
    policy = draw.choice(POLICIES) if buffer != '"infinite"' else POLICIES[0]
    variant = draw.choice(VARIANTS)
    topology, vcs, abr_fits = _topology(draw, kind, flows, delay)
    scheduler, allocator, contract = draw.choice(SCHEDULERS), "", ""
    if kind in ("vc_merge", "internetwork") and "virtual" in policy:
        policy = POLICIES[0]
    if kind in ("vc_merge", "internetwork") or "virtual" in policy:
        scheduler = ""
    if abr_fits and draw.random() < 0.3:
        allocator, contract = draw.choice(ALLOCATORS), f'[vc."{vcs}".abr]\n'
        if "efci" in allocator and buffer == '"infinite"':
            buffer = "20000"
    elif kind in ("star", "ring", "n_source") and draw.random() < 0.3:
        contract = f'[vc."{vcs}".gfr]\nmcr = "1kbps"\nmfs = 40\n'
    edges = '[edge."*"]\nbuffer = 500\n[edge."*".discard.tail_drop]\n' if kind == "internetwork" else ""
    text = f"""
duration = "{duration}"
{topology}
[tcp.{variant}]
receive_window = "{draw.choice((16384, 65535))}B"
[port.default]
buffer = {buffer}
{policy}
{scheduler}
{allocator}
{contract}
{edges}
"""
    words = [kind, f"{flows} flows", duration, delay, f"K {buffer}", policy.split(".")[1].split()[0], variant]
    extras = [word.split(".")[1].split()[0] for word in (scheduler, allocator) if word]
    return " ".join([*words, *extras, *(["gfr"] if "gfr" in contract else [])]), text, engine


def _topology(draw: random.Random, kind: str, flows: int, delay: str) -> tuple[str, str, bool]:
    """Its table, the range of its VCs, and whether those may be ABR VCs."""
    if kind in ("star", "ring"):
        pattern = "ring" if kind == "ring" else draw.choice(("to_one", "all_pairs"))
        hosts = flows if pattern != "all_pairs" else max(3, int(flows**0.5))
        table = f'[topology.star]\nhosts = {hosts}\npattern = "{pattern}"\nlink_delay = "{delay}"'
        return table, f"tcp1-{flows}", pattern != "all_pairs"
    if kind == "n_source":
        return f'[topology.n_source]\nsources = {flows}\nlink_delay = "{delay}"', f"tcp1-{flows}", True
    if kind == "chain":
        hops, long = draw.choice((3, 10, 30)), draw.choice((1, 20))
        cross = max(1, flows // hops)
        table = f'[topology.chain]\nhops = {hops}\nlong = {long}\ncross = {cross}\nlink_delay = "{delay}"'
        return table, f"cross1-{cross * hops}", False
    if kind == "vc_merge":
        each = draw.choice((2, 20, 100))
        table = f'[topology.vc_merge]\nvcs = {max(1, flows // each)}\nsources_per_vc = {each}\nlink_delay = "{delay}"'
        return table, "", False
    if kind == "internetwork":
        table = f'[topology.internetwork]\nsources = {max(2, flows // 2)}\nip_delay = "{delay}"\natm_delay = "{delay}"'
        return table, "", False
    return _mesh(draw, max(20, min(flows, 6000)), delay), "", False


def _mesh(draw: random.Random, flows: int, delay: str) -> str:
    """Switches in a ring with some chords, hosts at them, and flows between any two."""
    switches, hosts = max(4, flows // 60), max(6, flows // 3)
    links = {(i, (i + 1) % switches) for i in range(switches)}
    while len(links) < 2 * switches:
        a, b = sorted(draw.sample(range(switches), 2))
        if (b, a) not in links:
            links.add((a, b))
    between = [f'["s{a}", "s{b}"]' for a, b in sorted(links)]
    between += [f'["h{host}", "s{draw.randrange(switches)}"]' for host in range(hosts)]
    ends = [draw.sample(range(hosts), 2) for _ in range(flows)]
    lines = [
        "[topology.network]",
        "hosts = [" + ", ".join(f'"h{i}"' for i in range(hosts)) + "]",
        "switches = [" + ", ".join(f'"s{i}"' for i in range(switches)) + "]",
        "links = [" + ", ".join(f'{{ between = {pair}, delay = "{delay}" }}' for pair in between) + "]",
        "flows = [" + ", ".join(f'{{ from = "h{a}", to = "h{b}" }}' for a, b in ends) + "]",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
