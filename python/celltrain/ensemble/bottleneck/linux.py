"""The kernel of this machine as a sender: programs in Linux hosts send over the network of a case, in real time."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from celltrain.ensemble.bottleneck.cases import Case
from celltrain.ensemble.bottleneck.senders import Sender
from celltrain.errors import InputError
from celltrain.model.network import WITHOUT_TCP, Network
from celltrain.model.paths import seconds
from celltrain.model.scenario import Reading, table
from celltrain.model.types import Scenario
from celltrain.running.emulation import Program, doubts, emulate

#: Port on which receivers listen.
_PORT = 5001
#: Receives data, and writes the time and the number of bytes every 10 ms to a file.
_RECEIVER = """
import select, socket, sys, time
listening = socket.create_server(("", int(sys.argv[1])))
data, _ = listening.accept()
received, due = 0, 0.0
with open(sys.argv[2], "w", buffering=1) as log:
    while True:
        if select.select([data], [], [], 0.01)[0]:
            block = data.recv(1 << 18)
            if not block:
                break
            received += len(block)
        if (now := time.monotonic()) >= due:
            due = now + 0.01
            print(now, received, file=log)
"""
#: Sends endless data with a congestion control, from a time on.
_SENDER = """
import socket, sys, time
host, port, control, wait = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
time.sleep(wait)
data = socket.socket()
if control:
    data.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
data.connect((host, port))
while True:
    data.sendall(bytes(1 << 16))
"""


def emulated(case: Case, sender: Sender, reading: Reading, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Emulates a case. Returns the answer, and the series of delivered bytes; raises `InputError` if it cannot."""
    scenario = table(reading.accepted())
    network = Network.of_core(reading.accepted())
    programs, logs = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for flow in network.flows:
            own = scenario.get("flow", {}).get(flow.name, {})
            if own.get("traffic", {}).keys() & set(WITHOUT_TCP):
                continue
            links = [network.links[link] for link in (flow.links[0], flow.links[-1])]
            source, destination = (network.nodes[node].name for node in (links[0].start, links[1].end))
            logs[flow.name] = Path(folder, flow.name)
            start = own.get("start") or "0s"
            receiver = [sys.executable, "-c", _RECEIVER, str(_PORT), str(logs[flow.name])]
            begins = [destination, str(_PORT), sender.kernel or "", str(seconds(start) + 0.2)]
            programs += [
                Program(host=destination, words=receiver),
                Program(host=source, words=[sys.executable, "-c", _SENDER, *begins]),
            ]
        begun = time.monotonic()
        done = emulate(Scenario.model_validate(scenario), programs, seed=seed)
        if failed := [program.host for program in programs if program.exit_code not in (None, 0, -15, 143)]:
            control = f"the kernel has no congestion control {sender.kernel}, or " if sender.kernel else ""
            raise InputError.saying(f"{control}the program in {failed[0]} failed")
        if found := doubts(done.report):
            raise InputError.saying(f"this machine is too slow for it: {found[0]}")
        return done.to_dict(), _series({name: path.read_text() for name, path in logs.items()}, begun, case.duration)


def _series(logs: Mapping[str, str], begun: float, duration: float) -> dict[str, Any]:
    """Returns the delivered bytes of each flow in steps of 10 ms. The queue is not known."""
    import numpy as np

    times = np.arange(0.0, duration + 0.005, 0.01)
    delivered = {}
    for name, text in logs.items():
        rows = np.array([line.split() for line in re.findall(r"^\S+ \d+$", text, re.MULTILINE)], dtype=np.float64)
        known = rows.reshape(-1, 2)
        delivered[name] = np.interp(times, known[:, 0] - begun, known[:, 1], left=0.0) if len(known) else 0 * times
    unknown = np.full(len(times), np.nan)
    queue = dict.fromkeys(("queue_cells", "queue_cells_least", "queue_cells_largest"), unknown)
    return {"time_s": times, "delivered_bytes": delivered, "cwnd_segments": {}, **queue}
