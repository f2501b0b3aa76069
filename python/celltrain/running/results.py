"""Running a scenario, and what comes of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, InputError, NotTracedError, ScenarioError, warn
from celltrain.model.arguments import Answer, Time, checked, cores
from celltrain.model.cancel import Cancel, current, endable
from celltrain.model.cards import Card, Carded, Grid
from celltrain.model.measures import SERIES
from celltrain.model.progress import watched
from celltrain.model.scenario import read, table
from celltrain.model.writing import writing
from celltrain.running import tables
from celltrain.running.captures import Capture
from celltrain.running.event_log import EventLog
from celltrain.running.events import Events
from celltrain.text import described, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain import _core
    from celltrain.drawing.plot import Plot
    from celltrain.model.types import Scenario
    from celltrain.running.steady import Steady
from celltrain.running.summary import tcp_summary

ENGINES = ("fast", "reference")
#: Ports that a message names, and those that a card shows.
MOST_PORTS, MOST_PORTS_SHOWN = 8, 4
#: What can be recorded: each series and what it is.
TRACES = {name: series.meaning for name, series in SERIES.items()}


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
@endable
@watched
def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    seed: int | None = None,
    trace: str | Sequence[str] = (),
    step: Time | None = None,
    ports: str | Sequence[str] | None = None,
    engine: str | None = None,
    threads: int = 1,
    events: Events | str | os.PathLike[str] | None = None,
    pcap: Capture | str | os.PathLike[str] | None = None,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> RunResult:
    """Simulates a scenario, cell by cell. Other Python threads go on meanwhile; Ctrl-C stops it at once.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one, such as `"lan-epd"`.
        seed: Seed of every random choice; the scenario's own when None.
        trace: Which series to record: `"queue"`, `"occupancy"`, `"cwnd"`, `"delivered"`, `"acr"`, `"edge"`. Recording
            changes nothing in the run. The last two have the connections with a controlled rate or an edge device, and
            are refused where there is none.
        step: Time between two samples of the series, for example `"1ms"`.
        ports: Names of the ports whose queue and occupancy are recorded; the bottleneck when None.
        engine: `"fast"`, or `"reference"`, which is naive and slow and must give the same fingerprint. When None the fast
            one, but where the events that are kept come from the other alone, or a capture is made.
        threads: Among how many threads the run is shared out at most. The result is the same, to the last bit, for any
            number. Large networks with long links gain most of all; others stay on one thread, and a warning says so.
            What looks at a run as it goes (`trace`, `events`, `pcap`) and the reference engine need a single one.
        events: Where the events of the run are written to, and which: a `celltrain.Events`, or a folder that gets all
            kinds. Keeping them changes nothing in the run.
        pcap: Where a capture of the run is written to, for Wireshark and its like, and of what: a `celltrain.Capture`, or
            a file that gets the packets at the senders' hosts. It changes nothing in the run.
        progress: Called now and then with the share of the run that is done, 0 to 1.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: When the scenario or an option is refused, with every fault.
        CancelledError: When `cancel` ended it.

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
    trace = (trace,) if isinstance(trace, str) else tuple(dict.fromkeys(trace))
    faults = [
        Fault.of_option("trace", repr(name), f"is not a series; choose from {', '.join(TRACES)}")
        for name in trace
        if name not in TRACES
    ]
    if engine is not None and engine not in ENGINES:
        faults.append(Fault.of_option("engine", repr(engine), f"is not an engine; choose from {', '.join(ENGINES)}"))
    if seed is not None and not 0 <= seed < 1 << 64:
        faults.append(Fault.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1"))
    kept = events if events is None or isinstance(events, Events) else Events(events)
    capture = pcap if pcap is None or isinstance(pcap, Capture) else Capture(pcap)
    if kept is not None and capture is not None and _are_in_each_others_way(kept, capture):
        problem = "is where the events are written to; name a file of its own"
        faults.append(Fault.of_option("pcap", shown(capture.path), problem))
    looks = {"trace": trace, "events": events, "pcap": pcap, "engine": engine == "reference"}
    faults += _threads_faults(threads, [name for name, given in looks.items() if given])
    if faults:
        raise ScenarioError(faults)
    needed = {one.engine(engine) for one in (kept, capture) if one is not None}
    told_by = engine or ("reference" if "reference" in needed else "fast")
    reading = read(scenario)
    accepted = reading.accepted()
    warn(reading.warnings)
    if threads > 1 and accepted.threads_of(threads, current()) == 1:
        warn(
            [f"threads = {threads}: the run has one, as this network does not come apart into parts with enough to do"]
        )
    links = None if ports is None else [ports] if isinstance(ports, str) else list(ports)
    try:
        settings = table(accepted)
        facts = _facts(settings, settings.get("seed") if seed is None else seed)
        with ExitStack() as files:
            written: dict[str, Any] = {}
            # The capture names its own errors, so it is opened first.
            if capture is not None:
                written |= {"capture": capture.asked(), "on_capture": files.enter_context(capture.taking())}
            if kept is not None:
                written |= {"events": kept.asked(), "on_events": files.enter_context(kept.taking(facts))}
            if written:
                written["told_by"] = told_by
            answer, series = accepted.run(
                seed, trace, step, links, engine or "fast", progress, current(), threads=threads, **written
            )
            found = {"tcp": tcp_summary(settings), **json.loads(answer)}
            if kept is not None:
                kept.known = _for_diagrams(found)
    except ValueError as error:
        said = [_with_ports(accepted, fault) for fault in ScenarioError.of_refusal(error).faults]
        raise ScenarioError(_with_file(scenario, fault) for fault in said) from None
    if found["fairness"] is None:
        warn(
            [
                "this run carried nothing, and its fairness is undefined: see whether the policy admits frames, and the run "
                "is longer than a round trip"
            ]
        )
    return RunResult._of(found, series, None if kept is None else kept.folder)


def _threads_faults(threads: int, looks: Sequence[str]) -> list[Fault]:
    """What is wrong with a number of threads, given the names of what looks at the run as it goes."""
    most = cores()
    if not 1 <= threads <= most:
        problem = f"is not a number of threads that a run may have here; from 1 to {most}, a core for each"
        return [Fault.of_option("threads", threads, problem)]
    if threads == 1:
        return []
    return [
        Fault.of_option("threads", threads, f"does not go with {name}, which needs a single thread") for name in looks
    ]


def _with_file(scenario: object, fault: Fault) -> Fault:
    """What is wrong with a run as a whole, such as what a Python class raised, with the file it is of."""
    if fault.file or fault.key or not isinstance(scenario, str | os.PathLike):
        return fault
    file = shown(scenario)
    return dataclasses.replace(fault, file=file, message=f"{file}: {fault.message}")


def _with_ports(scenario: _core.Scenario, fault: Fault) -> Fault:
    """What is wrong with an option; where it is the name of a port, the ports that there are."""
    if not fault.problem.endswith("is not a port of this network"):
        return fault
    network = json.loads(scenario.network(current()))
    nodes = [node["name"] for node in network["nodes"]]
    names = [f"{nodes[link['from']]}->{nodes[link['to']]}" for link in network["links"]]
    # Those that begin or end at what was named are the likeliest.
    said = fault.value.strip('"')
    names.sort(key=lambda name: not (said and said in name.split("->")))
    more = f" and {len(names) - MOST_PORTS:,} more" if len(names) > MOST_PORTS else ""
    problem = f"{fault.problem}; there are {', '.join(map(shown, names[:MOST_PORTS]))}{more}"
    return Fault.of(problem, file=fault.file, line=fault.line, key=fault.key, value=fault.value)


def _are_in_each_others_way(kept: Events, capture: Capture) -> bool:
    """Whether a capture would be the folder of the events, one of those that it is in, or one of its files."""
    file, folder = (os.path.normpath(path.absolute()) for path in (capture.path, kept.folder))
    return file in {folder, *map(str, Path(folder).parents), *(str(Path(folder, path.name)) for path in kept.paths)}


def _facts(settings: Mapping[str, Any], seed: Any) -> dict[str, str]:
    """What files of events say of their run."""
    own = json.dumps({name: value for name, value in settings.items() if name != "seed"}, sort_keys=True, default=str)
    return {
        "scenario": str(settings.get("name", "")),
        "seed": str(seed),
        "scenario_sha256": hashlib.sha256(own.encode()).hexdigest(),
    }


def _for_diagrams(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The facts about a run that diagrams of its events need: see `celltrain.running.events.FOR_DIAGRAMS`."""
    facts = {
        "flows": [flow["name"] for flow in answer["flows"]],
        "buffers": {port["name"]: port["buffer_cells"] for port in answer["ports"]},
    }
    return {**facts, "tcp": answer["tcp"]}


class RunResult(Carded, Answer):
    """What came of a run: measures as numbers, flows, ports and series as Arrow tables, plots.

    pandas, polars and duckdb read the tables without copying: `result.flows.to_pandas()`,
    `polars.from_arrow(result.flows)`, `duckdb.from_arrow(result.flows)`. Every column carries its unit and meaning:

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="10ms")
    >>> ct.run(lan).flows.field("goodput_mbps").metadata[b"unit"]
    b'Mb/s'
    """

    _call = "celltrain.run"
    _answer: dict[str, Any]
    _series: dict[str, Any]
    _events: Path | None

    @classmethod
    def _of(cls, answer: dict[str, Any], series: dict[str, Any] | None, events: Path | None = None) -> RunResult:
        """Of the core's answer, and the folder that got the events."""
        made = cls.__new__(cls)
        made._answer = answer
        made._series = series or {}
        made._events = events
        return made

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return str(self._answer["scenario"])

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self._answer["seed"])

    @property
    def tcp(self) -> str:
        """The TCP of the flows, such as `vanilla (no fast retransmit, 100 ms ticks)`."""
        return str(self._answer["tcp"])

    @property
    def engine(self) -> str:
        """The engine that ran it."""
        return str(self._answer["engine"])

    @property
    def duration_s(self) -> float:
        """Simulated seconds."""
        return float(self._answer["duration_s"])

    @property
    def efficiency(self) -> float:
        """Sum of the goodputs of flows through the bottleneck, each as a share of the most that port could carry of it."""
        return float(self._answer["efficiency"])

    @property
    def fairness(self) -> float | None:
        """Jain's index of the goodputs of the flows of class UBR: 1 when all are equal, k/n when k of n share equally.

        It is that of all flows where none is of this class. None if these flows delivered nothing: the index is 0/0.
        """
        return _defined(self._answer["fairness"])

    @property
    def fairness_max_min(self) -> float | None:
        """The same of the goodputs as shares of what is max-min fair: 1 when all have the same part of it.

        It is `fairness` where every flow's share is the same. Each flow's is the column `max_min_mbps` of `flows`. None
        if these flows delivered nothing.
        """
        return _defined(self._answer["fairness_max_min"])

    @property
    def goodput_mbps(self) -> float:
        """Sum of the goodputs of all flows, in megabits per second."""
        return float(self._answer["goodput_mbps"])

    @property
    def file_delay_ms(self) -> dict[str, Any] | None:
        """Delay of the files that the streams of all flows are cut into; None where `measure.file_size` does not ask for it.

        `mean`, `median` and `p95` are milliseconds, None where no file is complete; `files` is how many are.

        >>> import celltrain as ct
        >>> lan = ct.n_source(sources=1, link_delay="5us", buffer_cells="infinite", policy=ct.TailDrop(), duration="1s")
        >>> result = ct.run(lan.replace(measure=ct.MeasureOptions(file_size="100kB")))
        >>> delay = result.file_delay_ms
        >>> round(delay["mean"], 1), delay["files"]
        (10.5, 156)
        """
        delay = self._answer["file_delay_ms"]
        return None if delay is None else dict(delay)

    @property
    def cells(self) -> dict[str, int]:
        """Cells `offered`, `delivered`, `lost`, `discarded` and `in_flight`; of a whole run the first is the sum of the others."""
        return dict(self._answer["cells"])

    @property
    def cell_hops(self) -> int:
        """Cells that crossed a link, counted once a link."""
        return int(self._answer["cell_hops"])

    @property
    def engine_seconds(self) -> float:
        """Seconds of real time the engine took."""
        return float(self._answer["timing"]["engine_seconds"])

    @property
    def cell_hops_per_second(self) -> float:
        """The engine's speed."""
        return float(self._answer["timing"]["cell_hops_per_second"])

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change when any segment's or acknowledgement's instant changes."""
        return str(self._answer["fingerprint"])

    @cached_property
    def flows(self) -> pa.Table:
        """The connections, one row each."""
        return tables.table(self._answer["flows"], tables.FLOWS)

    @cached_property
    def ports(self) -> pa.Table:
        """The output ports, one row each."""
        return tables.table(self._answer["ports"], tables.PORTS)

    @cached_property
    def contracts(self) -> pa.Table:
        """The VCs with a contract, one row each: what the network's edge found in their frames, and what became of them."""
        return tables.table(self._answer["contracts"], tables.CONTRACTS)

    @cached_property
    def abr(self) -> pa.Table:
        """The VCs whose rate is controlled (ABR), one row each, both directions: ACR at the end and RM cells."""
        return tables.table(self._answer["abr"], tables.ABR)

    @cached_property
    def series(self) -> Series:
        """The recorded series by name, each a table with a row for every instant and port or flow."""
        return Series(self._series)

    @checked()
    def steady(self, flow: str | None = None) -> Steady:
        """When the goodput has settled, and its mean from there with an interval from this run alone.

        The warm-up is that of MSER-5, a heuristic: what it leaves out is best left out with `measure.from`, for several
        seeds the longest of theirs. The mean is in Mb/s, its 95 % interval by batch means.

        Args:
            flow: Whose goodput; that of all flows together when None.

        Raises:
            NotTracedError: When the run did not record `delivered`.
            InputError: When there is no such flow, or fewer than 100 samples.

        >>> import celltrain as ct
        >>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=300, policy=ct.SelectiveDrop(), duration="1s")
        >>> settled = ct.run(lan, trace=["delivered"], step="1ms").steady()
        >>> settled.from_s is None or 0 <= settled.from_s <= 0.5
        True
        """
        import numpy as np

        from celltrain.running import steady

        times, flows, [delivered] = self.series.raw("delivered")
        if flow is not None and flow not in flows:
            raise InputError(
                [Fault.of_option("flow", shown(flow), f"is no flow; there are {', '.join(map(shown, flows[:9]))}")]
            )
        if len(times) <= steady.FEWEST:
            problem = f"gives {len(times)} samples of the run; take a shorter step, so that there are {steady.FEWEST}"
            raise InputError([Fault.of_option("step", "", problem)])
        of_all = delivered.sum(axis=1) if flow is None else delivered[:, flows.index(flow)]
        megabits = np.diff(of_all.astype(np.float64)) * 8 / 1e6
        return steady.steady(times[1:], megabits / np.diff(times))

    @cached_property
    def events(self) -> EventLog:
        """The events that were kept, by kind, each a table that is read from its file when it is asked for."""
        facts = _for_diagrams(self._answer)
        return EventLog._of(self._events, scenario=self.scenario, seed=self.seed, **facts)

    @property
    def plot(self) -> Plot:
        """Plots of the recorded series, and diagrams of the events; needs `pip install celltrain[plot]`."""
        from celltrain.drawing.axes import LONGEST_TITLE, brief
        from celltrain.drawing.plot import Plot

        name = brief(self.scenario or "scenario", LONGEST_TITLE)
        title = [f"{name}, seed {self.seed}", brief(f"TCP: {self.tcp}", LONGEST_TITLE)]
        return Plot(self.series, self._answer, title, lambda: self.events.plot)

    def to_dict(self) -> dict[str, Any]:
        """The whole answer without the series, as `celltrain run --json` prints it."""
        return deepcopy(self._answer)

    @checked()
    def write(self, folder: str | os.PathLike[str], *, plots: bool = False) -> list[Path]:
        """Writes the run into a folder, which is made if needed; returns the files written.

        Args:
            folder: Gets `result.json`, and flows, ports and recorded series as Parquet and CSV.
            plots: Whether to draw the recorded series too, as PNG and SVG; needs `pip install celltrain[plot]`.
        """
        from celltrain.running import export

        with writing(folder):
            return export.write(self, Path(folder), plots=plots)

    def _card(self) -> Card:
        flows = [
            [one["name"], f"{one['goodput_mbps']:.3f}", f"{one['retransmitted_segments']:,}", f"{one['timeouts']:,}"]
            for one in self._answer["flows"]
        ]
        # Where most is lost comes first; a mesh has thousands of ports.
        columns = ("lost_cells", "discarded_cells", "max_queue_cells")
        ports = sorted(self._answer["ports"], key=lambda one: [-one[name] for name in columns])
        counted = [[one["name"], *(f"{one[name]:,}" for name in columns)] for one in ports[:MOST_PORTS_SHOWN]]
        return Card(
            title=f"{self.scenario or 'A run'}, seed {self.seed}",
            lines=[
                f"efficiency {self.efficiency:.4f}, fairness {share(self.fairness)}, goodput {self.goodput_mbps:.4g} Mb/s "
                f"in {self.duration_s:g} s",
                f"TCP: {self.tcp}",
            ],
            grids=[
                Grid(heads=["flow", "goodput (Mb/s)", "retransmitted segments", "timeouts"], rows=flows),
                Grid(
                    heads=["port", "lost cells", "discarded cells", "largest queue (cells)"],
                    rows=counted,
                    more=max(0, len(ports) - MOST_PORTS_SHOWN),
                ),
            ],
            notes=[f"cells: {balance(self._answer)}", f"fingerprint {self.fingerprint}"],
        )

    def __repr__(self) -> str:
        name = f"{self.scenario!r}, " if self.scenario else ""
        return (
            f"RunResult({name}seed={self.seed}, efficiency={self.efficiency:.4f}, fairness={share(self.fairness)}, "
            f"fingerprint={self.fingerprint!r})"
        )


def _defined(value: float | None) -> float | None:
    return None if value is None else float(value)


def share(value: float | None) -> str:
    """A share with four digits, or the word for one that is 0/0.

    >>> share(0.98765), share(None)
    ('0.9877', 'undefined')
    """
    return "undefined" if value is None else f"{value:.4f}"


def balance(answer: Mapping[str, Any]) -> str:
    """Where the cells are that were put in while it was measured: an equation that holds, also where measuring begins late."""
    cells, begin = answer["cells"], answer["measured_from_s"]
    offered, *parts, left = (
        f"{cells[name]:,} {name.replace('_', ' ')}"
        for name in ("offered", "delivered", "lost", "discarded", "in_flight")
    )
    if answer["measured_to_s"] < answer["duration_s"]:
        # What was in flight at either end is not known.
        return ", ".join([offered, *parts])
    # Every run asserts that nothing goes astray, so this is what was there.
    before = sum(cells[name] for name in ("delivered", "lost", "discarded", "in_flight")) - cells["offered"]
    first = f"{before:,} in flight at {begin:g} s + {offered}" if begin > 0 else offered
    return f"{first} = {' + '.join([*parts, left])}"


class Series(Mapping[str, "pa.Table"]):
    """The recorded series of a run by name: `queue`, `occupancy`, `cwnd`, `delivered`, `acr`, `edge`, as far as traced."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self._recorded = recorded
        self._tables: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if not isinstance(name, str) or name not in self._tables:
            self._tables[name] = self._table(name)
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in TRACES if tables.SERIES[name][0].name in self._recorded)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"Series({', '.join(self)})"

    def raw(self, name: str) -> tuple[Any, list[str], list[Any]]:
        """The instants, the series' names, and an array of instants by series for each of its measures."""
        if not isinstance(name, str) or name not in TRACES:
            raise NotTracedError(f"there is no series {described(name)}; there are {', '.join(TRACES)}")
        if name not in list(self):
            raise NotTracedError(f'the run did not record {name}: run it with trace=["{name}"]')
        arrays = [self._recorded[column.name] for column in tables.SERIES[name]]
        labels = [" at ".join(reversed(names)) for names in zip(*self._names(name).values(), strict=True)]
        return self._recorded["time_s"], labels, arrays

    def flows(self, name: str) -> list[str]:
        """The flow of each of a series' columns; empty for a series of ports."""
        return self._names(name).get(tables.FLOW, [])

    def _table(self, name: str) -> pa.Table:
        times, _, arrays = self.raw(name)
        return tables.long_table(times, self._names(name), dict(zip(tables.SERIES[name], arrays, strict=True)))

    def _names(self, name: str) -> dict[tables.Column, list[str]]:
        """For each naming column, the name of each series."""
        over = SERIES[name].over
        if over == "ports":
            return {tables.PORT: list(self._recorded[over])}
        if over != "occupancy_columns":
            return {tables.FLOW: list(self._recorded[over])}
        columns = self._recorded[over]
        return {tables.PORT: [port for port, _ in columns], tables.FLOW: [flow for _, flow in columns]}
