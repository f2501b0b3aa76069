"""Runs of a scenario, and their results."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from typing_extensions import Unpack

from celltrain.errors import Fault, InputError, NotTracedError, ScenarioError, warn
from celltrain.model.arguments import Cancel, Time, checked, cores, current, names_of
from celltrain.model.files import replace as write_text
from celltrain.model.files import writing
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.model.measures import ROWS, SERIES
from celltrain.model.network import Network, tcp_summary
from celltrain.model.scenario import read, table
from celltrain.running import tables
from celltrain.running.events import Capture, EventLog, Events
from celltrain.running.qlog import recording
from celltrain.text import as_json, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain import _core
    from celltrain.drawing.plot import Plot
    from celltrain.model.types import Scenario
    from celltrain.running.statistics import Steady

ENGINES = ("fast", "reference")
#: Maximum number of ports that a message lists, and that a card shows.
MOST_PORTS, MOST_PORTS_SHOWN = 8, 4
#: Largest expected number of requests for which a run keeps rows by default.
MOST_ROWS = 1_000_000


class RunOptions(TypedDict, total=False):
    """Options of a run that do not affect its result.

    Attributes:
        engine: `"fast"`, or `"reference"`, which is naive and slow and must give the same fingerprint. When None, the
            fast one, unless a capture or some of the events need the reference engine.
        threads: Largest number of threads that share the run, 1 when left out. The result is the same, bit for bit, for
            any number. Large networks with long links gain most; others run on one thread, with a warning. `trace`,
            `delays`, `events`, `pcap` and the reference engine need a single thread.
        progress: Called regularly with the completed share of the run, 0 to 1.
        cancel: A handle that cancels the call from another thread; see `celltrain.Cancel`.
    """

    engine: str | None
    threads: int
    progress: Callable[[float], object] | None
    cancel: Cancel | None


@checked(
    ScenarioError,
    elsewhere={
        "seeds": "run simulates one seed. For several: celltrain.compare({first}, seeds={value})",
        "policy": "run takes a scenario as it is. For another policy: celltrain.run(celltrain.load({first}, "
        'settings={{"port.bottleneck.policy": {value}}}))',
        "vary": "run simulates one setting. For several: celltrain.compare({first}, vary={value})",
        "settings": "run takes a scenario as it is. To change it: celltrain.run(celltrain.load({first}, settings={value}))",
    },
)
def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    seed: int | None = None,
    trace: str | Sequence[str] = (),
    step: Time | None = None,
    ports: str | Sequence[str] | None = None,
    delays: bool = False,
    request_rows: bool | None = None,
    events: Events | str | os.PathLike[str] | None = None,
    pcap: Capture | str | os.PathLike[str] | None = None,
    qlog: str | os.PathLike[str] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Simulates a scenario, cell by cell. Other Python threads can run meanwhile; Ctrl-C stops the simulation at once.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one, such as `"lan-epd"`.
        seed: Seed of every random choice; the scenario's own when None.
        trace: Series to record: `"queue"`, `"occupancy"`, `"cwnd"`, `"delivered"`, `"acr"`, `"edge"`, `"memory"`.
            Recording does not affect the run. The last three need connections with a controlled rate, an edge device,
            or ports that share a memory.
        step: Time between two samples of the series, for example `"1ms"`.
        ports: Names of the ports whose queue and occupancy are recorded; the bottleneck when None.
        delays: True to measure the delays of packets: round-trip times, one-way delays and jitter of flows, and queueing
            delays at ports and in the queues of memories. Adds columns to `flows`, `ports` and `queues`.
        request_rows: True to keep a row for each request in `requests`, which takes up to 600 bytes each. When None,
            rows are kept if at most a million requests are expected. The measures of `request_groups` need no rows.
        events: Events to record, and where: a `celltrain.Events`, or a folder for events of all kinds. Recording does
            not affect the run.
        pcap: A capture of the run for Wireshark and similar programs: a `celltrain.Capture`, or a file for the packets
            at the senders' hosts. Capturing does not affect the run.
        qlog: A file for the log of each connection at its sender, such as `"run.sqlog"`, in the form of JSON text
            sequences, or `"run.qlog"` for the viewer qvis. Several connections get a file each: `run-tcp1.sqlog`. If `events` are recorded, they must contain
            segments, and their choice of flows and times applies.
        options: See `celltrain.RunOptions`: engine, threads, progress, cancel.

    Raises:
        ScenarioError: If the scenario or an option is invalid; lists every fault.
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> lan = ct.n_source(
    ...     sources=5, link_delay="5us", buffer_cells=1000, policy=ct.TailDrop(), duration="50ms", tcp=ct.Tahoe()
    ... )
    >>> result = ct.run(lan, seed=7, trace=["queue"], step="1ms")
    >>> result.series["queue"].column_names
    ['time_s', 'port', 'queue_cells', 'queue_cells_least', 'queue_cells_largest']
    >>> result.fingerprint == ct.run(lan, seed=7, engine="reference").fingerprint
    True
    """
    trace, engine, threads = (
        tuple(dict.fromkeys(names_of(trace) or ())),
        options.get("engine"),
        options.get("threads", 1),
    )
    events = events if events is None or isinstance(events, Events) else Events(events)
    capture = pcap if pcap is None or isinstance(pcap, Capture) else Capture(pcap)
    faults = [Fault.of_choice("trace", name, "a series", SERIES) for name in trace if name not in SERIES]
    if engine is not None and engine not in ENGINES:
        faults.append(Fault.of_choice("engine", engine, "an engine", ENGINES))
    if seed is not None and not 0 <= seed < 1 << 64:
        faults.append(Fault.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1"))
    if events is not None and capture is not None and _overlap(events, capture):
        problem = "is where the events are written; name another file"
        faults.append(Fault.of_option("pcap", shown(capture.path), problem))
    most = cores()
    if not 1 <= threads <= most:
        problem = f"is not a number of threads from 1 to {most}, one for each core"
        faults.append(Fault.of_option("threads", threads, problem))
    elif threads > 1:
        observers = {"trace": trace, "delays": delays, "events": events, "pcap": pcap, "engine": engine == "reference"}
        observers["qlog"] = qlog
        problem = "cannot be combined with {}, which needs a single thread"
        faults += [Fault.of_option("threads", threads, problem.format(name)) for name, on in observers.items() if on]
    if faults:
        raise ScenarioError(faults)
    needed = {one.engine(engine) for one in (events, capture) if one is not None}
    case = read(scenario).accepted()
    warn(case.warnings)
    if threads > 1 and case.threads_of(threads, current()) == 1:
        reason = "this network cannot be usefully divided among threads"
        warn([f"threads = {threads}: the run uses one thread, because {reason}"])
    settings = table(case)
    if qlog is not None:
        with recording(Path(qlog), Network.of_core(case), events, capture) as (kept, captured, write):
            result = run(
                scenario, seed=seed, trace=trace, step=step, ports=ports, delays=delays, request_rows=request_rows,
                events=kept, pcap=captured, **options,
            )  # fmt: skip
            write(result, settings)
        return result if events is not None else replace(result, events=EventLog(None, **result.events._facts))
    try:
        with ExitStack() as files:
            outputs: dict[str, Any] = {}
            # Errors of a capture name its own files, so captures are opened first.
            if capture is not None:
                captures = [(one.for_core(), files.enter_context(one.taking())) for one in capture.by_file()]
                outputs |= {"captures": captures, "on_captured": capture.count}
            if events is not None:
                facts = _facts(settings, settings.get("seed") if seed is None else seed)
                outputs |= {"events": events.for_core(), "on_events": files.enter_context(events.taking(facts))}
            if outputs:
                outputs["event_engine"] = engine or ("reference" if "reference" in needed else "fast")
            recorded = (trace, step, names_of(ports))
            records: list[dict[str, Any]] = []
            doubts: list[str] = []
            answer_json, series = case.run(
                seed,
                *recorded,
                engine or "fast",
                options.get("progress"),
                current(),
                threads=threads,
                on_requests=records.append,
                most_requests={None: MOST_ROWS, False: 0, True: 2**64 - 1}[request_rows],
                delays=delays,
                on_warnings=doubts.extend,
                **outputs,
            )
            answer = {"tcp": tcp_summary(settings), **json.loads(answer_json)}
            if events is not None:
                events.known = _for_diagrams(answer)
    except ScenarioError as error:
        refused = [_with_ports(case, fault) for fault in error.faults]
        raise ScenarioError(_with_file(scenario, fault) for fault in refused) from None
    warn(doubts)
    if answer["fairness"] is None and answer["flows"]:
        advice = "check that the policy admits frames and that the run is longer than a round trip"
        warn([f"this run delivered no data, so its fairness is undefined: {advice}"])
    warn(lower_bounds(answer))
    warn(lossless_losses(answer, settings))
    warn(dead_classes(answer, settings))
    return RunResult._of(answer, series, None if events is None else events.folder, *records)


#: Classes of requests in tables, in their order.
CLASSES = ("short", "medium", "long", "all", "queries")


def lower_bounds(answer: Mapping[str, Any]) -> list[str]:
    """Returns a warning for each group of requests with percentiles that are only lower bounds."""
    found = []
    for group in answer["requests"]:
        rows = {name: group[name] for name in CLASSES if group[name] is not None and group[name]["censored"]}
        opened = {name: row["asked" if name == "queries" else "opened"] for name, row in rows.items()}
        if rows:
            classes = ", ".join(f"{name}: {row['open']:,} of {opened[name]:,}" for name, row in rows.items())
            found.append(
                f"requests.{shown(group['name'])}: some percentiles are only lower bounds, because requests were open at the "
                f"end ({classes}); run longer, or let measure.to end earlier"
            )
    return found


def lossless_losses(answer: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Returns a warning if lossless groups refused packets although they had paused their links."""
    tables = (one for one in settings.get("switch", {}).values() if isinstance(one, Mapping))
    if not any((one.get("memory") or {}).get("pauses") == "links" for one in tables):
        return []
    lost = [one for one in answer["queues"] if one["max_headroom_cells"] > 0 and one["refused_cells"] > 0]
    if not lost:
        return []
    most = max(lost, key=lambda one: one["refused_cells"])
    groups = "a lossless group" if len(lost) == 1 else f"{len(lost)} lossless groups"
    which = "" if len(lost) == 1 else "most often "
    return [
        f"queues: {groups} refused packets although the link was paused, {which}{shown(most['name'])} "
        f"({most['refused_cells']:,} times, with {most['max_headroom_cells']:,} cells of headroom in use): the headroom is too "
        f"small for the delay of the link, the packets under way and the response time; make headroom larger"
    ]


def dead_classes(answer: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Returns a warning for each Python class of a memory that admitted no cell of a pool. Checks never call a class."""
    admitted: dict[str, dict[tuple[str, str], bool]] = {}
    for queue in answer["queues"]:
        memory = queue["name"].rsplit("/", 2)[0]
        if queue["entered_cells"] or queue["refused_cells"]:
            pools = admitted.setdefault(memory.partition(".")[0], {})
            pools[memory, queue["pool"]] = pools.get((memory, queue["pool"]), False) or queue["entered_cells"] > 0
    found: dict[str, str] = {}
    for switch, pools in admitted.items():
        tables = settings.get("switch", {})
        own: Mapping[str, Any] = tables.get(switch) or next(
            (one for key, one in tables.items() if fnmatchcase(switch, key)), {}
        )
        for (memory, pool), has_cells in pools.items():
            part = memory.partition(".")[2]
            table = own.get("memories", {}).get(part, {}) if part else own.get("memory") or {}
            policy = table.get("pool", {}).get(pool, {}).get("policy", {})
            if not has_cells and "python" in policy:
                found.setdefault(policy["python"]["class"], f"{shown(memory)}/{shown(pool)}")
    return [
        f"{shown(called.partition(':')[2])} refuses every cell, also while the pool is empty: no cell entered {place}"
        for called, place in found.items()
    ]


def _with_file(scenario: object, fault: Fault) -> Fault:
    """Adds the file to a fault of the whole run, such as an exception in a Python policy."""
    if fault.file or fault.key or not isinstance(scenario, str | os.PathLike):
        return fault
    file = shown(scenario)
    return replace(fault, file=file, message=f"{file}: {fault.message}")


def _with_ports(case: _core.Case, fault: Fault) -> Fault:
    """Adds the network's ports to a fault of an option that names an unknown port."""
    if not fault.problem.endswith("is not a port of this network"):
        return fault
    names = [link.name for link in Network.of_core(case).links]
    # List the ports at the named node first.
    node = fault.value.strip('"')
    names.sort(key=lambda name: not (node and node in name.split("->")))
    more = f" and {len(names) - MOST_PORTS:,} more" if len(names) > MOST_PORTS else ""
    return fault.changed(problem=f"{fault.problem}; choose from {', '.join(map(shown, names[:MOST_PORTS]))}{more}")


def _overlap(events: Events, capture: Capture) -> bool:
    """Returns whether the capture would be the events folder, a folder above it, or a file in it."""
    folder, *files = (Path(os.path.normpath(path.absolute())) for path in (events.folder, *capture.paths))
    return not {folder, *folder.parents, *(folder / path.name for path in events.paths)}.isdisjoint(files)


def _facts(settings: Mapping[str, Any], seed: Any) -> dict[str, str]:
    """Returns the facts about a run that its event files store."""
    own = json.dumps({name: value for name, value in settings.items() if name != "seed"}, sort_keys=True, default=str)
    digest = hashlib.sha256(own.encode()).hexdigest()
    return {"scenario": str(settings.get("name", "")), "seed": str(seed), "scenario_sha256": digest}


def _for_diagrams(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the facts about a run that diagrams need: see `celltrain.running.events.FOR_DIAGRAMS`."""
    return {
        "flows": [flow["name"] for flow in answer["flows"]],
        "buffers": {port["name"]: port["buffer_cells"] for port in answer["ports"]},
        "tcp": answer["tcp"],
    }


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RunResult(CardMixin):
    """The result of a run: measures as numbers; flows, ports and series as Arrow tables; plots.

    pandas, polars and duckdb read the tables without copying: `result.flows.to_pandas()`,
    `polars.from_arrow(result.flows)`, `duckdb.from_arrow(result.flows)`. The metadata of every column has its unit and
    meaning:

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="10ms")
    >>> ct.run(lan).flows.field("goodput_mbps").metadata[b"unit"]
    b'Mb/s'
    """

    scenario: str
    """The scenario's name."""
    seed: int
    """The seed of the run."""
    tcp: str
    """The TCP of the flows, such as `vanilla (no fast retransmit, 100 ms ticks)`."""
    engine: str
    """The engine that executed the run."""
    duration_s: float
    """Simulated seconds."""
    efficiency: float
    """Sum of the goodputs of the flows through the bottleneck, each as a fraction of its maximum at that port."""
    fairness: float | None
    """Jain's index of the goodputs of UBR flows: 1 when all are equal, k/n when k of n flows share equally.

    If there is no UBR flow, the index covers all flows. None if these flows delivered nothing: the index is 0/0.
    """
    fairness_max_min: float | None
    """Jain's index of the goodputs relative to the max-min fair goodputs (column `max_min_mbps` of `flows`).

    It equals `fairness` if all flows have the same fair share. None if these flows delivered nothing.
    """
    goodput_mbps: float
    """Sum of the goodputs of all flows, in megabits per second."""
    file_delay_ms: dict[str, Any] | None
    """Delay of the files into which the flows' streams are divided; None if `measure.file_size` is not set.

    `mean`, `median` and `p95` are in milliseconds, or None if no file was completed; `files` counts completed files.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=1, link_delay="5us", buffer_cells="infinite", policy=ct.TailDrop(), duration="1s")
    >>> result = ct.run(lan.replace(measure=ct.MeasureOptions(file_size="100kB")))
    >>> delay = result.file_delay_ms
    >>> round(delay["mean"], 1), delay["files"]
    (10.5, 156)
    """
    cells: dict[str, int]
    """Cells `offered`, `delivered`, `lost`, `discarded`, `in_flight`; over a run the first is the sum of the rest."""
    cell_hops: int
    """Number of cell transmissions over links: each cell counts once per link."""
    fingerprint: str
    """16 hex digits that change if the time of any segment or acknowledgement changes."""
    series: tables.Series
    """The recorded series by name, each a table with a row for every sample and port or flow."""
    events: EventLog
    """The recorded events by kind. Each table is read from its file on first use."""
    _answer: dict[str, Any]
    _records: dict[str, Any]

    @classmethod
    def _of(
        cls,
        answer: dict[str, Any],
        series: dict[str, Any] | None,
        events: Path | None = None,
        records: dict[str, Any] | None = None,
    ) -> RunResult:
        """Makes a result from the core's answer, its series, the folder of the events and the records of requests."""
        parts = {name: deepcopy(answer[name]) for name in cls.__dataclass_fields__ if name in answer}
        log = EventLog(events, scenario=answer["scenario"], seed=answer["seed"], **_for_diagrams(answer))
        return cls(**parts, series=tables.Series(series or {}), events=log, _answer=answer, _records=records or {})

    @property
    def engine_seconds(self) -> float:
        """Wall-clock time that the engine took, in seconds."""
        return float(self._answer["timing"]["engine_seconds"])

    @property
    def cell_hops_per_second(self) -> float:
        """The engine's speed."""
        return float(self._answer["timing"]["cell_hops_per_second"])

    @cached_property
    def flows(self) -> pa.Table:
        """The connections, one row each."""
        return self._table("flows")

    @cached_property
    def ports(self) -> pa.Table:
        """The output ports, one row each."""
        return self._table("ports")

    @cached_property
    def links(self) -> pa.Table:
        """The links with loss rules, one row each."""
        return self._table("links")

    @cached_property
    def contracts(self) -> pa.Table:
        """The VCs with a contract, one row each: what happened to their frames at the network's edge, and losses."""
        return self._table("contracts")

    @cached_property
    def abr(self) -> pa.Table:
        """The VCs with a controlled rate (ABR), one row each, both directions: final ACR and RM cells."""
        return self._table("abr")

    @cached_property
    def memories(self) -> pa.Table:
        """The memories shared by ports, one row each."""
        return self._table("memories")

    @cached_property
    def queues(self) -> pa.Table:
        """The queues and priority groups of these memories, one row each.

        If delays are measured, also the queues between which a scheduler or a shaped port selects.
        """
        return self._table("queues")

    @cached_property
    def requests(self) -> pa.Table:
        """The requests that opened in the measured time, one row each, sorted by group and then by time of opening.

        Raises `NotTracedError` if the run kept no rows: see `celltrain.run`.

        >>> import celltrain as ct
        >>> star = ct.n_source(sources=2, link_delay="5us", buffer_cells=500, policy=ct.Ppd(), duration="10ms")
        >>> query = ct.Incast(senders=1, bytes="5kB", interval="4ms", receivers=["destination1"])
        >>> star = star.replace(incast={"query": query}, port={"default": star.port["bottleneck"]})
        >>> ct.run(star).requests.column("bytes").to_pylist()
        [5000, 5000]
        """
        if not self._records and (groups := self._answer["requests"]):
            opened = sum(group["opened"] for group in groups)
            problem = f"this run had {opened:,} requests and did not keep a row for each of them"
            raise NotTracedError(f"{problem}: use run(..., request_rows=True)")
        return tables.requests(self._records)

    @cached_property
    def request_groups(self) -> pa.Table:
        """The groups of requests, one row each: completion times and slowdowns by size."""
        return self._table("requests")

    def _table(self, name: str) -> pa.Table:
        rows = self._answer.get(name, [])
        measures = [one for one in ROWS[name] if not one.on_request or any(one.name in row for row in rows)]
        return tables.table(rows, [measure.as_column() for measure in measures])

    @checked()
    def steady(self, flow: str | None = None) -> Steady:
        """Finds when the goodput has settled, and its mean from then on, with an interval from this run alone.

        The warm-up is determined by MSER-5, a heuristic. Exclude it with `measure.from`; for several seeds, use the
        longest. The mean is in Mb/s; its 95 % interval is computed by batch means.

        Args:
            flow: Name of a flow; the goodput of all flows together when None.

        Raises:
            NotTracedError: If the run did not record `delivered`.
            InputError: If there is no such flow, or there are fewer than 100 samples.

        >>> import celltrain as ct
        >>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=300, policy=ct.SelectiveDrop(), duration="1s")
        >>> settled = ct.run(lan, trace=["delivered"], step="1ms").steady()
        >>> settled.from_s is None or 0 <= settled.from_s <= 0.5
        True
        """
        import numpy as np

        from celltrain.running import statistics

        times, flows, [delivered] = self.series.raw("delivered")
        if flow is not None and flow not in flows:
            problem = f"is not a flow; choose from {', '.join(map(shown, flows[:9]))}"
            raise InputError.of_option("flow", shown(flow), problem)
        if len(times) <= statistics.FEWEST_SAMPLES:
            problem = (
                f"gives {len(times)} samples of the run; use a shorter step, for at least {statistics.FEWEST_SAMPLES}"
            )
            raise InputError.of_option("step", "", problem)
        of_all = delivered.sum(axis=1) if flow is None else delivered[:, flows.index(flow)]
        megabits = np.diff(of_all.astype(np.float64)) * 8 / 1e6
        return statistics.steady(times[1:], megabits / np.diff(times))

    @property
    def plot(self) -> Plot:
        """Plots of the recorded series, and diagrams of the events; needs `pip install celltrain[plot]`."""
        from celltrain.drawing.figure import LONGEST_TITLE, brief
        from celltrain.drawing.plot import Plot

        name = brief(self.scenario or "scenario", LONGEST_TITLE)
        title = [f"{name}, seed {self.seed}", brief(f"TCP: {self.tcp}", LONGEST_TITLE)]
        return Plot(self.series, self._answer, title, lambda: self.events.plot)

    def to_dict(self) -> dict[str, Any]:
        """Returns the complete answer without the series, as `celltrain run --json` prints it."""
        return deepcopy(self._answer)

    def to_pandas(self) -> Any:
        """Returns the flows as a pandas DataFrame; needs `pip install celltrain[frames]`."""
        return self.flows.to_pandas()

    @checked()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes the results into a folder, which is made if needed; returns the files written.

        Args:
            folder: Folder for `result.json`, and flows, ports, requests and recorded series as Parquet and CSV.
        """
        target = Path(folder)
        contents = {"flows": self.flows, "ports": self.ports, **({"abr": self.abr} if len(self.abr) else {})}
        if self._records:
            contents["requests"] = self.requests
        if self._answer["requests"]:
            contents["request_groups"] = self.request_groups
        # Write `result.json` last, so that a folder that contains it is complete.
        written = [target / "result.json"]
        with writing(folder):
            target.mkdir(parents=True, exist_ok=True)
            for name, content in {**contents, **self.series}.items():
                for ending, write in (("parquet", tables.write_parquet), ("csv", tables.write_csv)):
                    written.append(target / f"{name}.{ending}")
                    write(content, written[-1])
            write_text(written[0], as_json(self.to_dict()) + "\n")
        return written

    def _card(self) -> Card:
        answer, columns = self._answer, ("lost_cells", "discarded_cells", "max_queue_cells")
        flows = [
            [
                one["name"],
                f"{one['goodput_mbps']:.3f}",
                *("" if one[name] is None else f"{one[name]:,}" for name in ("retransmitted_segments", "timeouts")),
            ]
            for one in answer["flows"]
        ]
        # Ports with most losses come first. A mesh has thousands of ports.
        ports = sorted(answer["ports"], key=lambda one: [-one[name] for name in columns])
        rows = [[one["name"], *(f"{one[name]:,}" for name in columns)] for one in ports[:MOST_PORTS_SHOWN]]
        heads = ["port", "lost cells", "discarded cells", "largest queue (cells)"]
        groups = [
            [
                one["name"],
                *("" if one[name] is None else f"{one[name]:,}" for name in ("opened", "completed", "timeouts")),
            ]
            for one in answer["requests"]
        ]
        figures = (
            f"efficiency {self.efficiency:.4f}, fairness {share(self.fairness)}, goodput {self.goodput_mbps:.4g} Mb/s"
        )
        return Card(
            title=f"{self.scenario or 'A run'}, seed {self.seed}",
            lines=[f"{figures} in {self.duration_s:g} s", f"TCP: {self.tcp}"],
            grids=[
                *(
                    [Grid(heads=["flow", "goodput (Mb/s)", "retransmitted segments", "timeouts"], rows=flows)]
                    if flows
                    else []
                ),
                *([Grid(heads=["requests", "opened", "completed", "timeouts"], rows=groups)] if groups else []),
                Grid(heads=heads, rows=rows, more=max(0, len(ports) - MOST_PORTS_SHOWN)),
            ],
            notes=[f"cells: {balance(answer)}", f"fingerprint {self.fingerprint}"],
        )

    def __repr__(self) -> str:
        name = f"{self.scenario!r}, " if self.scenario else ""
        return (
            f"RunResult({name}seed={self.seed}, efficiency={self.efficiency:.4f}, fairness={share(self.fairness)}, "
            f"fingerprint={self.fingerprint!r})"
        )


def share(value: float | None) -> str:
    """Formats a share with four decimals, or says that it is undefined (0/0).

    >>> share(0.98765), share(None)
    ('0.9877', 'undefined')
    """
    return "undefined" if value is None else f"{value:.4f}"


def balance(answer: Mapping[str, Any]) -> str:
    """Describes what became of the cells offered during measurement, as an equation unless measurement ends early."""
    cells, begin = answer["cells"], answer["measured_from_s"]
    offered, *parts, left = (
        f"{cells[name]:,} {name.replace('_', ' ')}"
        for name in ("offered", "delivered", "lost", "discarded", "in_flight")
    )
    if answer["measured_to_s"] < answer["duration_s"]:
        # If measurement ends before the run does, the number of cells in flight at its end is unknown.
        return ", ".join([offered, *parts])
    # Every run asserts that all cells are accounted for, so the remaining cells were in flight when measurement began.
    before = sum(cells[name] for name in ("delivered", "lost", "discarded", "in_flight")) - cells["offered"]
    first = f"{before:,} in flight at {begin:g} s + {offered}" if begin > 0 else offered
    return f"{first} = {' + '.join([*parts, left])}"
