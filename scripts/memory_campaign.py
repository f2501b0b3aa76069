"""Checks that runs refused for lack of memory would really not fit, and that all other runs complete.

    python scripts/memory_campaign.py                       50 random large networks
    python scripts/memory_campaign.py --networks 20 --seed 7 --limit 100

Each run has its own process, limited to this number of megabytes above its initial memory. The script fails if a
process dies. It runs refused networks again without a limit, and fails if one needs less than the refusal claims.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

#: Finds the number of bytes in the message of a refusal.
REFUSED = re.compile(r"take more than (\d+\.\d) ([GM])iB of memory")

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
    """Draws networks, runs them, and compares the used memory with the estimates."""
    parser = argparse.ArgumentParser(description="Check that refused runs would not fit and that others end.")
    parser.add_argument("--networks", type=int, default=50, help="number of random networks to check")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random networks")
    parser.add_argument("--limit", type=float, default=200.0, help="megabytes that a process may take")
    parser.add_argument("--child", choices=("fast", "reference"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measured(sys.stdin.read(), arguments.child, arguments.limit)))
        return 0
    ends: Counter[str] = Counter()
    for number in range(arguments.networks):
        draw = random.Random(f"{arguments.seed}/{number}")
        title, text, engine = network(draw, arguments.limit * draw.choice((0.2, 0.5, 1, 2, 5)))
        found = run_apart(text, engine, arguments.limit)
        line = f"{found['end']}, {found['peak_mb']:.0f} MB"
        if found["end"] == "refused":
            size, unit = REFUSED.findall(found["words"])[0]
            said = float(size) * {"M": 1 << 20, "G": 1 << 30}[unit] / 1e6
            taken = run_apart(text, engine, 0.0)["peak_mb"]
            line += f". The estimate was more than {said:.0f} MB, but the process took {taken:.0f} MB"
            if taken < said:
                found["end"] = "refused wrongly"
        ends[found["end"]] += 1
        print(f"{title:70} {engine:9} {line}{'  ' + found['words'] if found['end'] == 'died' else ''}", flush=True)
    print(", ".join(f"{count} {end}" for end, count in ends.items()))
    return 1 if ends["died"] or ends["refused wrongly"] else 0


def run_apart(text: str, engine: str, limit: float) -> dict[str, Any]:
    """Runs a scenario in its own process, limited to this number of megabytes; 0 means unlimited."""
    command = [sys.executable, __file__, "--child", engine, "--limit", str(limit)]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return {"end": "died", "words": f"exit code {done.returncode}: {last}", "peak_mb": 0.0}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(text: str, engine: str, limit: float) -> dict[str, Any]:
    """Runs a scenario in this process. Returns how it ended and the memory it used."""
    from celltrain import _core
    from celltrain.model.scenario import Reading

    base = status("VmHWM")
    if limit:
        most = status("VmSize") + int(limit * 1e6)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    end, words = "finished", ""
    reading = Reading.of_core(_core.parse(text, "scenario"))
    if reading.case is None:
        end, words = "refused", reading.faults[0].message
    else:
        try:
            answer, _ = reading.case.run(1, engine=engine)
            json.loads(answer)
        except ValueError as error:
            end, words = "outgrown", str(error)
    if end != "finished" and "does not fit" not in words:
        raise SystemExit(words)
    return {"end": end, "words": words, "peak_mb": (status("VmHWM") - base) / 1e6}


def status(name: str) -> int:
    """Returns a number of bytes from this process's status in /proc."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def star(hosts: int, pattern: str, duration: str, port: str) -> str:
    """Returns a star in which all ports have the same settings."""
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
    """Draws a random large network. Returns a title, its scenario and the engine to run it."""
    # About 10 kB per flow, with two VCs over several hops.
    flows = max(10, int(megabytes * 1e6 / 10_000 * draw.uniform(0.4, 1.6)))
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
    """Returns a topology table, the range of its VCs, and whether they may be ABR VCs."""
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
    """Returns switches in a ring with chords, hosts attached to them, and flows between any two hosts."""
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
